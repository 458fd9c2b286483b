"""The search for what fits a budget, on needs as memory has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("need", "most_tries"),
    [
        (lambda number: 7 + 3 * number, 4),
        (lambda number: max(500 + number, 9 * number), 9),
        (lambda number: 40 + 2 * number + number * number // 50, 9),
        (lambda number: max(900, 11 * number), 13),
    ],
)
@pytest.mark.parametrize("start", [1, 2, 60, 5000])
def test_the_largest_that_fits_is_found(need: Callable[[int], int], most_tries: int, start: int) -> None:
    from gclint.verify.worker.footprint.fits import largest_within

    tried: list[int] = []

    def count(number: int) -> int:
        tried.append(number)
        return need(number)

    largest, needed, is_limit = largest_within(count, 1000, start, 100_000)
    assert need(largest) <= 1000 < need(largest + 1)
    assert needed == need(largest)
    assert not is_limit
    assert start > 60 or len(tried) <= most_tries


def test_that_nothing_fits_is_known_after_three_tries() -> None:
    from gclint.verify.worker.footprint.fits import largest_within

    tried: list[int] = []

    def need(number: int) -> int:
        tried.append(number)
        return 2000 + number

    assert largest_within(need, 1000, 4096, 8192) == (0, 2001, False)
    assert tried == [4096, 2048, 1]


def test_nothing_fits_and_everything_fits() -> None:
    from gclint.verify.worker.footprint.fits import largest_within

    assert largest_within(lambda number: 2000 + number, 1000, 8, 64) == (0, 2001, False)
    assert largest_within(lambda number: number, 1000, 8, 64) == (64, 64, True)


def test_a_size_that_cannot_be_run_is_said_and_takes_nothing_from_the_others() -> None:
    from types import SimpleNamespace

    from gclint.verify.worker.footprint.fits import dimensions, fits

    class Sized(SimpleNamespace):
        def sized(self, batch: int = 2, sequence: int = 8) -> Sized:
            return Sized(**{**vars(self), "batch": batch, "sequence": sequence})

    def need(sized: Sized, mode: str) -> int:
        if mode != "plain" and sized.sequence > 16:
            raise RuntimeError("windows of 16")
        return int(sized.batch * sized.sequence)

    plan, question = SimpleNamespace(batch=2, length=8), SimpleNamespace(budget=1000)
    trainee: Any = Sized(
        situation=SimpleNamespace(plan=plan), question=question, reads_text=True, positions=None
    )
    steps: Any = SimpleNamespace(trainee=trainee.sized(), need=need)
    found = {(each.dimension, each.mode): each for name in dimensions(trainee) for each in fits(steps, name)}
    assert found["batch", "non-reentrant"].largest == 125
    assert found["sequence", "plain"].largest == 500
    failed = found["sequence", "non-reentrant"]
    assert (failed.largest, failed.error) == (0, "RuntimeError: windows of 16")
