"""How the examination of a class tells its supervisor where it is, before something kills it."""

from __future__ import annotations

from typing import Protocol

from gclint.verify.worker.protocol import ClassResult, Mode


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
