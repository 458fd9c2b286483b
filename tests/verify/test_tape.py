"""What is recorded of a forward pass: its modules, whether they ended, and nothing of the inspection."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gclint.verify.worker.examination.inspection.tape import Event, Tape

pytestmark = pytest.mark.torch


def _recorded(model: nn.Module) -> Event:
    tape = Tape(model)
    with tape, tape.forward():
        model(torch.ones(2))
    return tape.root


def _tree(event: Event) -> list[object]:
    """Return the modules in an event by their names, each with those in it."""
    return [(each.name, _tree(each)) for each in event.events if each.kind == "module"]


def test_a_module_that_has_ended_does_not_hold_what_runs_after_it() -> None:
    model = nn.Sequential(nn.Sequential(nn.Tanh()), nn.Tanh())
    assert _tree(_recorded(model)) == [("", [("0", [("0.0", [])]), ("1", [])])]


class _WithoutHooks(nn.Module):  # type: ignore[misc]
    """Removes the hooks of its module, so that nobody hears of its end."""

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        self._forward_hooks.clear()
        return hidden_states.tanh()


@pytest.mark.parametrize(("kind", "is_complete"), [(nn.Tanh, True), (_WithoutHooks, False)])
def test_a_module_counts_as_complete_only_after_its_end(kind: type[nn.Module], is_complete: bool) -> None:
    (event,) = [each for each in _recorded(kind()).events if each.kind == "module"]
    assert event.is_complete is is_complete


def test_what_the_inspection_computes_is_computed_as_asked_and_not_recorded() -> None:
    tape = Tape(nn.Identity())
    with tape, tape.forward():
        with tape.quiet():
            total = torch.sub(torch.ones(2), torch.ones(2), alpha=3.0)
        total.neg()
    assert total.tolist() == [-2.0, -2.0]
    assert [each.name for each in tape.root.events] == ["neg"]


def test_a_module_that_runs_before_the_forward_pass_is_not_that() -> None:
    model = nn.Sequential(nn.Tanh(), nn.Sigmoid())
    tape = Tape(model)
    with tape:
        model[0](torch.ones(2))
        with tape.forward():
            model(torch.ones(2))
    assert _tree(tape.root) == [("", [("0", []), ("1", [])])]


@pytest.mark.parametrize(
    ("change", "is_written"),
    [
        (lambda states: states.requires_grad_(), False),
        (lambda states: states.detach_(), False),
        (lambda states: states.clamp_(0.0), True),
        (lambda states: states.data.mul_(2.0), True),
        (lambda states: nn.functional.relu(states, inplace=True), True),
        (lambda states: torch.add(states, 1.0, out=states), True),
    ],
)
def test_only_what_gives_a_tensor_other_values_writes_to_it(
    change: Callable[[torch.Tensor], object], is_written: bool
) -> None:
    tape, states = Tape(nn.Identity()), torch.ones(2)
    with tape, tape.forward():
        change(states)
    assert (states.untyped_storage().data_ptr() in tape.written) is is_written
