"""The search for what fits a budget, and for what would help if nothing does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gclint.verify.worker.estimates import Dimension, Fit, Help, Lora, Sharding
from gclint.verify.worker.footprint.building import Trainee, in_a_line
from gclint.verify.worker.footprint.extrapolation import MeasuredSteps
from gclint.verify.worker.modes import Mode

_FITTED: tuple[Mode, ...] = ("plain", "non-reentrant")
_TRIES = 16
_MOST_TOKENS = 1 << 25
"""The most tokens in a batch, or items without tokens: no batch is larger, and tokens are real tensors."""
_KNOBS: dict[str, dict[str, Any]] = {
    "--optimizer adamw-8bit": {"optimizer": "adamw-8bit"},
    "--shard zero3:8": {"sharding": Sharding(3, 8)},
    "--lora r=16": {"lora": Lora()},
    "--lora r=16 --bits 4": {"lora": Lora(), "bits": 4},
}
"""What may help if not even one item fits, by the options that set it."""


def dimensions(trainee: Trainee) -> tuple[Dimension, ...]:
    """Return what can be smaller or larger."""
    return ("batch", "sequence") if trainee.reads_text else ("batch",)


def fits(steps: MeasuredSteps, dimension: Dimension) -> Iterator[Fit]:
    """Yield what fits the budget, without checkpointing and with it, beside the optimizer's state."""
    trainee = steps.trainee
    budget, plan = trainee.question.budget, trainee.situation.plan
    assert budget is not None
    if dimension == "batch":
        start, most = plan.batch, _MOST_TOKENS // (plan.length if trainee.reads_text else 1)
    else:
        start = plan.length
        most = min(_MOST_TOKENS // plan.batch, max(trainee.positions or _MOST_TOKENS, start))
    for mode in _FITTED:

        def need(number: int, mode: Mode = mode) -> int:
            return steps.need(trainee.sized(**{dimension: number}), mode)

        try:
            largest, needed, is_bound = largest_within(need, budget, start, most)
        except Exception as error:
            # A model need not run at every size, for example with a sequence in windows.
            yield Fit(dimension, mode, 0, 0, error=in_a_line(error))
        else:
            yield Fit(dimension, mode, largest, needed, is_bound)


def largest_within(need: Callable[[int], int], budget: int, start: int, most: int) -> tuple[int, int, bool]:
    """Return the largest number up to ``most`` whose need of memory is within a budget.

    Needs grow linearly or faster, as memory does with tokens. So they are never below the line through two
    larger or two smaller ones. If a need lies on the line through two smaller ones, needs grow linearly up to
    there, and the next number need not be tried.

    Returns:
        The number, 0 if there is none, what it (or 1) needs, and whether it is ``most``.
    """
    known: dict[int, int] = {}
    low, high = 0, most + 1
    guess, expected = min(start, most), None
    for _ in range(_TRIES):
        known[guess] = need(guess)
        if known[guess] > budget:
            high = guess
        else:
            low = guess
            if known[guess] == expected and guess < most:
                break
        if not low and len(known) > 1:
            below, _ = _on_line(known, budget, *sorted(known)[:2])
            high = min(high, max(below, 0) + 1)
        if high - low <= 1:
            break
        guess, expected = _next(known, budget, low, high)
    return low, known[low] if low else need(1), low == most


def _next(known: dict[int, int], budget: int, low: int, high: int) -> tuple[int, int | None]:
    """Return the number to try next, and its need if it is the largest and needs grow linearly."""
    if not low:
        return (high - 1 if len(known) > 1 else max(high // 2, 1)), None
    smaller = [each for each in known if each < low]
    if smaller:
        guess, expected = _on_line(known, budget, max(smaller), low)
        if low < guess < high:
            return guess, expected
    if high in known:
        # The need on this line is never below the real one.
        guess, _ = _on_line(known, budget, low, high)
        return min(max(guess, low + 1), high - 1), None
    return min(2 * low, high - 1), None


def _on_line(known: dict[int, int], budget: int, one: int, other: int) -> tuple[int, int]:
    """Return the largest number within the budget on the line through two needs, and its own need there."""
    rise, run = known[other] - known[one], other - one
    if rise <= 0:
        return 0, 0
    guess = one + (budget - known[one]) * run // rise
    return guess, known[one] + (guess - one) * rise // run


def helping(steps: MeasuredSteps) -> Iterator[Help]:
    """Yield what a single item needs with checkpointing and another way to train, the least change first."""
    question = steps.trainee.question
    for option, change in _KNOBS.items():
        changed = replace(question, **change)
        if changed == question:
            continue
        try:
            trainee = replace(steps.trainee, question=changed).sized(batch=1)
            needed = steps.need(trainee, "non-reentrant")
        except Exception:  # A model may have no layers for adapters.
            continue
        yield Help(option, needed)
