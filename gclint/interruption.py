"""What ends work early: an interruption at the terminal, a signal that asks for it, or a limit of time."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """Raised in place of ``KeyboardInterrupt`` where the signal is known."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def number_of(error: KeyboardInterrupt) -> int:
    """Return the number of the signal."""
    return error.number if isinstance(error, Interrupted) else signal.SIGINT


def exit_status(error: KeyboardInterrupt) -> int:
    """Return the exit status of a run that was ended so, as shells report it."""
    return 128 + number_of(error)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise :class:`Interrupted` at the first signal that asks this process to end; the second one ends it.

    A signal that is ignored, as ``nohup`` and shells arrange it, stays so.
    """
    before = {}
    for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            with suppress(ValueError):  # Only the main thread may set this.
                before[number] = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    for name in _SIGNALS:
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is _interrupt:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    raise Interrupted(number)


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
