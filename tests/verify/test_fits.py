"""The search for what fits a budget, on needs as memory has them."""

from __future__ import annotations

from collections.abc import Callable

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


def test_nothing_fits_and_everything_fits() -> None:
    from gclint.verify.worker.footprint.fits import largest_within

    assert largest_within(lambda number: 2000 + number, 1000, 8, 64) == (0, 2001, False)
    assert largest_within(lambda number: number, 1000, 8, 64) == (64, 64, True)
