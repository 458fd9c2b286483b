"""What two passes do differently is told from what merely lay in their memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gclint.verify.worker.examination.inspection.difference import FirstDifference, first_difference
from gclint.verify.worker.examination.inspection.parts import digest
from gclint.verify.worker.examination.inspection.tape import Event, Input, Tape

pytestmark = pytest.mark.torch


def _written(compute: Callable[[torch.Tensor], object], left: float) -> Event:
    """Return what is written down of a computation with memory in which something was left."""
    tape = Tape(torch.nn.Identity())
    with tape, tape.forward():
        memory = torch.empty_like(torch.zeros(4))
        with tape.quiet():
            memory.numpy()[:] = left
        compute(memory)
    return tape.root


def _inverse(memory: torch.Tensor) -> torch.Tensor:
    order = torch.tensor([2, 0, 3, 1])
    memory[order] = torch.arange(4.0)
    return memory * 2


def test_what_nothing_was_written_to_is_not_compared() -> None:
    assert first_difference(_written(_inverse, 1.0), _written(_inverse, 2.0)) is None


@pytest.mark.parametrize("read", [lambda memory: memory * 2, lambda memory: memory[:2] * 2])
def test_what_is_computed_from_it_is(read: Callable[[torch.Tensor], object]) -> None:
    origin = first_difference(_written(read, 1.0), _written(read, 2.0))
    assert origin is not None
    assert (origin.what, origin.name) == ("output", "mul")


def test_memory_that_was_filled_is_compared_again() -> None:
    values = iter((1.0, 2.0))

    def filled(memory: torch.Tensor) -> torch.Tensor:
        return memory.fill_(next(values)) * 2

    def part_filled(memory: torch.Tensor) -> torch.Tensor:
        memory[:2].fill_(1.0)
        return memory[:2] * 2

    origin = first_difference(_written(filled, 0.0), _written(filled, 0.0))
    assert origin is not None
    assert origin.name == "fill_"
    assert first_difference(_written(part_filled, 1.0), _written(part_filled, 2.0)) is None


def test_rounding_beside_what_is_not_finite_is_rounding() -> None:
    def masked(factor: float) -> Event:
        hidden, factors = torch.tensor([False, True, True, False]), torch.full((4,), factor)

        def compute(_memory: torch.Tensor) -> torch.Tensor:
            return factors.masked_fill(hidden, float("-inf"))

        return _written(compute, 0.0)

    origin = first_difference(masked(1.0), masked(1.0 + 2e-7))
    assert origin is None or origin.is_rounding
    origin = first_difference(masked(1.0), masked(2.0))
    assert origin is not None
    assert not origin.is_rounding


@pytest.mark.parametrize("value", [float("-inf"), float("inf"), float("nan")])
def test_what_is_not_finite_counts_by_its_place(value: float) -> None:
    one, other = torch.tensor([value, 0.0, 0.0]), torch.tensor([0.0, value, 0.0])
    assert digest(one).is_close(digest(one.clone()))
    assert not digest(one).is_close(digest(other))
    assert not digest(one).is_close(digest(torch.zeros(3)))
    assert not digest(one).is_close(digest(torch.tensor([-value if value == value else 1.0, 0.0, 0.0])))


def _recorded(compute: Callable[[torch.Tensor], object], given: torch.Tensor) -> Event:
    """Return what is recorded of a module that computes something, given a tensor."""

    class Computing(torch.nn.Module):  # type: ignore[misc]
        def forward(self, states: torch.Tensor) -> object:
            return compute(states)

    model = Computing()
    tape = Tape(model)
    with tape, tape.forward():
        model(given)
    return tape.root


def _origin_of(
    one: Callable[[torch.Tensor], object], other: Callable[[torch.Tensor], object], changed: float = 0.0
) -> FirstDifference | None:
    given = torch.ones(3)
    return first_difference(_recorded(one, given), _recorded(other, given + changed))


def test_the_first_operation_that_reads_another_value_is_found() -> None:
    origin = _origin_of(lambda states: (states.sin() * 2.0).cos(), lambda states: (states.sin() * 3.0).cos())
    assert origin is not None
    assert (origin.what, origin.name) == ("input", "mul")
    ((one, other),) = origin.inputs
    assert one is not None
    assert other is not None
    assert (one.digest.text, other.digest.text) == ("2.0", "3.0")


def test_another_argument_of_a_module_is_found_before_what_is_computed_from_it() -> None:
    origin = _origin_of(torch.sin, torch.sin, changed=1.0)
    assert origin is not None
    assert (origin.what, origin.kind) == ("argument", "module")
    assert [one.name for one, _ in origin.inputs if one is not None] == ["states"]


def test_what_is_computed_from_rounded_values_is_not_another_difference() -> None:
    factors = iter((torch.ones(3), torch.full((3,), 1.0 + 2e-7)))

    def rounded(states: torch.Tensor) -> torch.Tensor:
        return (next(factors) * states - 1.0) * 1e6

    origin = _origin_of(rounded, rounded)
    assert origin is not None
    assert (origin.name, origin.is_rounding) == ("mul", True)


def test_a_checkpoint_around_the_same_operations_is_not_a_difference() -> None:
    given = torch.ones(3)
    plain, same, other = (
        _recorded(compute, given)
        for compute in (lambda states: states.sin().cos(), lambda states: states.sin().cos(), torch.tan)
    )
    for each in (same, other):
        (module,) = each.events
        module.events = [Event("checkpoint", "", (), events=module.events)]
    assert first_difference(plain, same) is None
    origin = first_difference(plain, other)
    assert origin is not None
    assert (origin.what, origin.name, origin.other) == ("path", "sin", "tan")


@pytest.mark.parametrize(
    ("source", "is_of_results"),
    [("result", True), ("argument", True), ("parameter", True), ("kept", False), ("value", False)],
)
def test_only_values_that_come_from_elsewhere_are_not_of_earlier_operations(
    source: str, is_of_results: bool
) -> None:
    given = Input("0", "result", digest(1)), Input("0", source, digest(2))
    assert (
        FirstDifference("input", "operation", "mul", "mul", (), (), (given,)).is_of_results is is_of_results
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.device("cpu"), torch.device("meta")),
        (torch.float32, torch.float64),
        (1, 2),
        ("a", "b"),
        (None, False),
        ([1, 2], [1, 3]),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_other_values_have_other_digests(one: object, other: object) -> None:
    assert digest(one) != digest(other)
    assert not digest(one).is_close(digest(other))


def test_empty_tensors_differ_by_shape_and_type() -> None:
    empty = digest(torch.empty(0, 2))
    assert empty == digest(torch.empty(0, 2))
    assert empty.text == "float32[0, 2]"
    assert not empty.is_close(digest(torch.empty(0, 3)))
    assert not empty.is_close(digest(torch.empty(0, 2, dtype=torch.float64)))
