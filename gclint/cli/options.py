"""Commands and their options, in groups; the options of settings are made of their definitions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import partial
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click

from gclint.cli import GivenPath
from gclint.settings.definitions import (
    BY_NAME,
    FUNCTIONS,
    IGNORES,
    LEVELS,
    PATH,
    SWITCH,
    WORDS,
    SettingDefinition,
)
from gclint.wording import closest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


_OTHERS = "Other options"
PATH_TYPE = click.Path(path_type=Path)
FILE_TYPE = click.Path(path_type=Path, dir_okay=False)
POSITIVE = click.FloatRange(min=0, min_open=True)
_Options = TypeVar("_Options")


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
        type=GivenPath(path_type=Path),
        help="Read the settings from FILE: a pyproject.toml, or a TOML file with the settings at top level.",
    )


def pop_settings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Remove the settings from the parameters of a command, and return them by field, None if not given."""
    return {
        definition.field: parameters.pop(definition.field)
        for definition in BY_NAME.values()
        if definition.field in parameters
    }


def taken(kind: type[_Options], parameters: dict[str, Any]) -> _Options:
    """Remove the fields of a dataclass from the parameters of a command, and return them as one."""
    return kind(**{each.name: parameters.pop(each.name) for each in fields(cast("Any", kind))})


def _option(option: MakeOption, definition: SettingDefinition) -> Callable[[Any], Any]:
    keywords: dict[str, Any] = {"help": definition.help, "default": None}
    if definition.kind is not SWITCH:
        keywords["metavar"] = definition.metavar
        keywords["callback"] = _converted(definition)
        keywords["multiple"] = definition.kind.takes_several
        if definition.kind is PATH:
            keywords["type"] = click.Path()
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


# -- groups of commands


class DefaultGroup(click.Group):
    """A group with a default command, which runs if the first argument is not the name of a command.

    The help text is that of the default command, with examples and the list of commands.
    """

    def __init__(
        self,
        name: str | None,
        *,
        default: click.Command,
        others: Sequence[click.Command],
        examples: str,
        **keywords: Any,
    ) -> None:
        super().__init__(
            name,
            commands=[default, *others],
            # Click does not rewrap a paragraph that begins with \b.
            help=f"{cleandoc(default.help or '')}\n\n\b\nExamples:\n{examples}",
            epilog=f"Only the first argument can be a command; the default is '{default.name}'. "
            "For a file or folder with the name of a command, write './NAME'.",
            no_args_is_help=False,
            **keywords,
        )
        self._default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, the default first."""
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command before arguments that do not name one."""
        if not args and ctx.resilient_parsing:  # A shell completes the first argument.
            return super().parse_args(ctx, args)
        own = [name for option in self.get_params(ctx) for name in option.opts]
        if not args or args[0] not in (*self.commands, *own):
            if args and not ctx.resilient_parsing:
                self._stop_at_typo(ctx, args[0], own)
            args = [str(self._default.name), *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what the first argument may be: a command, or what the default command takes."""
        context = self._default.make_context(self._default.name, [], parent=ctx, resilient_parsing=True)
        if incomplete.startswith("-"):
            return self._default.shell_complete(context, incomplete)
        paths = (each for each in self._default.get_params(context) if isinstance(each, click.Argument))
        return super().shell_complete(ctx, incomplete) or [
            item for each in paths for item in each.shell_complete(context, incomplete)
        ]

    def _stop_at_typo(self, context: click.Context, word: str, options: Sequence[str]) -> None:
        """Fail if a word is similar to the name of a command, and neither looks like a path nor exists."""
        if not word.isalpha() or os.path.lexists(word):
            return
        names = {name.lstrip("-"): name for name in (*self.commands, *options)}
        meant = closest(word, names)
        if meant is not None:
            context.fail(f"{word!r} is not a command, file or folder; did you mean {names[meant]!r}?")

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for the default command, and one for the others."""
        formatter.write_usage(ctx.command_path, " ".join(self._default.collect_usage_pieces(ctx)))
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="   or: ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands and the options of the default one."""
        self.format_commands(ctx, formatter)
        write_options(self._default.get_params(ctx), ctx, formatter)


class LazyCommand(click.Command):
    """Stands for a command whose module is imported only when it is called."""

    def __init__(self, name: str, *, module: str, attribute: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help)
        self._module = module
        self._attribute = attribute

    def make_context(self, *arguments: Any, **keywords: Any) -> click.Context:
        """Return the context of the command itself, which replaces this one from then on."""
        return self.loaded().make_context(*arguments, **keywords)

    def loaded(self) -> click.Command:
        """Return the command itself."""
        command: click.Command = getattr(import_module(self._module), self._attribute)
        return command
