"""The commands: each turns options into calls, and what they return into output and an exit status."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gclint.settings import Settings


class CannotRun(click.ClickException):
    """The command cannot do what it is asked for; the message says why, and what to do."""

    exit_code = 2


def settings_of(paths: Sequence[Path]) -> Settings:
    """Return the settings for ``paths``, which are at least one.

    Raises:
        CannotRun: they cannot be used.
    """
    from gclint.rule import rule_settings
    from gclint.settings import SettingsError, common_folder, load_settings

    try:
        return load_settings(common_folder(paths), rule_settings())
    except SettingsError as error:
        raise CannotRun(str(error)) from None


class _GivenPath(click.Path):
    """A path that need not exist; whoever opens it reports it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # A shell makes "" of a variable that is not set, and pathlib the current folder of that.
        return super().convert(value, param, ctx) if value else self.fail("a path is empty.", param, ctx)


paths_argument = click.argument("paths", nargs=-1, type=_GivenPath(path_type=Path))
"""The files and folders that a command is about."""


def include_option(option: Callable[..., Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return what adds the option for further files to a command.

    Args:
        option: makes one, like ``click.option``.
    """
    return option(
        "--include",
        metavar="PATTERN",
        multiple=True,
        help="In folders, check files that match PATTERN too, such as '*.py'; no tests and no builds.",
    )
