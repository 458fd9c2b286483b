"""The command ``gclint explain``: how a place in the code is understood, and why rules are silent there."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gclint.cli import CannotRun, baseline_at, paths_argument, rules_of, settings_of
from gclint.cli.options import (
    GroupedCommand,
    choice_option,
    config_option,
    option_group,
    pop_settings,
    setting_options,
)
from gclint.finding import Position
from gclint.report.explanation import FORMATS
from gclint.wording import counted

if TYPE_CHECKING:
    from gclint.code.file import SourceFile
    from gclint.code.project import Project
    from gclint.settings import Settings

_PLACE = re.compile(r"(?P<path>.+?):(?P<row>\d{1,18})(?::(?P<column>\d{1,18}))?", re.DOTALL)
_MOST_BESIDE = 20
"""In a folder with more modeling files, only those of the same model are part of the run by default."""


_assumed = option_group("Settings to try out")


@click.command("explain", cls=GroupedCommand)
@click.argument("place", metavar="FILE:LINE[:COLUMN]")
@paths_argument
@choice_option(click.option, "--output-format", FORMATS, "Print text, or JSON for programs.")
@setting_options(
    _assumed, "select", "ignore", "extra-rules", "pure-functions", "target-version", "library", "baseline"
)
@config_option(click.option)
def explain_command(
    place: str, paths: tuple[Path, ...], output_format: str, config: Path | None, **flags: Any
) -> None:
    """Explain how gclint understands a place.

    Prints the stack, the block and its bases, what enables checkpointing, the call sites with every
    argument, and for each rule its findings, or why it is silent.

    PATHS are the files and folders of the run that is explained, by default the folder of FILE. The exit
    status is 0 if the place could be explained, whatever was found there, and 2 otherwise.
    """
    from gclint.code.file import UnreadableFile
    from gclint.code.project import Project
    from gclint.code.syntax import syntax_problem
    from gclint.interruption import TookTooLong, limited
    from gclint.rule import all_rules
    from gclint.run.check import TOO_SLOW
    from gclint.run.explain import Explainer

    path, position = _parsed(place)
    settings = settings_of(paths or (path,), None, config, pop_settings(flags))
    selected = rules_of(settings)
    settings, given = _given(path, paths, settings)
    selected = rules_of(settings)
    project = Project(settings, given)
    try:
        file = project.file(path)
    except UnreadableFile as error:
        raise CannotRun(f"{path}{_at(error.position)}: {error.message}") from None
    except OSError as error:
        raise CannotRun(f"{path}: this file cannot be read: {error.strerror or error}") from None
    problem = syntax_problem(file)
    if problem is not None:
        raise CannotRun(f"{path}{_at(problem.position)}: {problem.message}")
    _require_inside(file, path, position)
    try:
        with limited():
            known, notes = baseline_at(settings.baseline), _notes(project, path, settings)
            explainer = Explainer(project, path, all_rules(), selected, baseline=known)
            explanation = explainer.explain(position, notes)
    except TookTooLong:
        raise CannotRun(f"{path}: {TOO_SLOW}") from None
    FORMATS[output_format](explanation, sys.stdout)


def _parsed(place: str) -> tuple[Path, Position]:
    """Return the file and the position that ``FILE:LINE[:COLUMN]`` stands for.

    A file name may contain colons itself: the first reading whose file exists is taken.
    """
    candidates = []
    # The longest suffix first: a drive and a file name may contain colons, too.
    for match in (_PLACE.fullmatch(place), re.fullmatch(r"(?P<path>.+):(?P<row>\d{1,18})", place, re.DOTALL)):
        if match is not None:
            found = match.groupdict()
            candidates.append(
                (Path(found["path"]), Position(int(found["row"]), int(found.get("column") or 0)))
            )
            if found.get("column") == "0":
                raise CannotRun(f"{place}: columns count from 1")
    if not candidates or Path(place).exists():
        raise CannotRun(f"{place}: the line number is missing; write FILE:LINE or FILE:LINE:COLUMN")
    path, position = next((each for each in candidates if each[0].is_file()), candidates[0])
    if path.is_dir():
        raise CannotRun(f"{path} is a folder; pass a file in it")
    if not path.exists():
        raise CannotRun(f"{path}: no such file")
    if path.suffix == ".ipynb":
        raise CannotRun(f"{path} is a notebook, whose lines are not Python code")
    return path, position


def _require_inside(file: SourceFile, path: Path, position: Position) -> None:
    rows = len(file.line_starts) - (file.text.endswith(("\n", "\r")) and len(file.line_starts) > 1)
    if not file.text:
        raise CannotRun(f"{path} is empty")
    if not 1 <= position.row <= rows:
        raise CannotRun(f"{path}: line {position.row} does not exist; the last line is {rows}")
    length = len(file.line(position.row))
    if position.column > length:
        characters = f"the line has {counted(length, 'character')}" if length else "the line is empty"
        raise CannotRun(f"{path}:{position.row}: column {position.column} does not exist; {characters}")


def _at(position: Position | None) -> str:
    return "" if position is None else f":{position.row}:{position.column}"


def _given(path: Path, paths: Sequence[Path], settings: Settings) -> tuple[Settings, list[Path]]:
    """Return the settings and files of the run: those that a lint run would check, and the file itself."""
    from gclint.code.discovery import survey

    found = survey([*paths, path], settings)
    # A folder with the file itself is not empty.
    around = path.absolute().parents
    empty = (each for each in found.empty if each.path.absolute() not in around)
    for problem in (*found.problems, *empty):
        raise CannotRun(f"{problem.path}: {problem.message}")
    if paths:
        return found.settings, [*found.files, path]
    beside = sorted([*path.parent.glob("modeling_*.py"), *path.parent.glob("modular_*.py")])
    if len(beside) > _MOST_BESIDE:
        stem = path.stem.partition("_")[2]
        beside = [each for each in beside if each.stem.partition("_")[2] == stem]
    own = (each for each in beside if each.is_file() and not each.is_symlink())
    return found.settings, [path, *(each for each in own if not settings.excludes(each))]


def _notes(project: Project, path: Path, settings: Settings) -> list[str]:
    """Return the reasons why a run would not check the file."""
    from fnmatch import fnmatchcase

    from gclint.copies.generated import modular_path

    notes = []
    source = modular_path(project.file(path))
    if source is not None:
        notes.append(f"This file is generated from {source.name}; findings are reported and repaired there.")
    pattern = settings.excluded_by(path)
    if pattern is not None:
        origin = settings.origins.get("exclude") or settings.origins.get("extend-exclude")
        where = f" ({origin})" if origin else ""
        notes.append(f"This file is excluded by the pattern {pattern!r}{where}, so no run checks it.")
    named = any(fnmatchcase(path.name, pattern) for pattern in ("modeling_*.py", "modular_*.py"))
    if not named and not settings.includes(path):
        notes.append(
            "The name of this file is not that of a modeling file, so a run checks it only if its path is "
            "given."
        )
    if project.library(project.file(path)) is None:
        notes.append("transformers was not found, so its classes are known by name only; see --library.")
    return notes
