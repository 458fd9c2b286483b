"""Sizes of images that suit a model, told from an error."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.failure import Failure
from gclint.verify.worker.synthesis.plan import Plan, Situation

_LARGEST = 256


def _whole_windows(situation: Situation, failure: Failure) -> Plan | None:
    """Stages that are smaller than the windows that attention is limited to."""
    sides = failure.numbers(
        r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)"
    ) or failure.numbers(r"output with shape \[.*, (\d+)\] doesn't match the broadcast shape \[.*, (\d+)\]")
    if sides is None or not isinstance(situation.get("window_size"), int):
        return None
    if sides[0] >= sides[1] or any(math.isqrt(side) ** 2 != side for side in sides):
        return None
    return _twice(situation)


def _twice(situation: Situation) -> Plan | None:
    sizes = situation.plan.sizes
    if 2 * sizes.image > _LARGEST:
        return None
    return replace(situation.plan, sizes=replace(sizes, image=2 * sizes.image))


REPAIRS: tuple[Any, ...] = (_whole_windows,)
