"""Which cause a failure has: the one that the checkpoints show, and not one that merely could be it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from tests.decisions import proofs
from tests.decisions.proofs import RIGHT, change, checkpointed, inspected, one_step, origin

pytestmark = pytest.mark.torch

Changes = tuple[tuple[str, ...], ...]
"""What had changed: of each the kind of its holder, its name, and its owner."""

_LOST = one_step(gradients={**RIGHT, "layers.0.weight": None})
_WRONG = one_step(gradients={**RIGHT, "embed": [9.0, 9.0]})
_NO_INPUT = ("None of the inputs have requires_grad=True. Gradients will be None",)


def _causes(*checkpoints: Any, found: Any = _WRONG, mode: str = "reentrant", **facts: Any) -> list[str]:
    """Return the causes of what is wrong in a run with these checkpoints, by the checks."""
    return [each.cause.name for each in _failures(*checkpoints, found=found, mode=mode, **facts)]


def _failures(
    *checkpoints: Any, found: Any = _WRONG, mode: str = "reentrant", scenario: str = "default", **facts: Any
) -> Any:
    from gclint.verify.worker.examination.reporting import diagnose

    compared = proofs.comparison({}, found, mode=mode, scenario=scenario)
    compared = replace(compared, inspection=inspected(*checkpoints, **facts))
    return diagnose(compared, proofs.failed_checks(compared).values())


_RETURNED = {"returned_in": "a `dict`", "is_reentrant": True}


@pytest.mark.parametrize(
    ("checkpoints", "warnings", "cause"),
    [
        ([{**_RETURNED}], (), "NESTED_OUTPUT"),
        # A frozen base: without an input that requires grad, it does not matter what a block returns.
        ([{**_RETURNED, "has_gradient": False}], _NO_INPUT, "NO_INPUT_GRADIENT"),
        ([{**_RETURNED, "has_gradient": False}], (), "DISAGREEMENT"),
        ([{**_RETURNED, "has_gradient": False}, {**_RETURNED}], _NO_INPUT, "NESTED_OUTPUT"),
        ([{"is_reentrant": True, "has_gradient": False}, {**_RETURNED}], _NO_INPUT, "NESTED_OUTPUT"),
        # Other checkpoints pass on gradients whatever they return.
        ([{**_RETURNED, "is_reentrant": False}], (), "DISAGREEMENT"),
        ([{"is_reentrant": True}], (), "DISAGREEMENT"),
        ([{"is_reentrant": True, "has_gradient": False}], _NO_INPUT, "NO_INPUT_GRADIENT"),
        ([{"has_gradient": False}], _NO_INPUT, "DISAGREEMENT"),
        ([{"is_reentrant": True, "has_gradient": False}], ("something else",), "DISAGREEMENT"),
    ],
)
@pytest.mark.parametrize("scenario", ["default", "frozen base"])
def test_a_container_hides_gradients_only_if_there_are_any(
    checkpoints: Any, warnings: Any, cause: str, scenario: str
) -> None:
    made = [checkpointed(line, **facts) for line, facts in enumerate(checkpoints, start=3)]
    failures = _failures(*made, found={**_LOST, "warnings": warnings}, scenario=scenario)
    # A warning of torch has no cause if the gradients that are lost have another.
    assert {each.cause.name for each in failures if each.check != "warning"} == {cause}


@pytest.mark.parametrize(
    ("captured", "found", "cause"),
    [
        (("states",), _LOST, "CAPTURED_ACTIVATION"),
        # It explains why a gradient is lost, and not why it is another.
        (("states",), _WRONG, "DISAGREEMENT"),
        ((), _LOST, "DISAGREEMENT"),
    ],
)
@pytest.mark.parametrize("is_reentrant", [True, False])
def test_a_captured_tensor_loses_its_gradient_only_in_reentrant_checkpoints(
    captured: Any, found: Any, cause: str, is_reentrant: bool
) -> None:
    made = checkpointed(captured=captured, is_reentrant=is_reentrant)
    assert _causes(made, found=found) == [cause if is_reentrant else "DISAGREEMENT"]


def test_lines_and_containers_are_those_of_the_checkpoints_that_hide_something() -> None:
    made = (
        checkpointed(3, is_reentrant=True),
        checkpointed(5, **_RETURNED),
        checkpointed(7, **{**_RETURNED, "returned_in": "a `list`"}),
        checkpointed(9, **{**_RETURNED, "has_gradient": False, "returned_in": "a `set`"}),
    )
    (failure,) = _failures(*made, found=_LOST)
    assert [each.line for each in failure.places] == [5, 7]
    assert "returns tensors in a `dict`, a `list`, but" in failure.explanation


def _diverged(line: int = 7, *, changes: Changes = (), drawn: Collection[str] = (), **facts: Any) -> Any:
    """Return a checkpoint whose recomputation differs, with what had changed and what it draws from."""
    made = tuple(change(*each) for each in changes)
    return checkpointed(line, **{"origin": origin(), "changes": made, "drawn": frozenset(drawn), **facts})


_RANDOM, _OWN = ("generator", "random"), ("generator", "noise", "layers.0")
_COUNT = ("attribute", "count", "layers.0")
_TORCH = ("torch", "the state of torch's random numbers")


@pytest.mark.parametrize(
    ("changes", "drawn", "cause"),
    [
        ((_RANDOM,), {"random"}, "RANDOM_NUMBERS"),
        # The model has drawn from it outside of the checkpoint.
        ((_RANDOM,), (), "DISAGREEMENT"),
        ((_RANDOM, _COUNT), (), "STATE"),
        ((_RANDOM, _COUNT), {"numpy.random"}, "STATE"),
        ((_RANDOM, _COUNT), {"random"}, "RANDOM_NUMBERS"),
        ((_OWN, _COUNT), {"layers.0.noise"}, "RANDOM_NUMBERS"),
        ((_OWN, _COUNT), {"noise"}, "STATE"),
        ((_OWN, _COUNT), {"layers.1.noise"}, "STATE"),
        # It has drawn from what is as it was.
        ((_COUNT,), {"random"}, "STATE"),
        ((("attribute", "random"),), {"random"}, "STATE"),
        ((), {"random"}, "DISAGREEMENT"),
    ],
)
def test_random_numbers_are_to_blame_only_if_the_checkpoint_draws_them(
    changes: Changes, drawn: Collection[str], cause: str
) -> None:
    assert _causes(_diverged(changes=changes, drawn=drawn)) == [cause]


@pytest.mark.parametrize(
    ("preserves", "changes", "cause"),
    [
        (False, (_TORCH,), "RANDOM_NUMBERS"),
        (False, (_COUNT,), "STATE"),
        # Torch restores it.
        (True, (_TORCH,), "DISAGREEMENT"),
        (True, (_TORCH, _COUNT), "STATE"),
    ],
)
def test_the_state_of_torch_is_to_blame_only_if_a_checkpoint_does_not_preserve_it(
    preserves: bool, changes: Changes, cause: str
) -> None:
    assert _causes(_diverged(changes=changes, preserves_random_state=preserves)) == [cause]


@pytest.mark.parametrize(
    ("generators", "diverges", "cause"),
    [
        (("random",), False, "RANDOM_NUMBERS"),
        ((), False, "DISAGREEMENT"),
        # The backward pass draws them, and the checkpoint that differs does not.
        (("random",), True, "DISAGREEMENT"),
    ],
)
def test_random_numbers_of_the_backward_pass_are_to_blame_if_no_checkpoint_differs(
    generators: tuple[str, ...], diverges: bool, cause: str
) -> None:
    from gclint.verify.worker.examination.state import SideEffects

    found = {**_WRONG, "side_effects": SideEffects(generators)}
    assert _causes(_diverged() if diverges else checkpointed(), found=found) == [cause]


@pytest.mark.parametrize("is_rounding", [None, True])
def test_only_checkpoints_that_diverge_have_a_cause(is_rounding: bool | None) -> None:
    same = None if is_rounding is None else origin(is_rounding=True)
    first = _diverged(changes=(_RANDOM,), drawn={"random"}, origin=same)
    assert _causes(first) == ["DISAGREEMENT"]
    (failure,) = _failures(first, _diverged(9, changes=(_COUNT,)))
    assert (failure.cause.name, [each.line for each in failure.places]) == ("STATE", [9])


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        (("closure", "layer", "custom_forward"), "LATE_BINDING"),
        (("mode", "training", "layers.0"), "MODE"),
        (("torch", "autocast"), "AUTOCAST"),
        (("hook", "_forward_hooks", "layers.0"), "FORWARD_HOOK"),
        (("attribute", "count", "layers.0"), "STATE"),
        (("global", "COUNT", "modeling_toy"), "GLOBAL_STATE"),
        (("class", "count", "ToyLayer"), "GLOBAL_STATE"),
        (("default", "seen", "ToyLayer.forward"), "GLOBAL_STATE"),
        (("config", "scale", "ToyConfig"), "GLOBAL_STATE"),
    ],
)
def test_what_has_changed_before_the_recomputation_is_its_cause(changed: tuple[str, ...], cause: str) -> None:
    assert _causes(_diverged(changes=(changed,))) == [cause]
    (failure,) = _failures(_diverged(3), _diverged(5, changes=(changed,)))
    # Of two that differ, the one with evidence is shown.
    assert [each.line for each in failure.places] == [5]


def _read(before: str, now: str | None, held: str = "", *, kind: str = "operation") -> Any:
    """Return a difference in what an operation reads, or what a checkpoint is passed."""
    from gclint.verify.worker.examination.inspection.parts import Digest
    from gclint.verify.worker.examination.inspection.tape import Input

    source = "kept" if held else "value"
    pair = (Input("0", source, Digest(each), held) if each else None for each in (before, now))
    what = "input" if kind == "operation" else "argument"
    return origin(what, kind, inputs=(tuple(pair),))


@pytest.mark.parametrize(
    ("modified", "kind", "cause"),
    [
        (("0",), "checkpoint", "CHANGED_ARGUMENT"),
        (("0",), "operation", "CHANGED_ARGUMENT"),
        (("0",), "", "DISAGREEMENT"),
        ((), "checkpoint", "DISAGREEMENT"),
        ((), "operation", "DISAGREEMENT"),
    ],
)
def test_an_argument_that_is_changed_is_the_cause_only_if_it_or_an_input_differs(
    modified: tuple[str, ...], kind: str, cause: str
) -> None:
    where = _read("1", "2", kind=kind) if kind else origin("path")
    assert _causes(_diverged(modified=modified, origin=where)) == [cause]


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        # The one that is read, by its value or its name; both if it cannot be seen.
        (("1.0", "2.0"), {"scale"}),
        (("3", "4"), {"seen"}),
        (("3", "2.0"), {"scale", "seen"}),
        (("5", "6", "layers.0.seen"), {"seen"}),
        (("5", "6", "seen"), {"scale", "seen"}),
        (("1.0", None), {"scale", "seen"}),
    ],
)
@pytest.mark.parametrize("holder", ["attribute", "global"])
def test_of_several_values_that_have_changed_the_one_that_is_read_is_named(
    inputs: tuple[Any, ...], names: set[str], holder: str
) -> None:
    changes = (
        change(holder, "scale", "layers.0", before_key="1.0", now_key="2.0"),
        change(holder, "seen", "layers.0", before_key="3", now_key="4"),
    )
    (failure,) = _failures(checkpointed(origin=_read(*inputs), changes=changes))
    read = failure.explanation.partition(", whose value")[0]
    assert {each for each in ("scale", "seen") if each in read} == names


def _pass(*operations: str, outputs: float | None = None, is_complete: bool = True) -> Any:
    """Return a run of a checkpoint.

    Args:
        *operations: their names; of one with ``~``, the result differs by rounding, and with ``!`` by more.
        outputs: a number for what the pass returns, if that is known.
        is_complete: whether it came to its end.
    """
    from gclint.verify.worker.examination.inspection.parts import Digest
    from gclint.verify.worker.examination.inspection.tape import Event

    def result(size: float) -> tuple[Any, ...]:
        return (Digest("float32[2]", int(size * 10), size, size, 0.5),)

    events = [
        Event("operation", each.rstrip("~!"), (), outputs=result({"~": 9.1, "!": 99.0}.get(each[-1], 9.0)))
        for each in operations
    ]
    returned = () if outputs is None else result(outputs)
    return Event("checkpoint", "", (), outputs=returned, events=events, is_complete=is_complete)


def _difference(one: Any, other: Any) -> tuple[str, str, str, bool] | None:
    from gclint.verify.worker.examination.inspection.difference import first_difference

    found = first_difference(one, other)
    return None if found is None else (found.what, found.name, found.other, found.is_rounding)


_ROUNDED, _OTHER = ("output", "cos", "cos", True), ("output", "cos", "cos", False)


@pytest.mark.parametrize(
    ("again", "early", "complete"),
    [
        (("sin", "cos", "tan"), None, None),
        (("sin", "cos"), None, ("path", "tan", "", False)),
        (("sin",), None, ("path", "cos", "", False)),
        ((), None, ("path", "sin", "", False)),
        (("sin", "cos~", "tan"), _ROUNDED, _ROUNDED),
        (("sin", "cos~"), _ROUNDED, ("path", "tan", "", False)),
        (("sin", "cos!"), _OTHER, _OTHER),
        # It does something else, whether or not it stops then.
        (("sin", "cot"), *[("path", "cos", "cot", False)] * 2),
        (("tan", "cot"), *[("path", "sin", "tan", False)] * 2),
        (("cos", "tan"), *[("path", "sin", "cos", False)] * 2),
        (("sin", "cos", "tan", "cot"), *[("path", "", "cot", False)] * 2),
    ],
)
def test_a_recomputation_that_has_all_it_needs_may_stop(again: Any, early: Any, complete: Any) -> None:
    first = _pass("sin", "cos", "tan")
    assert _difference(first, _pass(*again)) == complete
    assert _difference(first, _pass(*again, is_complete=False)) == early


@pytest.mark.parametrize("is_complete", [True, False])
def test_what_only_the_recomputation_does_counts_unless_the_forward_pass_was_cut_off(
    is_complete: bool,
) -> None:
    found = _difference(_pass("sin", is_complete=is_complete), _pass("sin", "cos"))
    assert found == (("path", "", "cos", False) if is_complete else None)


@pytest.mark.parametrize(
    ("returned", "is_same"), [((9.0, 9.0), True), ((9.0, 9.1), True), ((9.0, 99.0), False)]
)
def test_another_way_to_the_same_result_is_no_more_than_rounding(
    returned: tuple[float, float], is_same: bool
) -> None:
    one, other = _pass("sin", outputs=returned[0]), _pass("cos", outputs=returned[1])
    assert _difference(one, other) == ("path", "sin", "cos", is_same)
