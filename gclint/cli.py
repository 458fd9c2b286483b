"""The command line: finds the command that is meant."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import NoReturn

from gclint.commands.lint import lint
from gclint.commands.rules import rule, rules


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        # A file name or a source line may hold what the terminal's encoding has not.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:]
    if arguments[:1] == ["verify"]:
        from gclint.commands.verify import main as verify

        verify(arguments[1:])
    for command in (rule, rules):
        if arguments[:1] == [command.name]:
            command.main(arguments[1:], prog_name=f"gclint {command.name}")
    lint.main(arguments, prog_name="gclint")
