"""Finds the largest batch and the longest sequence that fit a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gclint.verify.worker.estimates import Dimension, Fit
from gclint.verify.worker.footprint.building import Trainee, in_a_line
from gclint.verify.worker.footprint.step import take_step
from gclint.verify.worker.modes import Mode

_MODES: tuple[Mode, ...] = ("plain", "non-reentrant")
_TRIES = 16
_MOST_TOKENS = 1 << 25
"""The most tokens in a batch, or items without tokens: no batch is larger, and tokens are real tensors."""


def fits(trainee: Trainee, budget: int, state: int) -> Iterator[Fit]:
    """Yield what fits a budget of bytes, without checkpointing and with it, beside the optimizer's state."""
    plan = trainee.situation.plan
    length = plan.length if trainee.reads_text else 1
    dimensions: list[tuple[Dimension, int, int]] = [("batch", plan.batch, _MOST_TOKENS // length)]
    if trainee.reads_text:
        most = min(_MOST_TOKENS // plan.batch, max(trainee.positions or _MOST_TOKENS, length))
        dimensions.append(("sequence", length, most))
    for dimension, start, most in dimensions:
        for mode in _MODES:

            def need(number: int, dimension: Dimension = dimension, mode: Mode = mode) -> int:
                sized = (
                    trainee.sized(batch=number) if dimension == "batch" else trainee.sized(sequence=number)
                )
                return take_step(sized, mode, (), lambda _kept: None).peak_bytes + state

            try:
                largest, needed, is_bound = largest_within(need, budget, start, most)
            except Exception as error:
                # A model need not run at every size, for example with a sequence in windows.
                yield Fit(dimension, mode, 0, 0, error=in_a_line(error))
            else:
                yield Fit(dimension, mode, largest, needed, is_bound)


def largest_within(need: Callable[[int], int], budget: int, start: int, most: int) -> tuple[int, int, bool]:
    """Return the largest number up to ``most`` whose need of memory is within a budget.

    Needs grow linearly or faster, as memory does with tokens. So if a need lies on the line through two
    smaller ones, needs grow linearly up to there, and the next number need not be tried.

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
        if high - low <= 1:
            break
        guess, expected = _next(known, budget, low, high)
    return low, known[low] if low else need(1), low == most


def _next(known: dict[int, int], budget: int, low: int, high: int) -> tuple[int, int | None]:
    """Return the number to try next, and its need if it is the largest and needs grow linearly."""
    if not low:
        return max(high // 2, 1), None
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
