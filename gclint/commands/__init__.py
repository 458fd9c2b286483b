"""The commands: each turns options into calls, and what they return into output and an exit status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gclint.settings import Settings


class CannotRun(click.ClickException):
    """The command cannot do what it is asked for; the message says why, and what to do."""

    exit_code = 2

    def format_message(self) -> str:
        """Return the message as it can be printed."""
        from gclint.source.paths import printable

        return "\n".join(map(printable, self.message.split("\n")))


def settings_of(paths: Sequence[Path], python: Path | None = None) -> Settings:
    """Return the settings for ``paths``, which are at least one.

    Args:
        paths: the files and folders that the command is about.
        python: the interpreter of the environment that the code runs in; None for the active ones.

    Raises:
        CannotRun: they cannot be used.
    """
    from gclint.rule import rule_settings
    from gclint.settings import SettingsError, common_folder, load_settings
    from gclint.source.environments import active_environments

    try:
        settings = load_settings(common_folder(paths), rule_settings())
    except SettingsError as error:
        raise CannotRun(str(error)) from None
    except FileNotFoundError:  # What there is above a relative path, only the working directory knows.
        raise CannotRun("the working directory has been deleted; change to one that exists") from None
    if settings.library is not None:
        require_library(settings.library, "library in [tool.gclint]")
    return replace(settings, environments=active_environments() if python is None else (python,))


def require_library(path: Path, origin: str) -> None:
    """Make sure that transformers lies at ``path``, as ``origin`` says.

    Raises:
        CannotRun: it does not.
    """
    from gclint.source.packages import named_library

    if named_library(path) is None:
        raise CannotRun(
            f"{origin}: there is no transformers in {path}; name the folder of the package, a checkout, or "
            "an environment that it is installed in"
        )


def settle_interrupted_fixes(paths: Iterable[Path], *, recover: bool = False) -> None:
    """Finish or undo fixes that were interrupted while they were written, or stop.

    Args:
        paths: the files and folders that the command is about.
        recover: whether files may be changed; else any such fix is a reason to stop.

    Raises:
        CannotRun: what is written may not fit together.
    """
    from gclint.engine.unfinished import journals_above

    if not journals_above(paths):
        return
    from gclint.engine import recovery

    try:
        if recover:
            for line in recovery.recover(paths):
                click.echo(line, err=True)
        else:
            recovery.refuse_unfinished(paths)
    except recovery.Unfinished as error:
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
