"""Writes what shows failures without gclint: a script for each class, or a page for each defect."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from gclint.cli import CannotRun
from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.paths import shown
from gclint.copies.generated import modular_path
from gclint.facts import read_bytes
from gclint.finding import Problem
from gclint.report.printing import write_lines
from gclint.report.report import Report, texts_of_fixes
from gclint.report.upstream import (
    INDEX,
    Defect,
    DemonstrationScript,
    defects,
    index,
    page,
    page_name,
)
from gclint.verify.repro import demonstrate, script, scripts
from gclint.verify.results import Results
from gclint.verify.settings import RunSettings
from gclint.verify.sources import target_of
from gclint.wording import counted
from gclint.write.disk import output_place, write_text

_TRIED = 3
"""How many classes of a defect are tried, until a script shows it."""


def write_scripts(folder: Path, results: Results) -> None:
    """Write a script for each class that failed; raise CannotRun if that is not possible."""
    for name, text in scripts(results):
        path = folder / name
        try:
            output_place(path).parent.mkdir(parents=True, exist_ok=True)
            problems = write_text(path, text)
        except OSError as error:
            problems = [Problem(path, f"this file cannot be written: {error.strerror or error}")]
        for problem in problems:
            raise CannotRun(f"--write-repro: {shown(path)}: {problem.message}")
        write_lines((f"{path} reproduces a failure.",), sys.stderr)


def require_new_folder(folder: Path | None) -> None:
    """Check that nothing is in the folder, before anything is run for it.

    Raises:
        CannotRun: something is in it, or it cannot be read.
    """
    if folder is None:
        return
    try:
        place = output_place(folder)
        if place.exists() and next(place.iterdir(), None) is not None:
            raise CannotRun(f"--upstream: {shown(folder)} is not empty; name a new folder, or empty this one")
    except OSError as error:
        raise _unusable(folder, error) from None


def with_sources(files: Iterable[Path]) -> list[Path]:
    """Return files with those that they are generated from, which are to be repaired as well."""
    found: dict[Path, None] = {}
    for path in files:
        source = None
        with suppress(OSError, UnreadableFile):
            source = modular_path(SourceFile(path, read_bytes(path)))
        found |= dict.fromkeys((path, source) if source is not None and source.is_file() else (path,))
    return list(found)


def write_upstream(folder: Path, report: Report, settings: RunSettings) -> None:
    """Run a script for each defect, and write a page for each, and a table of them: all or nothing.

    Raises:
        CannotRun: they cannot be written.
    """
    pages: dict[str, str] = {}
    found, number = defects(report), 0
    assert report.runs is not None
    for defect in found:
        tried = _tried(report, defect, settings)
        number += tried is not None and tried.shows
        environment = report.runs.environments[target_of(Path(defect.failures[0][0].source)).tree]
        pages[page_name(defect, pages)] = page(report, defect, tried, environment)
    _write(folder, {**pages, INDEX: index(pages)})
    have = f"{counted(len(found), 'defect')}; scripts show {number} of them"
    write_lines((f"{shown(folder)} has {have}.",), sys.stderr)


def _tried(report: Report, defect: Defect, settings: RunSettings) -> DemonstrationScript | None:
    """Return the first script that shows a defect, or one that does not; None if there is none at all."""
    last = None
    for result, failure in defect.demonstrable[:_TRIED]:
        recipe = result.recipe_of(failure)
        assert recipe is not None
        text = script(result, failure, recipe)
        last = DemonstrationScript(text, demonstrate(text, settings))
        if last.shows and defect.repair is not None:
            changed = texts_of_fixes(report.project, defect.repair.findings)
            after = {path: texts[1] for path, texts in changed.items()}
            return DemonstrationScript(text, last.result, demonstrate(text, settings, after))
        if last.shows:
            return last
    return last


def _write(folder: Path, pages: Mapping[str, str]) -> None:
    try:
        place = output_place(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}."))
    except OSError as error:
        raise _unusable(folder, error) from None
    try:
        for name, text in pages.items():
            path = made / name
            path.parent.mkdir(exist_ok=True)
            for problem in write_text(path, text):
                raise CannotRun(f"--upstream: {shown(path)}: {problem.message}")
        made.chmod(0o755)
        os.replace(made, place)  # noqa: PTH105 (a folder replaces only an empty one)
    except OSError as error:
        raise _unusable(folder, error) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _unusable(folder: Path, error: OSError) -> CannotRun:
    return CannotRun(f"--upstream: {shown(folder)} cannot be written: {error.strerror or error}")
