"""The commands: each turns options into calls, and what they return into output and an exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class CannotRun(click.ClickException):
    """The command cannot do what it is asked for; the message says why, and what to do."""

    exit_code = 2


class _GivenPath(click.Path):
    """A path that need not exist; whoever opens it reports it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # A shell makes "" of a variable that is not set, and pathlib the current folder of that.
        return super().convert(value, param, ctx) if value else self.fail("a path is empty.", param, ctx)


paths_argument = click.argument("paths", nargs=-1, type=_GivenPath(path_type=Path))
"""The files and folders that a command is about."""
