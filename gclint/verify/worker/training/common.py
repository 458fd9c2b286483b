"""Functions that most practices share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from gclint.verify.worker.examination.subject import Subject
from gclint.verify.worker.protocol import Mode
from gclint.verify.worker.scenarios import scenario_named


def enable_checkpointing(subject: Subject, mode: Mode) -> None:
    """Enable checkpointing, unless the mode is ``plain``."""
    if mode != "plain":
        subject.enable_checkpointing(mode)


def trained_parameters(model: nn.Module) -> Callable[[], Mapping[str, Tensor]]:
    """Return a function that returns the parameters of a model that require grad."""
    parameters = {name: each for name, each in model.named_parameters() if each.requires_grad}
    return lambda: parameters


def batches(
    subject: Subject, forwards: int = 1, *, sets_cache: bool = True
) -> Callable[[int], Sequence[Mapping[str, Any]]]:
    """Return a function that returns the batches of each step; two lengths alternate.

    Args:
        subject: the model.
        forwards: how many forward passes there are before each backward pass.
        sets_cache: whether to pass ``use_cache=False``, instead of leaving it at its default.
    """
    usual = scenario_named("default")
    return lambda step: [
        subject.inputs(usual, step * forwards + each, sets_cache=sets_cache) for each in range(forwards)
    ]
