"""Trains in bfloat16 with ``torch.autocast``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gclint.verify.worker.examination.agreement import Agreement, deviation
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.model_under_test import ModelUnderTest
from gclint.verify.worker.practices import AUTOCAST, Practice
from gclint.verify.worker.protocol import Advice, SetUp
from gclint.verify.worker.training.group import (
    PracticeGroup,
    Prepared,
    Rank,
    batches,
    preferring,
    trained_parameters,
)

_TIMES = 3
"""How much a gradient may differ, as a multiple of the effect of rounding the parameters to bfloat16.

Recomputation casts weights again, and adds up gradients in another order.
"""


def _prepare(
    practice: Practice, under_test: ModelUnderTest, _blocks: Sequence[Block], _rank: Rank
) -> Prepared:
    under_test.enable_checkpointing(practice.mode)
    kind = under_test.device.type
    return Prepared(
        under_test.model,
        trained_parameters(under_test.model),
        batches(under_test),
        around=lambda: torch.autocast(kind, dtype=torch.bfloat16),
    )


def agreement(_practice: Practice, expected: Tensor, found: Tensor, noise: float) -> Agreement:
    """Compare bit by bit, or relative to the effect of rounding on the gradient once that is known."""
    is_same = torch.equal(expected, found) or deviation(expected, found) <= _TIMES * noise
    return Agreement.SAME if is_same else Agreement.DIFFERENT


def _advise(rows: Sequence[SetUp]) -> Advice | None:
    working = [each.name for each in rows if each.outcome == "works"]
    failing = [each for each in rows if each.outcome == "fails"]
    if working:
        return preferring(
            AUTOCAST, "Under autocast in bfloat16", f"use_reentrant={working[0] != 'N'}", failing
        )
    if failing:
        return Advice(AUTOCAST, "", "Under autocast in bfloat16, checkpointing works in neither mode.")
    return None


AUTOCASTING = PracticeGroup(_prepare, _advise, agreement, rounding=torch.bfloat16)
"""Training in mixed precision."""
