"""The commands ``gclint rule`` and ``gclint rules``: say what the rules are."""

from __future__ import annotations

import sys

import click


@click.command()
@click.argument("wanted", metavar="RULE")
def rule(wanted: str) -> None:
    """Print the documentation of a rule.

    RULE is a code such as GC001, or a name such as positional-cache.
    """
    from gclint.report.rules import write_documentation
    from gclint.rule import all_rules

    for known in all_rules():
        if wanted.upper() == known.code or wanted.lower() == known.name:
            write_documentation(sys.stdout, known)
            return
    raise click.UsageError(f"there is no rule {wanted!r}; 'gclint rules' lists them")


@click.command()
def rules() -> None:
    """List the rules."""
    from gclint.report.rules import write_list
    from gclint.rule import all_rules

    write_list(sys.stdout, all_rules())
