"""What long sequences need, from short ones, in models that loop over positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gclint.verify.worker.estimates import EstimateRequest, MemoryEstimate

pytestmark = pytest.mark.torch
_SMALL = {"hidden_size": 32, "state_size": 8, "vocab_size": 64, "expand": 1}
_WIDE = {"hidden_size": 64, "state_size": 2, "vocab_size": 4096}
"""Weights need most of the memory at short lengths, and activations at long ones."""


def _estimated(most: int, monkeypatch: pytest.MonkeyPatch, **question: Any) -> MemoryEstimate:
    """Return an estimate that is extrapolated if a step runs more operations."""
    from transformers import MambaForCausalLM

    from gclint.verify.worker.footprint import estimate as estimating

    monkeypatch.setattr(estimating, "_MOST_OPERATIONS", most)
    asked = EstimateRequest(**question)
    *_, found = estimating.estimates("modeling_mamba.py", [MambaForCausalLM], asked, "cpu")
    return found


@pytest.mark.parametrize(
    ("fields", "more"),
    [(_SMALL, {"batch": 2}), (_WIDE, {"autocast": True, "dtype": "float32"})],
)
def test_what_is_extrapolated_is_what_a_whole_run_has(
    fields: dict[str, Any], more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"layers": 2, "sequence": 24, "fields": fields, **more}
    whole, short = (_estimated(most, monkeypatch, **question) for most in (10**9, 1000))
    assert [each for each in short.notes if each not in whole.notes] == [short.notes[-1]]
    assert "extrapolated from sequences of at most 17 tokens" in short.notes[-1]
    assert replace(short, notes=whole.notes, seconds=whole.seconds) == whole
    assert short.mode("plain") is not None


def test_a_window_that_no_short_sequence_fills_is_not_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import MambaConfig

    fields = {**_SMALL, "num_hidden_layers": 1, "sliding_window": 20}
    config = {**MambaConfig().to_dict(), **fields}
    for length, is_extrapolated in ((19, True), (21, False)):
        found = _estimated(500, monkeypatch, sequence=length, config=config)
        assert any("extrapolated" in each for each in found.notes) == is_extrapolated


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([3, 5, 9], 83),
        ([{"a": (1, "x")}, {"a": (2, "x")}, {"a": (4, "x")}], {"a": (41, "x")}),
        ([1, 4, 16, 64], 1681),
        # Another moment has the peak, another thing is kept, a cubic, and what is not a number.
        ([3, 5, 10], None),
        ([(1,), (1,), (1, 1)], None),
        ([{"a": 1}, {"a": 1}, {"b": 1}], None),
        ([1, 8, 64, 512], None),
        ([True, True, False], None),
    ],
)
def test_numbers_follow_the_law_that_one_more_of_them_shows(seen: list[Any], expected: Any) -> None:
    from gclint.verify.worker.footprint.extrapolation import NoLaw, extrapolated

    lengths = (1, 2, 4, 8)[: len(seen)]
    if expected is None:
        with pytest.raises(NoLaw):
            extrapolated(lengths, seen, 41)
    else:
        assert extrapolated(lengths, seen, 41) == expected
