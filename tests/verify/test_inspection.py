"""What two passes do differently is told from what merely lay in their memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gclint.verify.worker.examination.inspection.difference import first_difference
from gclint.verify.worker.examination.inspection.tape import Event, Tape

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
    from gclint.verify.worker.examination.inspection.digest import digest

    one, other = torch.tensor([value, 0.0, 0.0]), torch.tensor([0.0, value, 0.0])
    assert digest(one).is_close(digest(one.clone()))
    assert not digest(one).is_close(digest(other))
    assert not digest(one).is_close(digest(torch.zeros(3)))
    assert not digest(one).is_close(digest(torch.tensor([-value if value == value else 1.0, 0.0, 0.0])))
