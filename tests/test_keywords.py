"""What may require grad is moved to a position, whatever its name says, or the fix is unsafe."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.kinds import KINDS
from tests.contract.kinds.judging import RELEASE
from tests.contract.kinds.models import Model, drawn
from tests.contract.repair import repair

_MODELS = [model for pair in drawn(KINDS["keywords"](), 20, 7) for model in pair.models("keywords")]


@pytest.mark.parametrize("model", _MODELS, ids=[each.key for each in _MODELS])
def test_nothing_that_requires_grad_is_left_by_keyword(tmp_path: Path, model: Model) -> None:
    repaired = repair(model.files(), tmp_path / "repaired", RELEASE)
    is_safe = any(each == "GC001 safe fix" for each in repaired.findings)
    if model.is_twin:
        assert is_safe, repaired.findings
    else:
        assert repaired.files != model.files(is_repaired=True)
