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
    from gclint.verify.worker.training.judgement import judge
    from gclint.verify.worker.training.practice_run import PracticeRun
    from gclint.verify.worker.training.training import GROUPS

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


@pytest.mark.parametrize(
    ("hidden", "outcome", "parameters"),
    [
        ((), "works", ()),
        (("d",), "works", ()),
        (("c", "d"), "not run", ("c", "d")),
        (("b", "c", "d"), "not run", ("b", "c", "d")),
    ],
)
def test_a_set_up_in_which_rounding_hides_a_third_is_not_compared(
    hidden: tuple[str, ...], outcome: str, parameters: tuple[str, ...]
) -> None:
    found = {name: value * (1.5 if name in hidden else 1.0) for name, value in _RIGHT.items()}
    row = _row(_RIGHT, found, dict.fromkeys(hidden, 1.0))
    assert (row.outcome, row.parameters) == (outcome, parameters)


def test_what_has_no_gradient_is_not_counted_among_those_to_compare() -> None:
    # Four of ten are none, so that two of six are too many to be left out.
    expected = {**_RIGHT, "e": 5.0, "f": 6.0, **dict.fromkeys("ghij", None), "k": 0.0}
    found = {**expected, "e": 7.5, "f": 9.0}
    assert _row(expected, found, {"e": 1.0, "f": 1.0}).outcome == "not run"


def test_a_slight_difference_that_nothing_settles_is_neither_wrong_nor_right() -> None:
    found = {**_RIGHT, "c": 3.012, "d": 4.012}
    row = _row(_RIGHT, found, {"c": 2e-4, "d": 2e-4})
    assert (row.outcome, row.parameters) == ("not run", ("c", "d"))
    assert _row(_RIGHT, {**found, "c": 3.0}, {"d": 2e-4}).outcome == "works"
    assert _row(_RIGHT, found, {}).symptom == "wrong gradients"


def test_an_error_counts_before_what_rounding_hides() -> None:
    found = {**{name: value * 1.5 for name, value in _RIGHT.items()}, "a": 0.0}
    noise = dict.fromkeys("bcd", 1.0)
    assert _row(_RIGHT, found, noise).symptom == "lost gradients"
    assert _row(_RIGHT, {**found, "a": 9.0}, noise).symptom == "wrong gradients"
