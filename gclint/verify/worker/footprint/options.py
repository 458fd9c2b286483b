"""Estimates the effect of the release's checkpointing options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from gclint.verify.worker.estimates import Option
from gclint.verify.worker.footprint.building import Trainee
from gclint.verify.worker.footprint.step import Step, take_step

_EVERY = (1, 2, 3, 4, 6, 8)


def options(trainee: Trainee, names: Sequence[str]) -> Iterator[Option]:
    """Yield the cost of each option, in non-reentrant mode; nothing if the release has none."""
    switch = getattr(trainee.model_class, "activation_checkpointing_enable", None)
    parameters = inspect.signature(switch).parameters if switch is not None else {}
    if "every_n_layers" in parameters:
        whole = 0
        for every in (each for each in _EVERY if each == 1 or each < len(names)):
            step = _step(trainee, names, every_n_layers=every)
            whole = step.left if every == 1 else whole
            yield Option(every, False, step.left, 0, step.flops, step.peak_bytes)
        if "offload" in parameters:
            step = _step(trainee, names, offload=True)
            yield Option(1, True, step.left, whole - step.left, step.flops, step.peak_bytes)


def _step(trainee: Trainee, names: Sequence[str], **given: object) -> Step[int]:
    return take_step(trainee, "non-reentrant", names, lambda kept: kept.total, **given)
