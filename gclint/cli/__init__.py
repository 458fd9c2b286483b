"""The commands: each turns options into calls, and the results into output and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gclint.rule import Rule
    from gclint.run.baseline import Baseline
    from gclint.settings import Settings, Vocabulary


QUIET = f"{__name__}.quiet"
"""The key in a context's ``meta`` under which a command stores whether notes are suppressed."""


_DELETED = "the working directory has been deleted; change to one that exists"
_MOST_NAMED = 3
"""How many names of a repository's a note repeats."""


class CannotRun(click.ClickException):
    """The command cannot run; the message says why, and what to do."""

    exit_code = 2

    def format_message(self) -> str:
        """Return the message with everything that cannot be printed escaped."""
        from gclint.code.paths import printable

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
    overrides: Mapping[str, Any] = MappingProxyType({}),
) -> Settings:
    """Return the settings for ``paths``, at least one, with values from the command line by field.

    They are those of the nearest settings file, or of ``config``. The code runs in the environment of the
    interpreter ``python``, or in the active ones.

    Raises:
        CannotRun: the settings are invalid.
    """
    from gclint.code.packages import active_environments
    from gclint.settings import SettingsError, common_folder, load_settings

    try:
        own = use_extra_rules(overrides.get("extra_rules") or (), paths)
        own = own.overridden(pure_functions=overrides.get("pure_functions"))
        settings = _asked_for(load_settings(common_folder(paths), vocabulary(), config), overrides, own)
        if config is None:
            settings = replace(settings, read=partial(_inner_settings, overrides, own)).around(paths)
    except SettingsError as error:
        raise CannotRun(str(error)) from None
    except FileNotFoundError:  # Relative paths cannot be resolved.
        raise CannotRun(_DELETED) from None
    for note in settings.notes:
        print_once(note)
    if settings.library is not None:
        origin = settings.origins["library"]
        require_library(settings.library, f"{origin}: library" if origin.file else "--library")
    return replace(settings, environments=active_environments() if python is None else (python,))


def use_extra_rules(given: Sequence[str], paths: Iterable[Path]) -> Settings:
    """Load the rules of the user's own, and return the settings that name them: the user's, with an option.

    Installed modules are not looked for in ``paths``, nor in the repositories around them.

    Raises:
        CannotRun: the user's settings are invalid, or the rules cannot be used.
    """
    from gclint.settings import SettingsError, user_settings

    try:
        settings = user_settings().overridden(extra_rules=given)
    except SettingsError as error:
        raise CannotRun(str(error)) from None
    for note in settings.notes:
        print_once(note)
    if not settings.extra_rules:
        from gclint.rule import set_own_rules

        set_own_rules(())
        return settings
    from gclint.own import UnusableRules, load_rules

    try:
        load_rules(settings.extra_rules, paths)
    except UnusableRules as error:
        origin = settings.origins["extra-rules"]
        raise CannotRun(f"{f'{origin}: extra-rules' if origin.file else '--extra-rules'}: {error}") from None
    except FileNotFoundError:
        raise CannotRun(_DELETED) from None
    return settings


def _asked_for(settings: Settings, overrides: Mapping[str, Any], own: Settings) -> Settings:
    """Return the settings of a repository as the user has asked for them, with the user's own."""
    from gclint.code.paths import as_argument
    from gclint.settings.definitions import DEFINITIONS

    loaded = set(map(os.path.realpath, own.extra_rules))
    disbelieved = tuple(each for each in settings.extra_rules if os.path.realpath(each) not in loaded)
    if disbelieved:
        options = " ".join(f"--extra-rules {as_argument(each)}" for each in disbelieved[:_MOST_NAMED])
        print_once(
            f"{settings.origins['extra-rules']}: note: extra-rules is ignored, since it names code, and "
            f"gclint runs none because a repository says so; to run it, write {options}"
        )
    unvouched = [each for each in settings.pure_functions if each not in own.pure_functions]
    if unvouched:
        names = as_argument(",".join(unvouched[:_MOST_NAMED]))
        print_once(
            f"{settings.origins['pure-functions']}: note: pure-functions is ignored, since a repository "
            f"cannot vouch for code; to do so, write --pure-functions {names}"
        )
    fields = {each.field: each.name for each in DEFINITIONS if each.is_of_user}
    settings = settings.overridden(**{**overrides, **dict.fromkeys(fields, ())})
    origins = {name: each for name, each in settings.origins.items() if name not in fields.values()}
    origins |= {name: each for name, each in own.origins.items() if name in fields.values()}
    believed = {field: getattr(own, field) for field in fields}
    return replace(settings, **believed, disbelieved=disbelieved, origins=origins)


def _inner_settings(overrides: Mapping[str, Any], own: Settings, folder: Path) -> Settings | None:
    """Return the settings for the files in a folder of a run, if that has a settings file.

    Raises:
        CannotRun: they are invalid.
    """
    from gclint.settings import SettingsError, inner_settings

    try:
        settings = inner_settings(folder, vocabulary())
    except SettingsError as error:
        raise CannotRun(str(error)) from None
    if settings is None:
        return None
    for note in settings.notes:
        print_once(note)
    return _asked_for(settings, overrides, own)


def rules_of(settings: Settings) -> list[Rule]:
    """Return the rules that are to run.

    Raises:
        CannotRun: the settings name a rule that does not exist.
    """
    from gclint.rule import all_rules, held_back, selected_rules, unknown_selectors
    from gclint.wording import closest

    of_all = (settings, *settings.inner.values())
    unknown = ((each, *pair) for each in of_all for pair in unknown_selectors(each))
    for own, name, selector in unknown:
        meant = closest(selector, (each for rule in all_rules() for each in (rule.name, rule.code.lower())))
        hint = f"did you mean {meant.upper() if meant.startswith('gc') else meant!r}?" if meant else ""
        problem = f"there is no rule {selector!r}; {hint or 'gclint rules lists them'}"
        origin = own.origins.get(name)
        if own.disbelieved and origin and origin.file:
            continue  # It may be one of the rules that are not loaded, which has been said.
        raise CannotRun(f"{origin}: {name}: {problem}" if origin and origin.file else f"--{name}: {problem}")
    for rule in dict.fromkeys(rule for own in of_all for rule in held_back(own)):
        print_once(f"note: {rule.code} is in preview, so it runs only with --preview")
    return selected_rules(settings)


def print_once(note: str) -> None:
    """Print a line to standard error, unless it is suppressed or this command has already printed it."""
    from gclint.report.printing import write_lines

    context = click.get_current_context(silent=True)
    printed = printed_notes()
    is_quiet = context is not None and context.meta.get(QUIET, False)
    if note not in printed and not is_quiet:
        printed[note] = None
        write_lines((note,), sys.stderr)


def printed_notes() -> dict[str, None]:
    """Return the notes that :func:`print_once` has printed for this command, in order."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta.setdefault(__name__, {})


def vocabulary() -> Vocabulary:
    """Return the rules and formats that settings may name."""
    from gclint.report.formats import format_complaint
    from gclint.rule import rule_words
    from gclint.settings import Vocabulary

    return Vocabulary(rule_words, format_complaint)


def require_library(path: Path, origin: str) -> None:
    """Check that transformers is at ``path``, as the setting or option ``origin`` claims.

    Raises:
        CannotRun: it is not.
    """
    from gclint.code.packages import named_library

    if named_library(path) is None:
        raise CannotRun(
            f"{origin}: transformers was not found in {path}; pass the package folder, a checkout, or an "
            "environment in which it is installed"
        )


def settle_interrupted_fixes(paths: Sequence[Path], *, recover: bool = False) -> None:
    """Finish or undo writes of fixes that were interrupted; if files may not be changed to ``recover``, stop.

    Raises:
        CannotRun: some files may be repaired, and others that belong to them not.
    """
    from gclint.write.unfinished import journals

    if not journals():
        return
    from gclint.write import recovery
    from gclint.write.journal import Unfinished

    try:
        for note in recovery.recover(paths) if recover else recovery.refuse_unfinished(paths):
            print_once(note)
    except Unfinished as error:
        raise CannotRun(str(error)) from None


def name_leftovers(paths: Sequence[Path], files: Sequence[Path]) -> None:
    """Name what may be left of writes that nobody can finish, such as a journal in a repository."""
    from gclint.write.unfinished import journals, leftovers, notices

    left = leftovers(files)
    if left and journals():
        from gclint.write.recovery import unclaimed

        left = unclaimed(left, paths)
    for note in notices([*paths, *files], left):
        print_once(note)


def baseline_at(path: Path | None) -> Baseline | None:
    """Return the baseline in a file, if one is named.

    Raises:
        CannotRun: it cannot be read.
    """
    if path is None:
        return None
    from gclint.run.baseline import Baseline, BaselineError

    try:
        return Baseline.read(path)
    except BaselineError as error:
        raise CannotRun(str(error)) from None


class GivenPath(click.Path):
    """A path that need not exist; if it does not, opening it reports that."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        # A shell expands an unset variable to "", which pathlib would take for the current folder.
        return super().convert(value, param, ctx) if value else self.fail("a path is empty.", param, ctx)


paths_argument = click.argument("paths", nargs=-1, type=GivenPath(path_type=Path))
"""The argument for the files and folders of a command."""
