"""Training in bfloat16 as ``torch.autocast`` has it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.comparison import Agreement
from gclint.verify.worker.examination.subject import Subject
from gclint.verify.worker.practices import AUTOCAST, Practice
from gclint.verify.worker.protocol import Advice, SetUp
from gclint.verify.worker.training.group import Dressed, Group, Rank
from gclint.verify.worker.training.usual import batches, switch_on, trained_parameters

_TOLERANCE = 0.02
"""How far a gradient may be off with reentrant checkpointing, as a part of its norm.

What is recomputed there is cast again, so that sums of gradients are rounded in another order; 1 % was
measured on 31 model types.
"""


def _dress(practice: Practice, subject: Subject, _blocks: Sequence[Block], _rank: Rank) -> Dressed:
    switch_on(subject, practice.mode)
    kind = subject.device.type
    return Dressed(
        subject.model,
        trained_parameters(subject.model),
        batches(subject),
        lambda: torch.autocast(kind, dtype=torch.bfloat16),
    )


def _agreement(practice: Practice, expected: Tensor, found: Tensor, _noise: float) -> Agreement:
    if torch.equal(expected, found):
        return Agreement.SAME
    if practice.mode == "reentrant":
        distance = float((expected.double() - found.double()).norm())
        if distance <= _TOLERANCE * float(expected.double().norm()):
            return Agreement.SAME
    return Agreement.DIFFERENT


def _advise(rows: Sequence[SetUp]) -> Advice | None:
    working = [each.name for each in rows if each.outcome == "works"]
    if not working:
        return None
    setting = f"use_reentrant={working[0] != 'N'}"
    return Advice(AUTOCAST, setting, f"Under autocast in bfloat16, use {setting}.")


AUTOCASTING = Group(_dress, _advise, _agreement)
