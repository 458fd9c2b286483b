"""What a terminal shows while models are run, for all commands that run models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gclint.verify.files import Audience
from gclint.verify.run import Heard


class _Nobody:
    """An audience for runs without a terminal: it shows nothing."""

    def expect(self, sources: int) -> None:
        """Show nothing."""

    def take(self, heard: Heard) -> None:
        """Show nothing."""

    def note(self, words: str) -> None:
        """Show nothing."""


@contextmanager
def run_display(*, is_shown: bool) -> Iterator[Audience]:
    """Show the progress of a run on a terminal; yields the audience to pass events to.

    Args:
        is_shown: whether the output is meant for people.
    """
    if not (is_shown and sys.stderr.isatty()):
        yield _Nobody()
        return
    from gclint.report.live import live_table

    with live_table(sys.stderr) as table:
        yield table
