"""What the code around blocks does to what they hold makes a fix unsafe, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.kinds import KINDS, known
from tests.contract.kinds.judging import KEPT, RELEASE
from tests.contract.kinds.models import Model, drawn
from tests.contract.repair import repair

_MODELS = [model for pair in drawn(KINDS["around"](), 30, 7) for model in pair.models("around")]


@pytest.mark.parametrize("model", _MODELS, ids=[each.key for each in _MODELS])
def test_only_what_does_no_harm_is_safe(tmp_path: Path, model: Model) -> None:
    if known.read().get(model.key, KEPT) != KEPT:
        pytest.xfail("listed as known")
    (finding,) = repair(model.files(), tmp_path / "repaired", RELEASE).findings
    assert (finding == "GC001 safe fix") is model.is_twin, finding
