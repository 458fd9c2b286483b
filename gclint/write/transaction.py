"""Writes changed files: those that belong together all or none, whatever happens."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gclint.code.paths import shown
from gclint.code.project import Project
from gclint.facts import read_bytes
from gclint.finding import Problem
from gclint.write.disk import require_replaceable, stage
from gclint.write.journal import Busy, FileChange, Journal, new_temporary

_CHANGED = "this file changed after it was read, so it was not fixed; run gclint again"
_OUTSIDE = "this file lies outside of the given paths, so it was not fixed; to fix it, pass its path"


def write_all(
    project: Project, changed: Mapping[Path, tuple[str, str]], together: Iterable[Sequence[Path]] = ()
) -> list[Problem]:
    """Write the new texts of ``changed`` files (before, after), and return a problem for each that is not.

    A file that has changed since it was read is left alone. Of files that are ``together``, either all are
    written or none; others are written one by one.
    """
    tied = [list(paths) for paths in together]
    single = changed.keys() - {path for paths in tied for path in paths}
    units = [*tied, *([path] for path in changed if path in single)]
    files = [[_File(project, each, *changed[each]) for each in unit] for unit in units]
    return _Write([_WriteUnit(each) for each in files], project.folders).run()


class _Unwritable(Exception):
    """Why a file cannot be written."""


class _File:
    def __init__(self, project: Project, path: Path, before: str, after: str) -> None:
        file = project.file(path)
        target = project.location(path)
        self.path = path
        self._is_given = path in project.fixable
        self.change = FileChange(target, file.encode(before), file.encode(after), new_temporary(target))
        self._seen: tuple[int, ...] = ()

    def check(self) -> None:
        """Make sure that the file is what was read, and may be replaced.

        Raises:
            _Unwritable: it is not, or may not.
            OSError: this cannot be found out.
        """
        if not self._is_given:
            raise _Unwritable(_OUTSIDE)
        status = self.change.target.stat()
        require_replaceable(self.change.target, status)
        if read_bytes(self.change.target) != self.change.before:
            raise _Unwritable(_CHANGED)
        self._seen = _signature(status)

    def stage(self) -> None:
        """Write the new text to a temporary file beside the file."""
        stage(self.change.target, self.change.after, self.change.temporary)

    def check_again(self) -> None:
        """Make sure that nothing has happened to the file since it was checked."""
        target = self.change.target
        if os.path.realpath(self.path) != str(target) or _signature(target.lstat()) != self._seen:
            raise _Unwritable(_CHANGED)

    def replace(self) -> None:
        """Replace the old text by the new one."""
        os.replace(self.change.temporary, self.change.target)  # noqa: PTH105 (as in disk)

    def restore(self) -> None:
        """Put the old text back."""
        stage(self.change.target, self.change.before, self.change.temporary)
        self.replace()


@dataclass
class _WriteUnit:
    """Files of which all are written or none."""

    files: list[_File]
    is_torn: bool = False
    """Whether some of the files may have their new content, and some their old one."""

    @property
    def changes(self) -> list[FileChange]:
        """The contents of the files before and after."""
        return [file.change for file in self.files]

    def check(self) -> list[Problem]:
        """Return a problem for each file if one of them has changed, or cannot be replaced."""
        return self.attempt(_File.check)

    def replace(self) -> list[Problem]:
        """Replace the old texts by the new ones; if one cannot be replaced, restore the others."""
        problems = self.attempt(_File.check_again)
        if problems:
            return problems
        self.is_torn = True
        try:
            problems = self.attempt(_File.replace)
            if problems:
                self._put_back()
        except OSError as error:
            message = (
                "some of the files that have to change together can be neither fixed nor restored "
                f"({_reason(error)}); run 'gclint --fix {shown(self.files[0].path)}' again, or check them "
                "with 'git diff'"
            )
            return [Problem(file.path, message) for file in self.files]
        except BaseException:
            self._put_back()
            raise
        self.is_torn = False
        return problems

    def discard(self) -> None:
        """Remove the temporary files."""
        for change in self.changes:
            with contextlib.suppress(OSError):
                change.temporary.unlink()

    def failed(self, reason: str, culprit: _File | None = None) -> list[Problem]:
        """Return a problem for each file; the reason is that of one of them, or of all."""
        problems = []
        for file in self.files:
            if culprit is None or file is culprit:
                problems.append(Problem(file.path, reason))
            else:
                why = f"this file was not fixed, because it has to change together with {shown(culprit.path)}"
                problems.append(Problem(file.path, why))
        return problems

    def attempt(self, step: Callable[[_File], None]) -> list[Problem]:
        """Take a step with each file; return a problem for each file if one of them cannot take it."""
        for file in self.files:
            try:
                step(file)
            except (OSError, _Unwritable) as error:
                return self.failed(_reason(error), file)
        return []

    def _put_back(self) -> None:
        for file in self.files:
            if read_bytes(file.change.target) == file.change.after:
                file.restore()
        self.is_torn = False


class _Write:
    """One write: checks, new texts beside the old ones, a journal, and only then the replacements."""

    def __init__(self, units: Sequence[_WriteUnit], given: Sequence[Path]) -> None:
        self._units = units
        self._given = given
        self._left = list(units)
        """The units of which all files can still be written."""
        self._problems: list[Problem] = []

    def run(self) -> list[Problem]:
        """Write, and return a problem for each file that was not written."""
        self._take_step(_WriteUnit.check)
        journal = Journal([unit.changes for unit in self._left], self._given)
        try:
            self._attempt(journal.begin)
            self._take_step(lambda unit: unit.attempt(_File.stage))
            self._attempt(journal.commit)
            self._take_step(_WriteUnit.replace)
        finally:
            for unit in self._units:
                unit.discard()
            if any(unit.is_torn for unit in self._units):
                journal.leave()
            else:
                journal.end()
        return self._problems

    def _take_step(self, step: Callable[[_WriteUnit], list[Problem]]) -> None:
        waiting, self._left = self._left, []
        for unit in waiting:
            problems = step(unit)
            self._problems += problems
            if not problems:
                self._left.append(unit)

    def _attempt(self, action: Callable[[], None]) -> None:
        """Take a step for each unit."""
        if not self._left:
            return
        try:
            action()
        except (Busy, OSError) as error:
            for unit in self._left:
                self._problems += unit.failed(_reason(error))
            self._left = []


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _reason(error: Exception) -> str:
    if isinstance(error, _Unwritable):
        return str(error)
    why = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return f"the fixed file cannot be written: {why}"
