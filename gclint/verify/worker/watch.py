"""How the examination of a class tells its supervisor where it is, before something kills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gclint.verify.worker.protocol import ClassResult, Mode, Progress, encode


class Watch(Protocol):
    """The supervisor's ear in the process that examines a class."""

    def begin(self, scenario: str, mode: Mode, step: str) -> None:
        """Say what begins; to be called before everything that may hang or kill the process.

        Args:
            scenario: what is switched on, such as ``default``.
            mode: how the step is run; what dies in ``plain`` cannot be judged, else it has failed.
            step: words that follow "during", such as ``the backward pass``.
        """

    def known(self, result: ClassResult) -> None:
        """Hand over what is known so far; it is all that is left if the process dies."""


class Unwatched:
    """A watch that nobody keeps."""

    def begin(self, scenario: str, mode: Mode, step: str) -> None:
        """Do nothing."""

    def known(self, result: ClassResult) -> None:
        """Do nothing."""


class Reporter:
    """A watch that sends what it is told to another process."""

    def __init__(self, source: str, name: str, send: Callable[[str], None]) -> None:
        """Take note of what is examined.

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
        self._send(encode(Progress(self._source, self._name, scenario, mode, step)))

    def known(self, result: ClassResult) -> None:
        """Send what is known so far."""
        self._send(encode(result))
