"""The commands: each turns options into calls, and what they return into output and an exit status."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

import click

if TYPE_CHECKING:
    from gclint.rule import Rule
    from gclint.settings import Settings, Vocabulary
    from gclint.settings.definitions import RuleWords


QUIET = f"{__name__}.quiet"
"""Under this name a command's context says whether it is to write no notes."""


class CannotRun(click.ClickException):
    """The command cannot do what it is asked for; the message says why, and what to do."""

    exit_code = 2

    def format_message(self) -> str:
        """Return the message as it can be printed."""
        from gclint.source.paths import printable

        return "\n".join(map(printable, self.message.split("\n")))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message; a terminal wraps it at words."""
        from gclint.report.printing import write_lines

        first, *rest = self.format_message().split("\n")
        write_lines((f"Error: {first}", *rest), sys.stderr if file is None else cast("TextIO", file))


def settings_of(
    paths: Sequence[Path],
    python: Path | None = None,
    config: Path | None = None,
    said: Mapping[str, Any] = MappingProxyType({}),
) -> Settings:
    """Return the settings for ``paths``, which are at least one.

    Args:
        paths: the files and folders that the command is about.
        python: the interpreter of the environment that the code runs in; None for the active ones.
        config: the file to read them from; None for the nearest.
        said: what the command line says, by the fields of settings.

    Raises:
        CannotRun: they cannot be used.
    """
    from gclint.settings import SettingsError, common_folder, load_settings
    from gclint.source.environments import active_environments

    try:
        settings = load_settings(common_folder(paths), vocabulary(), config).overridden(**said)
    except SettingsError as error:
        raise CannotRun(str(error)) from None
    except FileNotFoundError:  # What there is above a relative path, only the working directory knows.
        raise CannotRun("the working directory has been deleted; change to one that exists") from None
    for note in settings.notes:
        _tell_once(note)
    if settings.library is not None:
        origin = settings.origins["library"]
        require_library(settings.library, f"{origin}: library" if origin.file else "--library")
    return replace(settings, environments=active_environments() if python is None else (python,))


def rules_of(settings: Settings) -> list[Rule]:
    """Return the rules that are to run.

    Raises:
        CannotRun: the settings speak of a rule that there is not.
    """
    from gclint.rule import all_rules, held_back, selected_rules, unknown_selectors
    from gclint.spelling import closest

    for name, selector in unknown_selectors(settings):
        meant = closest(selector, (each for rule in all_rules() for each in (rule.name, rule.code.lower())))
        hint = f"did you mean {meant.upper() if meant.startswith('gc') else meant!r}?" if meant else ""
        problem = f"there is no rule {selector!r}; {hint or 'gclint rules lists them'}"
        origin = settings.origins.get(name)
        raise CannotRun(f"{origin}: {name}: {problem}" if origin and origin.file else f"--{name}: {problem}")
    for rule in held_back(settings):
        _tell_once(f"note: {rule.code} is in preview, so it runs only with --preview")
    return selected_rules(settings)


def _tell_once(note: str) -> None:
    """Write a line to standard error, unless this run of a command has already written it."""
    from gclint.report.printing import write_lines

    context = click.get_current_context(silent=True)
    told = context.meta.setdefault(__name__, set()) if context else set()
    is_quiet = context is not None and context.meta.get(QUIET, False)
    if note not in told and not is_quiet:
        told.add(note)
        write_lines((note,), sys.stderr)


def vocabulary() -> Vocabulary:
    """Return what settings may speak of."""
    from gclint.report.formats import FORMATS, format_complaint
    from gclint.settings import Vocabulary

    def rules() -> Sequence[RuleWords]:
        from gclint.rule import rule_words

        return rule_words()

    return Vocabulary(rules, tuple(FORMATS), format_complaint)


def require_library(path: Path, origin: str) -> None:
    """Make sure that transformers lies at ``path``, as ``origin`` says.

    Raises:
        CannotRun: it does not.
    """
    from gclint.source.packages import named_library

    if named_library(path) is None:
        raise CannotRun(
            f"{origin}: transformers was not found in {path}; pass the package folder, a checkout, or an "
            "environment in which it is installed"
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
    from gclint.report.printing import write_lines

    try:
        if recover:
            write_lines(recovery.recover(paths), sys.stderr)
        else:
            recovery.refuse_unfinished(paths)
    except recovery.Unfinished as error:
        raise CannotRun(str(error)) from None


class _GivenPath(click.Path):
    """A path that need not exist; if it does not, opening it reports that."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # A shell makes "" of a variable that is not set, and pathlib the current folder of that.
        return super().convert(value, param, ctx) if value else self.fail("a path is empty.", param, ctx)


paths_argument = click.argument("paths", nargs=-1, type=_GivenPath(path_type=Path))
"""The files and folders that a command is about."""
