"""A limit on the time that the analysis of a file takes: who wrote the file can make it take any."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SECONDS = 60.0
"""Of the CPU time that a program gets itself; the slowest files of transformers need three."""


class TookTooLong(BaseException):
    """The time is up. It is no ``Exception``, so that nothing catches it by mistake."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise :class:`TookTooLong` in the code inside when its time is up.

    Inside of another limit, the time of that one stands still. There is no limit on Windows, which has no
    such clock, and none in threads, in which Python handles no signals.
    """
    try:
        before = signal.signal(signal.SIGVTALRM, _end)
    except (AttributeError, ValueError):
        yield
        return
    outer = signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, *outer)
        signal.signal(signal.SIGVTALRM, before)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TookTooLong
