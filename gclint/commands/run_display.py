"""What a terminal shows while models are run, for all commands that run some."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gclint.verify.files import Audience
from gclint.verify.run import Heard


class _Nobody:
    """An audience that is shown nothing."""

    def expect(self, sources: int) -> None:
        """Show nothing."""

    def take(self, heard: Heard) -> None:
        """Show nothing."""


@contextmanager
def run_display(*, is_shown: bool) -> Iterator[Audience]:
    """Show on a terminal what happens; yields whom to tell it.

    Args:
        is_shown: whether what is printed is for people.
    """
    if not (is_shown and sys.stderr.isatty()):
        yield _Nobody()
        return
    from gclint.report.live import live_table

    with live_table(sys.stderr) as table:
        yield table
