"""What the steps of a set-up amount to, from their gradients alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pytestmark = pytest.mark.torch

_RIGHT = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}


def _row(
    expected: dict[str, Any],
    found: dict[str, Any],
    noise: dict[str, float],
    recomputed: int = 1,
    left: tuple[str, ...] = (),
) -> Any:
    import torch

    from gclint.verify.worker.practices import practices_named
    from gclint.verify.worker.training.groups import GROUPS
    from gclint.verify.worker.training.judgement import judge
    from gclint.verify.worker.training.practice_run import PracticeRun

    def taken(gradients: dict[str, Any]) -> PracticeRun:
        tensors = {
            name: None if value is None else torch.tensor([value, value]) for name, value in gradients.items()
        }
        counted = Counter({"layers.0": recomputed})
        return PracticeRun(
            gradients=[tensors, tensors],
            recorded=Counter({"layers.0": 2, **dict.fromkeys(left, 2)}),
            recomputed=counted,
        )

    (practice,) = practices_named(["peft:LoRA/N"])
    noises = {(step, name): each for name, each in noise.items() for step in (0, 1)}
    return judge(practice, GROUPS[practice.group], taken(expected), taken(found), noises)


def test_the_same_gradients_work() -> None:
    row = _row(_RIGHT, _RIGHT, {})
    assert (row.outcome, row.recomputed, row.blocks) == ("works", 1, 1)


@pytest.mark.parametrize(
    ("changed", "symptom", "parameters"),
    [
        ({"b": None}, "lost gradients", ("b",)),
        ({"b": 0.0}, "lost gradients", ("b",)),
        ({"b": 2.1}, "wrong gradients", ("b",)),
        # What is lost matters more than what is wrong.
        ({"b": 2.1, "c": None}, "lost gradients", ("c",)),
        # A gradient that should not be there.
        ({"e": 1.0}, "wrong gradients", ("e",)),
    ],
)
def test_a_gradient_that_is_not_the_same_fails(
    changed: dict[str, Any], symptom: str, parameters: tuple[str, ...]
) -> None:
    row = _row(_RIGHT, {**_RIGHT, **changed}, {})
    assert (row.outcome, row.symptom, row.parameters) == ("fails", symptom, parameters)
    assert f"{len(parameters)} parameter has " in row.message


def test_where_only_some_blocks_are_recomputed_the_row_says_so() -> None:
    row = _row(_RIGHT, _RIGHT, {}, left=("layers.1", "layers.2"))
    assert (row.outcome, row.recomputed, row.blocks) == ("works", 1, 3)
    assert row.message == "only 1 of 3 blocks were recomputed"


def test_nothing_recomputed_is_no_success() -> None:
    row = _row(_RIGHT, _RIGHT, {}, recomputed=0)
    assert (row.outcome, row.symptom) == ("fails", "nothing recomputed")


@pytest.mark.parametrize("nothing", [{}, {"a": None, "b": 0.0}])
def test_where_nothing_has_a_gradient_nothing_is_said_to_work(nothing: dict[str, Any]) -> None:
    row = _row(nothing, nothing, {})
    assert (row.outcome, row.symptom) == ("not run", "not compared")


def test_what_is_lost_in_rounding_is_not_said_to_work() -> None:
    found = {name: value * 1.5 for name, value in _RIGHT.items()}
    row = _row(_RIGHT, found, dict.fromkeys(_RIGHT, 1.0))
    assert (row.outcome, row.symptom) == ("not run", "not compared")
    # One of four is little enough, as of biases before normalisations.
    row = _row(_RIGHT, {**_RIGHT, "d": 6.0}, {"d": 1.0})
    assert row.outcome == "works"
