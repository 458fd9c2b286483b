"""The command line: which commands there are."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import NoReturn

from gclint.commands.check import check_command
from gclint.commands.default_group import DefaultGroup, LazyCommand
from gclint.commands.rules import rule, rules

_EXAMPLES = """\
  gclint src/transformers/models          report what breaks checkpointing
  gclint --diff src/transformers/models   show how it would be repaired
  gclint --fix src/transformers/models    repair it
  gclint rule GC001                       explain a rule
  gclint verify modeling_mine.py          train the model for a few steps"""

_VERIFY = LazyCommand(
    "verify",
    module="gclint.commands.verify",
    attribute="verify_group",
    short_help="Train models with and without checkpointing, and compare.",
)

gclint = DefaultGroup("gclint", default=check_command, others=[_VERIFY, rules, rule], examples=_EXAMPLES)


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        # A file name or a source line may hold what the terminal's encoding has not.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    gclint.main(sys.argv[1:], prog_name="gclint")
