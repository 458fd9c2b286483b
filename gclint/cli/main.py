"""The command line: the group of all commands."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from gclint.cli.check import check_command
from gclint.cli.options import DefaultGroup, LazyCommand
from gclint.interruption import exit_status, interruptible
from gclint.streams import exit_without_output, prepare_streams

_EXAMPLES = (
    "  gclint src/transformers/models          report what breaks checkpointing\n"
    "  gclint --diff src/transformers/models   show the repairs as a diff\n"
    "  gclint --fix src/transformers/models    repair the files\n"
    "  gclint explain modeling_mine.py:42      explain a finding, or its absence\n"
    "  gclint rule GC001                       explain a rule\n"
    "  gclint verify modeling_mine.py          train the model for a few steps\n"
    "  gclint memory llama --seq 4096          estimate the memory for training"
)

_COMMANDS = [
    LazyCommand(name, module=f"gclint.cli.{module}", attribute=attribute, short_help=short_help)
    for name, module, attribute, short_help in (
        (
            *("explain", "explain", "explain_command"),
            "Explain how gclint understands a place, and why it reports something or not.",
        ),
        ("verify", "verify", "verify_group", "Train models with and without checkpointing, and compare."),
        ("memory", "memory", "memory", "Estimate the memory that training a model needs."),
        ("server", "about", "server", "Run the language server for editors."),
        ("rules", "about", "rules", "List the rules."),
        ("rule", "about", "rule", "Print the documentation of a rule."),
        ("test-rules", "about", "test_rules", "Hold rules of your own to their fixtures."),
        ("config", "about", "config_command", "Show the settings in force, and where each comes from."),
        ("clean", "cache", "clean", "Delete the cache."),
        ("completion", "about", "completion", "Print a shell completion script."),
    )
]


class _Commands(DefaultGroup):
    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; one that says nothing about an interruption just ends."""
        try:
            with interruptible():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            from gclint.report.printing import write_lines

            write_lines(("Interrupted.",), sys.stderr)
            ctx.exit(exit_status(error))


gclint = _Commands(
    "gclint",
    default=check_command,
    others=_COMMANDS,
    examples=_EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    prepare_streams()
    try:
        try:
            gclint.main(sys.argv[1:], prog_name="gclint")
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise
        exit_without_output(error)
