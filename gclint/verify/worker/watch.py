"""Lets the examination of a class report its progress, before something kills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gclint.verify.worker.child import used_seconds
from gclint.verify.worker.protocol import ClassResult, Mode, Progress, encode


class Watch(Protocol):
    """Receives the progress of the examination of a class."""

    def begin(self, scenario: str, mode: Mode, step: str) -> None:
        """Report what begins; call this before everything that may hang or kill the process.

        Args:
            scenario: the name of the scenario, such as ``default``.
            mode: the mode of the step; a death in ``plain`` makes a class not run, in others it is a failure.
            step: words that follow "during", such as ``the backward pass``.
        """

    def known(self, result: ClassResult) -> None:
        """Hand over the result so far, which is all that remains if the process dies."""


class Unwatched:
    """A watch that ignores everything."""

    def begin(self, scenario: str, mode: Mode, step: str) -> None:
        """Do nothing."""

    def known(self, result: ClassResult) -> None:
        """Do nothing."""


class Reporter:
    """A watch that sends everything to another process."""

    def __init__(self, source: str, name: str, send: Callable[[str], None]) -> None:
        """Remember what is examined.

        Args:
            source: the path of its file.
            name: the name of the class.
            send: takes each line.
        """
        self._source = source
        self._name = name
        self._send = send

    def begin(self, scenario: str, mode: Mode, step: str) -> None:
        """Send what begins."""
        self._send(encode(Progress(self._source, self._name, scenario, mode, step, used_seconds())))

    def known(self, result: ClassResult) -> None:
        """Send what is known so far."""
        self._send(encode(result))
