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
    from gclint.verify.worker.footprint.estimate import largest_within

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
    from gclint.verify.worker.footprint.estimate import largest_within

    assert largest_within(lambda number: 2000 + number, 1000, 8, 64) == (0, 2001, False)
    assert largest_within(lambda number: number, 1000, 8, 64) == (64, 64, True)


def test_a_size_that_cannot_be_run_is_said_and_takes_nothing_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    from gclint.verify.worker.footprint import estimate as room

    class Sized(SimpleNamespace):
        def sized(self, batch: int = 2, sequence: int = 8) -> Sized:
            return Sized(**{**vars(self), "batch": batch, "sequence": sequence})

    def take_step(sized: Sized, mode: str, *_: object) -> SimpleNamespace:
        if mode != "plain" and sized.sequence > 16:
            raise RuntimeError("windows of 16")
        return SimpleNamespace(peak_bytes=sized.batch * sized.sequence, state_bytes=0)

    monkeypatch.setattr(room, "take_step", take_step)
    plan = SimpleNamespace(batch=2, length=8)
    trainee: Any = Sized(
        situation=SimpleNamespace(plan=plan), reads_text=True, positions=None, batch=2, sequence=8
    )
    found = {(each.dimension, each.mode): each for each in room.fits(trainee, 1000)}
    assert found["batch", "non-reentrant"].largest == 125
    assert found["sequence", "plain"].largest == 500
    failed = found["sequence", "non-reentrant"]
    assert (failed.largest, failed.error) == (0, "RuntimeError: windows of 16")
