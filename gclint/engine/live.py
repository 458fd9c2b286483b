"""The findings of files that are being edited: what changes is judged again, with what hangs on it.

The work is done in steps, a file each, so that whoever drives it can answer questions in between.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from pathlib import Path

from gclint.engine.check import CheckResult, Verdict, collector_paused, judge, summarise, to_judge_again
from gclint.finding import Problem
from gclint.rule import Rule
from gclint.source.file import SourceFile, UnreadableFile, encoded
from gclint.source.project import Project
from gclint.source.surroundings import forget_mentions
from gclint.source.syntax import syntax_problem


class Live:
    """A project whose files change, and what there is to find in it."""

    def __init__(self, project: Project, rules: Sequence[Rule]) -> None:
        """Know that all given files are to be judged, and judge none yet."""
        self.project = project
        self.rules = rules
        self.broken: dict[Path, Problem] = {}
        """What is wrong with texts that are not Python; others see the last good text of such a file."""
        self._verdicts: dict[Path, Verdict] = {}
        self._waiting: dict[Path, None] = dict.fromkeys(project.paths)
        self._result: CheckResult | None = None

    @property
    def waiting(self) -> Set[Path]:
        """The files that are still to be judged."""
        return self._waiting.keys()

    @property
    def result(self) -> CheckResult:
        """What is found in all files that are judged."""
        if self._result is None:
            with collector_paused():
                self._result = summarise(self.project, self._verdicts, self.rules)
        return self._result

    def judge_next(self, first: Collection[Path] = ()) -> bool:
        """Judge one of the files that wait, of ``first`` if there is one; return whether some are left."""
        path = next((each for each in first if each in self._waiting), None)
        path = path or next(iter(self._waiting), None)
        if path is None:
            return False
        del self._waiting[path]
        with collector_paused():
            self._verdicts.update(judge(self.project, [path], self.rules))
        self._result = None
        return bool(self._waiting)

    def put(self, path: Path, text: str) -> None:
        """Let a file hold ``text``, whatever lies on the disk; it need not be there."""
        path = self.project.identify(path)
        problem: Problem | None
        try:
            data = encoded(text)
            if not self.project.knows(path):
                self.project.hold(path, data)
                return
            problem = syntax_problem(SourceFile(path, data))
        except UnreadableFile as error:
            problem = Problem(path, error.message, error.position)
            data = text.encode(errors="replace")
        if problem is None:
            self.broken.pop(path, None)
        else:
            self.broken[path] = problem
            if self._is_good(path):
                return
        self._replace(path, data)

    def drop(self, path: Path) -> None:
        """Let a file hold what lies on the disk, which may be new."""
        path = self.project.identify(path)
        self.broken.pop(path, None)
        if self.project.knows(path):
            self._replace(path, None)
        else:
            self.project.hold(path, None)

    def _is_good(self, path: Path) -> bool:
        """Tell whether the text of a file that the project knows is Python."""
        try:
            return syntax_problem(self.project.file(path)) is None
        except (OSError, UnreadableFile):
            return False

    def _replace(self, path: Path, data: bytes | None) -> None:
        before = self._file(path)
        self.project.hold(path, data)
        after = self._file(path)
        if before is not None and after is not None and before.text == after.text:
            return
        changed = {path}
        again = dict.fromkeys(to_judge_again(self.project, self._verdicts, changed))
        is_mentioned = forget_mentions(self.project, path)
        if is_mentioned or _interface(before) != _interface(after):
            # Who asks which files import, inherit or mention something has something to report.
            again.update(dict.fromkeys(each for each, verdict in self._verdicts.items() if verdict.findings))
        if path in self.project.given:
            again[path] = None
        self._waiting.update(again)
        self._result = None

    def _file(self, path: Path) -> SourceFile | None:
        try:
            return self.project.file(path)
        except (OSError, UnreadableFile):
            return None


def _interface(file: SourceFile | None) -> object:
    """Return what others find a file by: what it imports, and the headers of its classes."""
    if file is None:
        return None
    outline = file.outline
    headers = [
        (each.name, file.text[each.header : each.header_end]) for each in outline.definitions if each.is_class
    ]
    return [each.text for each in outline.imports], headers
