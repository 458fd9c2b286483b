"""Runs the steps of one practice, each rank in a process of its own, and records them."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.fault import Fault, NoGradient, fault_of
from gclint.verify.worker.examination.model_under_test import ModelUnderTest, seed
from gclint.verify.worker.examination.observers import Phases
from gclint.verify.worker.examination.phrases import of_step
from gclint.verify.worker.examination.tensors import dense, outputs_of, total_loss
from gclint.verify.worker.memory_limits import is_out_of_memory
from gclint.verify.worker.practices import BUFFER, Practice
from gclint.verify.worker.scenarios import scenario_named
from gclint.verify.worker.training.group import (
    ALONE,
    Announce,
    BadPractice,
    DoesNotApply,
    PracticeGroup,
    Prepared,
    Rank,
    Seen,
)

_FOLLOWS = re.compile(r"[Cc]onnection (closed|reset)|closed by peer|Timed out waiting|Broken pipe|Socket")
"""Errors of a process because another one has ended or does not answer."""


@dataclass
class PracticeRun:
    """The record of the steps of a practice; it can be sent to another process."""

    gradients: list[dict[str, Tensor | None]] = field(default_factory=list)
    """The gradients of each step, by the names of the parameters; with the last, buffers that changed."""
    recorded: Counter[str] = field(default_factory=Counter)
    """The runs of each block in forward passes that recorded a gradient, or were to be repeated."""
    recomputed: Counter[str] = field(default_factory=Counter)
    """The runs of each block in backward passes."""
    scales: dict[str, float] = field(default_factory=dict)
    """The sizes of the outputs."""
    stage: str = "the set-up"
    """The stage in which it ended."""
    error: Fault | None = None
    refusal: DoesNotApply | None = None
    """Why the practice does not apply to this class."""
    bad: tuple[str, str] | None = None
    """The requirement that is not met: a symptom, and a message."""
    remark: str = ""
    """A remark for the row."""
    blocks: tuple[Block, ...] = ()
    """The blocks, if this run has found them."""
    saved_bytes: int | None = None
    """Bytes that autograd saved for the backward pass of one step, if they were counted."""

    @property
    def is_whole(self) -> bool:
        """Whether all steps were completed, and the requirements are met."""
        return self.error is None and self.refusal is None and self.bad is None


def run_practice(
    practice: Practice,
    group: PracticeGroup,
    under_test: ModelUnderTest,
    blocks: Sequence[Block],
    scales: Mapping[str, float],
    begin: Callable[[str], None],
    perturbed: int = 0,
    rank: Rank = ALONE,
) -> PracticeRun:
    """Run the steps of a practice; an error of the model or a library is part of the record.

    Args:
        practice: the practice.
        group: its group.
        under_test: the model to train; it is changed.
        blocks: the blocks whose runs are counted.
        scales: the sizes of the outputs in the run with which this one will be compared.
        begin: called with the name of each stage when it begins.
        perturbed: if not 0, the last bit of all parameters is changed, by each number differently.
        rank: the rank of this process among those that train together.
    """
    run = PracticeRun(scales=dict(scales))
    # Before modules are wrapped, since wrappers take over their names.
    phases = Phases(under_test.model, blocks)

    def enter(stage: str) -> None:
        run.stage = stage
        begin(stage)

    prepared: Prepared | None = None
    try:
        enter("the set-up")
        seed(0)
        under_test.prepare(scenario_named(group.scenario))
        if perturbed:
            under_test.perturb(perturbed, group.rounding)
        prepared = group.prepare(practice, under_test, blocks, rank)
        _run_steps(group.steps, prepared, phases, run, enter)
        prepared.inspect()
    except DoesNotApply as refusal:
        run.refusal = refusal
    except BadPractice as bad:
        run.bad = bad.symptom, str(bad)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        run.error = fault_of(error)
    if prepared is not None:
        run.remark = prepared.remark()
    _count_runs(run, prepared, phases)
    return run


def _count_runs(run: PracticeRun, prepared: Prepared | None, phases: Phases) -> None:
    """Record how often each block ran, as counted by hooks if the practice does not count itself."""
    by_hooks = Seen(phases.runs[False], phases.runs[True])
    seen = by_hooks if prepared is None or prepared.seen is None else prepared.seen()
    run.recorded += seen.recorded
    run.recomputed += seen.recomputed


def _run_steps(
    count: int, prepared: Prepared, phases: Phases, run: PracticeRun, enter: Callable[[str], None]
) -> None:
    for name, part in prepared.parts.items():
        phases.watch(name, part)
    with nullcontext() if prepared.seen else phases, warnings.catch_warnings():
        # Warnings about defaults of libraries, such as the kind of checkpoint.
        warnings.simplefilter("ignore")
        if prepared.drive is None:
            for number in range(count):
                _step(number, prepared, phases, run, enter)
            return
        announce = Announce(enter, partial(setattr, phases, "backward"), lambda: _take(prepared, run))
        driven = prepared.drive(count, announce)
        run.blocks, run.saved_bytes = driven.blocks, driven.saved_bytes
        if run.gradients:
            run.gradients[-1] |= {f"{BUFFER}{name}": each for name, each in driven.buffers.items()}


def _step(
    number: int, prepared: Prepared, phases: Phases, run: PracticeRun, enter: Callable[[str], None]
) -> None:
    seed(number)
    losses = []
    enter(f"the forward pass{of_step(number)}")
    for batch in prepared.batches(number):
        with prepared.around():
            outputs = outputs_of(prepared.model(**batch))
        losses.append(total_loss(prepared.in_loss(outputs), run.scales))
    present = [each for each in losses if each is not None]
    if not present:
        raise NoGradient
    enter(f"the backward pass{of_step(number)}")
    phases.backward = True
    torch.stack(present).sum().backward()
    phases.backward = False
    _take(prepared, run)


def _take(prepared: Prepared, run: PracticeRun) -> None:
    """Record the gradients of a step, and reset them."""
    parameters = prepared.parameters()
    run.gradients.append({name: _whole(each.grad) for name, each in parameters.items()})
    for each in parameters.values():
        each.grad = None


def _whole(gradient: Tensor | None) -> Tensor | None:
    """Return the whole of a sharded or sparse gradient; there is only one process."""
    if gradient is None:
        return None
    return dense(gradient.full_tensor() if isinstance(gradient, DTensor) else gradient)


def average(apart: Sequence[PracticeRun]) -> PracticeRun:
    """Return the expected record of processes that train together, from that of each one alone.

    Each process has the mean of all gradients; the records are joined in order, as by :func:`together`.
    """
    broken = next((each for each in apart if not each.is_whole), None)
    if broken is not None:
        return broken
    steps = [
        {name: _mean([each.get(name) for each in of_step]) for name in of_step[0]}
        for of_step in zip(*(each.gradients for each in apart), strict=True)
    ]
    return replace(together(apart), gradients=steps * len(apart))


def together(ranks: Sequence[PracticeRun]) -> PracticeRun:
    """Return one record for processes that have trained together: that of the first to fail, or of all."""
    broken = [(number, each) for number, each in enumerate(ranks) if not each.is_whole]
    if broken:
        number, first = min(broken, key=lambda each: _order(each[1]))
        return replace(first, stage=f"{first.stage} of rank {number}") if first.error else first
    return PracticeRun(
        gradients=[step for each in ranks for step in each.gradients],
        recorded=sum((each.recorded for each in ranks), Counter()),
        recomputed=sum((each.recomputed for each in ranks), Counter()),
        scales=dict(ranks[-1].scales),
        stage=ranks[0].stage,
        remark=ranks[0].remark,
        blocks=ranks[0].blocks,
        saved_bytes=ranks[0].saved_bytes,
    )


def _order(run: PracticeRun) -> tuple[bool, bool, int]:
    """Return a sort key that puts the process at fault first."""
    error = run.error
    is_late = error is not None and error.kind == "time limit"
    follows = error is not None and not error.is_death and _FOLLOWS.search(error.message) is not None
    # If a process hangs, the others wait at a later point.
    return follows, is_late, len(run.gradients)


def _mean(gradients: Sequence[Tensor | None]) -> Tensor | None:
    present = [each for each in gradients if each is not None]
    return torch.stack(present).sum(0) / len(gradients) if present else None
