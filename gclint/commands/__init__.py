"""The commands: each turns options into calls, and what they return into output and an exit status."""

from __future__ import annotations

import click


class CannotRun(click.ClickException):
    """The command cannot do what it is asked for; the message says why, and what to do."""

    exit_code = 2
