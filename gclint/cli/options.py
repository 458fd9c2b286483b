"""The options of commands, in groups with a heading each; those of settings are made of their definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from gclint.level import Level
from gclint.settings.definitions import (
    BY_NAME,
    FUNCTIONS,
    IGNORES,
    LEVEL,
    LEVELS,
    PATH,
    SWITCH,
    WORDS,
    SettingDefinition,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_OTHERS = "Other options"
PATH_TYPE = click.Path(path_type=Path)
FILE_TYPE = click.Path(path_type=Path, dir_okay=False)
POSITIVE = click.FloatRange(min=0, min_open=True)


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


MakeOption: TypeAlias = "Callable[..., Callable[[Any], Any]]"
"""Makes an option, like ``click.option``."""


def together(options: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return a decorator that adds several options to a command, in this order."""

    def add(command: Any) -> Any:
        for each in reversed(options):
            command = each(command)
        return command

    return add


def choice_option(
    option: MakeOption, name: str, choices: Iterable[str], about: str, *names: str, default: str = "full"
) -> Callable[[Any], Any]:
    """Return a decorator that adds an option with a few values, of which one is the default, to a command."""
    kind = click.Choice(list(choices))
    return option(name, *names, type=kind, default=default, show_default=True, help=about)


def setting_options(option: MakeOption, *names: str) -> Callable[[Any], Any]:
    """Return a decorator that adds the options for the settings with these names to a command."""
    return together([_option(option, BY_NAME[name]) for name in names])


def config_option(option: MakeOption) -> Callable[[Any], Any]:
    """Return a decorator that adds the option for a settings file to a command."""
    return option(
        "--config",
        metavar="FILE",
        type=PATH_TYPE,
        callback=_not_empty,
        help="Read the settings from FILE: a pyproject.toml, or a TOML file with the settings at top level.",
    )


def pop_settings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Remove the settings from the parameters of a command, and return them by field, None if not given."""
    return {
        definition.field: parameters.pop(definition.field)
        for definition in BY_NAME.values()
        if definition.field in parameters
    }


def _option(option: MakeOption, definition: SettingDefinition) -> Callable[[Any], Any]:
    keywords: dict[str, Any] = {"help": definition.help, "default": None}
    if definition.kind is not SWITCH:
        keywords["metavar"] = definition.metavar
        keywords["callback"] = _converted(definition)
        keywords["multiple"] = definition.kind.takes_several
        if definition.kind is WORDS:
            keywords["shell_complete"] = complete_rules
        elif definition.kind is PATH:
            keywords["type"] = click.Path()
        elif definition.kind is LEVEL:
            keywords["shell_complete"] = _complete_level
    return option(definition.option, definition.field, **keywords)


def _converted(definition: SettingDefinition) -> Callable[..., object]:
    def convert(_context: click.Context, _option: click.Parameter, value: Any) -> object:
        if value is None or value == ():
            return None
        try:
            if definition.kind in (WORDS, FUNCTIONS):
                value = [part for each in value for part in each.split(",")]
            elif definition.kind is IGNORES:
                value = _ignores(part for each in value for part in each.split(","))
            elif definition.kind is LEVELS:
                value = dict(
                    _pair(part, "RULE:LEVEL", "GC001:note") for each in value for part in each.split(",")
                )
            elif definition.kind.takes_several:
                value = list(value)
            return definition.kind.convert(value, Path())
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return convert


def complete_rules(context: click.Context, option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the codes and names of rules that complete the text; several are separated by commas."""
    from click.shell_completion import CompletionItem

    from gclint.rule import EVERYTHING

    done, comma, word = incomplete.rpartition(",")
    items = [CompletionItem(EVERYTHING, help="all rules")] if EVERYTHING.startswith(word.upper()) else []
    items += complete_rule(context, option, word)
    return [CompletionItem(f"{done}{comma}{item.value}", help=item.help) for item in items]


def complete_rule(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the codes and names of rules that complete the text."""
    from click.shell_completion import CompletionItem

    from gclint.rule import all_rules

    pairs = [(rule.code, rule.name) for rule in all_rules()]
    items = [
        CompletionItem(word, help=other)
        for code, name in pairs
        for word, other in ((code, name), (name, code))
    ]
    return [item for item in items if item.value.lower().startswith(incomplete.lower())]


def _complete_level(
    _context: click.Context, _option: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(each.value) for each in Level if each.value.startswith(incomplete)]


def _ignores(parts: Iterable[str]) -> dict[str, list[str]]:
    """Return the rules by pattern, from parts of the form ``PATTERN:RULE``."""
    ignores: dict[str, list[str]] = {}
    for part in parts:
        pattern, selector = _pair(part, "PATTERN:RULE", "src/legacy/*:GC001")
        ignores.setdefault(pattern, []).append(selector)
    return ignores


def _pair(part: str, form: str, example: str) -> tuple[str, str]:
    """Return what is before and behind the last colon of a part."""
    first, colon, last = part.strip().rpartition(":")
    if not colon:
        raise ValueError(f"{part!r} is not of the form {form}, such as '{example}'")
    return first, last


def _not_empty(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and not value.name and str(value) == ".":
        raise click.BadParameter("a path is empty.")
    return value
