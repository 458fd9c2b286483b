"""What most practices do in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from gclint.verify.worker.examination.subject import Subject
from gclint.verify.worker.protocol import Mode
from gclint.verify.worker.scenarios import scenario_named


def switch_on(subject: Subject, mode: Mode) -> None:
    """Switch checkpointing on, unless the mode is ``plain``."""
    if mode != "plain":
        subject.switch_on(mode)


def trained_parameters(model: nn.Module) -> Callable[[], Mapping[str, Tensor]]:
    """Return what returns the parameters of a model that require grad."""
    parameters = {name: each for name, each in model.named_parameters() if each.requires_grad}
    return lambda: parameters


def batches(
    subject: Subject, forwards: int = 1, *, says_cache: bool = True
) -> Callable[[int], Sequence[Mapping[str, Any]]]:
    """Return what returns the batches of each step, as the synthesis makes them; two lengths take turns.

    Args:
        subject: what they are for.
        forwards: how many forward passes there are before each backward pass.
        says_cache: whether to turn caches off, in place of saying nothing about them.
    """
    usual = scenario_named("default")
    return lambda step: [
        subject.inputs(usual, step * forwards + each, says_cache=says_cache) for each in range(forwards)
    ]
