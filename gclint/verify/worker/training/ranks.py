"""Combines the records of processes that train together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gclint.verify.worker.training.practice_run import PracticeRun

_FOLLOWS = re.compile(r"[Cc]onnection (closed|reset)|closed by peer|Timed out waiting|Broken pipe|Socket")
"""Errors of a process because another one has ended or does not answer."""


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
