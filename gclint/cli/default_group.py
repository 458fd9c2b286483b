"""A group of commands, one of which runs where none is named."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gclint.cli.options import write_options
from gclint.wording import closest


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
        found = super().shell_complete(ctx, incomplete)
        context = self._default.make_context(self._default.name, [], parent=ctx, resilient_parsing=True)
        if incomplete.startswith("-"):
            known = {item.value for item in found}
            own = self._default.shell_complete(context, incomplete)
            return [*found, *(item for item in own if item.value not in known)]
        if found:
            # If the shell were asked to complete paths itself, it would drop the commands.
            names = sorted(each.name for each in Path().iterdir()) if incomplete else []
            names = [name for name in names if name.startswith(incomplete)]
            return [*found, *map(CompletionItem, names)]
        paths = [each for each in self._default.get_params(context) if isinstance(each, click.Argument)]
        return [item for each in paths for item in each.shell_complete(context, incomplete)]

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
