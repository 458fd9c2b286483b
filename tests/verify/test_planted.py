"""Each planted defect is found in the right mode and explained, and each healthy model passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.planted import Planted, examine_planted, lines_of, load_planted, unmet

_IN_PROCESS = [each for each in load_planted() if not each.needs_limits]


@pytest.mark.torch
@pytest.mark.parametrize("planted", _IN_PROCESS, ids=lambda planted: planted.name)
def test_what_is_said_of_a_model_is_found(planted: Planted) -> None:
    import transformers

    if tuple(int(part) for part in transformers.__version__.split(".")[:2]) < planted.since:
        pytest.skip(f"this is so from transformers {planted.since} on")
    result = examine_planted(planted.name)
    found = f"found, in the words of its first lines:\n{lines_of(result.failures)}"
    assert unmet(planted.expectations, result.failures) == [], found
    assert (result.outcome, result.category or "") == (planted.outcome, planted.doubt)


def test_model_that_says_nothing_fails(tmp_path: Path) -> None:
    folder = tmp_path / "silent"
    folder.mkdir()
    (folder / "modeling_toy.py").write_text("", encoding="utf-8")
    with pytest.raises(AssertionError, match="does not say"):
        load_planted(tmp_path)
