"""Measures how much runs of the same steps differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from torch import Tensor

from gclint.verify.worker.examination.comparison import Agreement, compare, deviation, is_nothing, same
from gclint.verify.worker.examination.run import Run, Step

Key = tuple[Literal["gradient", "output", "value", "attribute"], str]
"""What is compared: its kind and name."""
Noise = Mapping[Key, float]
"""How much each of these may differ although nothing is wrong."""


def noise(reference: Run, others: Iterable[Run]) -> dict[Key, float]:
    """Return the largest differences of runs from the reference, where they are not the same."""
    found: dict[Key, float] = {}
    for other in others:
        for key, one, another in _pairs(reference, other):
            if isinstance(one, Tensor) and isinstance(another, Tensor):
                distance = deviation(one, another)
            else:
                distance = 0.0 if same(one, another) else math.inf
            if distance:
                found[key] = max(found.get(key, 0.0), distance)
    return found


def differences(one: Run, other: Run) -> frozenset[Key]:
    """Return where two runs of the same kind differ."""
    return frozenset(
        key
        for key, mine, yours in _pairs(one, other)
        if not (
            compare(mine, yours) is Agreement.SAME
            if isinstance(mine, Tensor) and isinstance(yours, Tensor)
            else same(mine, yours)
        )
    )


def gradients(mine: Step, yours: Step) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the gradients that are not zero in one of two steps; a missing one counts as zero."""
    for name in {**mine.gradients, **yours.gradients}:
        one, other = mine.gradients.get(name), yours.gradients.get(name)
        if not (is_nothing(one) and is_nothing(other)):
            some = one if one is not None else other
            assert some is not None
            yield (
                name,
                some.new_zeros(some.shape) if one is None else one,
                (some.new_zeros(some.shape) if other is None else other),
            )


def _pairs(one: Run, other: Run) -> Iterator[tuple[Key, Any, Any]]:
    for mine, yours in zip(one.steps, other.steps, strict=False):
        for name, first, second in gradients(mine, yours):
            yield ("gradient", name), first, second
        for name in {**mine.outputs, **yours.outputs}:
            yield ("output", name), mine.outputs.get(name), yours.outputs.get(name)
    # The state afterwards can be compared only after the same number of steps.
    if len(one.steps) == len(other.steps):
        for name in {**one.values, **other.values}:
            yield ("value", name), one.values.get(name), other.values.get(name)
        for name in {**one.attributes, **other.attributes}:
            yield ("attribute", name), one.attributes.get(name), other.attributes.get(name)
