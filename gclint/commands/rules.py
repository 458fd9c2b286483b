"""The commands ``gclint rule`` and ``gclint rules``: print the documentation of rules."""

from __future__ import annotations

import sys

import click

from gclint.commands.setting_options import complete_rule
from gclint.report.rules import DOCUMENTS, LISTS


@click.command()
@click.argument("wanted", metavar="RULE", shell_complete=complete_rule)
@click.option(
    "--output-format",
    type=click.Choice(list(DOCUMENTS)),
    default="full",
    show_default=True,
    help="Print formatted text, JSON for programs, or Markdown.",
)
def rule(wanted: str, output_format: str) -> None:
    """Print the documentation of a rule.

    RULE is a code such as GC001, or a name such as positional-cache.
    """
    from gclint.rule import all_rules
    from gclint.spelling import closest

    for known in all_rules():
        if wanted.upper() == known.code or wanted.lower() == known.name:
            DOCUMENTS[output_format](sys.stdout, known)
            return
    meant = closest(wanted, (known.name for known in all_rules()))
    guess = f"did you mean {meant}? " if meant else ""
    raise click.UsageError(f"there is no rule {wanted!r}; {guess}'gclint rules' lists them")


@click.command()
@click.option(
    "--output-format",
    type=click.Choice(list(LISTS)),
    default="full",
    show_default=True,
    help="Print a line per rule, or a JSON list.",
)
def rules(output_format: str) -> None:
    """List the rules."""
    from gclint.rule import all_rules

    LISTS[output_format](sys.stdout, all_rules())
