"""Options in groups, each under a heading of its own in the help text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import click

_OTHERS = "Other options"


class _GroupedOption(click.Option):
    def __init__(self, *arguments: Any, group: str, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help text shows its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group of options."""
        write_options(self.get_params(ctx), ctx, formatter)


def option_group(heading: str) -> Callable[..., Callable[[Any], Any]]:
    """Return a function like ``click.option`` whose options are shown under ``heading``."""
    return partial(click.option, cls=_GroupedOption, group=heading)


def write_options(
    parameters: Iterable[click.Parameter], context: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write a section for each group, in the order of their first options; the others come last."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in sorted(parameters, key=lambda each: not isinstance(each, _GroupedOption)):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            heading = parameter.group if isinstance(parameter, _GroupedOption) else _OTHERS
            groups.setdefault(heading, []).append(record)
    for heading, records in groups.items():
        with formatter.section(heading):
            formatter.write_dl(records)
