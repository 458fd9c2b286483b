"""The findings of files that are being edited: what changes is checked again, with what depends on it.

The work is done in steps of one file, so that the server can answer requests in between.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence, Set
from pathlib import Path

from gclint.code.file import SourceFile, UnreadableFile, encoded
from gclint.code.lines import logical_lines
from gclint.code.neighbouring_files import forget_mentions
from gclint.code.project import Project
from gclint.code.remembered import remembered
from gclint.code.syntax import syntax_problem
from gclint.copies.marked import copy_comments
from gclint.facts import digest
from gclint.finding import Problem
from gclint.network.checkpoints import may_call_checkpoint
from gclint.network.lineage import imported_models
from gclint.network.outside import functions_set, switches_in
from gclint.rule import Rule
from gclint.run.check import (
    FileVerdict,
    LintResult,
    collector_paused,
    judge,
    says_the_same,
    summarise,
    to_judge_again,
    with_verdicts,
)
from gclint.run.copy_index import CopyIndex


class Live:
    """A project whose files change, and the findings in it."""

    def __init__(self, project: Project, rules: Sequence[Rule]) -> None:
        """Queue all given files, without checking one yet."""
        self.project = project
        self.rules = rules
        self.broken: dict[Path, Problem] = {}
        """The problems of texts that are not valid Python; other files see the last valid text."""
        self._verdicts: dict[Path, FileVerdict] = {}
        self._waiting: dict[Path, None] = dict.fromkeys(project.paths)
        self._result: LintResult | None = None
        self._is_same = False
        """Whether the findings are still those of the result, even if its verdicts are different."""
        self._involved: Set[Path] = frozenset()
        """The files that were consulted when the findings were put together."""
        self._tree_paths: tuple[Path, ...] | None = None
        self._is_warm = False
        """Whether all files have been checked once."""

    @property
    def waiting(self) -> Set[Path]:
        """The files that are still to be checked."""
        return self._waiting.keys()

    @property
    def result(self) -> LintResult:
        """The findings in all files that have been checked."""
        if self._result is None or not self._is_same:
            self._result = self._summary()
            self._is_same = True
        elif self._result.verdicts is not self._verdicts:
            self._result = with_verdicts(self._result, self._verdicts, self.rules)
        return self._result

    def _summary(self) -> LintResult:
        with collector_paused(keeps=not self._is_warm):
            tree = CopyIndex(self.project, self._tree_paths)
            tree.scan()
            self._tree_paths = tree.paths
            with self.project.watched() as asked:
                result = summarise(self.project, self._verdicts, self.rules, tree)
            self._involved = asked | result.shown_in
        return result

    def judge_next(self, first: Collection[Path] = ()) -> bool:
        """Check one of the waiting files, of ``first`` if possible; return whether some are left."""
        path = next((each for each in first if each in self._waiting), None)
        path = path or next(iter(self._waiting), None)
        if path is None:
            return False
        del self._waiting[path]
        with collector_paused(keeps=not self._is_warm):
            verdict = judge(self.project, [path], self.rules)[path]
        self._is_same &= says_the_same(self._verdicts.get(path), verdict)
        self._verdicts = {**self._verdicts, path: verdict}
        self._is_warm |= not self._waiting
        return bool(self._waiting)

    def put(self, path: Path, text: str) -> None:
        """Give a file the content ``text``, whatever is on the disk; it need not exist there."""
        path = self.project.identify(path)
        problem: Problem | None
        facts: Mapping[object, object]
        try:
            data = encoded(text)
            if not self.project.knows(path):
                self.project.hold(path, data)
                return
            file = SourceFile(path, data)
            problem, facts = syntax_problem(file), file.facts
        except UnreadableFile as error:
            problem = Problem(path, error.message, error.position)
            data = text.encode(errors="replace")
            facts = {}
        if problem is None:
            self.broken.pop(path, None)
        else:
            self.broken[path] = problem
            if self._is_good(path):
                return
        self._replace(path, data, facts)

    def drop(self, path: Path) -> None:
        """Give a file the content that is on the disk, which may be new."""
        path = self.project.identify(path)
        self.broken.pop(path, None)
        if self.project.knows(path):
            self._replace(path, None)
        else:
            self.project.hold(path, None)

    def _is_good(self, path: Path) -> bool:
        """Return whether the text of a file that the project knows is valid Python."""
        file = self._file(path)
        return file is not None and syntax_problem(file) is None

    def _replace(self, path: Path, data: bytes | None, facts: Mapping[object, object] | None = None) -> None:
        before = self._file(path)
        self.project.hold(path, data)
        after = self._file(path)
        if before is not None and after is not None:
            after.facts.update(facts or {})
            if before.text == after.text:
                return
        is_mentioned = forget_mentions(self.project, path)
        dependents = self.project.dependents({path})
        if not is_mentioned and _differ_in_layout_only(before, after):
            # Findings in other files may name a line of this one.
            naming = {each for each in dependents if each in self._verdicts and self._verdicts[each].findings}
            again = [*to_judge_again(self._verdicts, {path}, naming), *self._asking(path, is_known=True)]
            # So may findings that are made when all are put together.
            self._is_same &= self._result is not None and path not in self._result.shown_in
            self._is_same &= _have_same_rows(before, after) or self._involved.isdisjoint(dependents)
        else:
            is_known = not is_mentioned and _known_to_all(before) == _known_to_all(after)
            again = [
                *to_judge_again(self._verdicts, {path}, dependents),
                *self._asking(path, is_known=is_known),
            ]
            self._is_same &= is_known and self._involved.isdisjoint(dependents)
        own = [path] if path in self.project.given else []
        self._waiting.update(dict.fromkeys([*own, *again]))

    def _asking(self, path: Path, *, is_known: bool) -> list[Path]:
        """Return the files whose verdicts may depend on a changed file without importing it.

        Only files with findings ask which files import, inherit or mention something. It ``is_known`` whether
        the file gives such questions the same answers as before.
        """
        asking = [each for each, verdict in self._verdicts.items() if verdict.findings]
        # A file that has asked has consulted the other one as well, which uses its definitions.
        used = self.project.used_by(path) if is_known else asking
        return [each for each in asking if each in used]

    def _file(self, path: Path) -> SourceFile | None:
        return next(self.project.readable([path]), None)


def _differ_in_layout_only(before: SourceFile | None, after: SourceFile | None) -> bool:
    """Return whether a file differs only in layout, so that it is the same to all other files."""
    if before is None or after is None:
        return False
    return _copies(before) == _copies(after) and _code(before) == _code(after)


@remembered
def _code(file: SourceFile) -> str:
    """Return a digest of a file's code, without layout and comments."""
    try:
        code = file.text if file.tree is None else ast.dump(file.tree.module)
    except RecursionError:  # It takes more of the stack than parsing.
        code = file.text
    return digest(code.encode("utf-8", "surrogatepass"))


def _have_same_rows(before: SourceFile | None, after: SourceFile | None) -> bool:
    return before is not None and after is not None and _rows(before) == _rows(after)


@remembered
def _rows(file: SourceFile) -> list[int]:
    """Return the rows in which the logical lines of a file begin."""
    return [line.rows[0] for line in logical_lines(file) if line.rows is not None]


def _copies(file: SourceFile) -> list[object]:
    return [(each.definition.name, each.path, each.renaming) for each in copy_comments(file)]


def _known_to_all(file: SourceFile | None) -> object:
    """Return the facts that questions to all files are about: imports, class headers, copies, switches."""
    if file is None:
        return None
    classes = (each for each in file.outline.definitions if each.is_class)
    return (
        [each.text for each in file.outline.imports],
        [(each.name, file.text[each.header : each.header_end]) for each in classes],
        _copies(file),
        imported_models(file),
        [(each.receiver, each.is_complete) for each in switches_in(file)],
        len(functions_set(file)),
        may_call_checkpoint(file.text),
    )
