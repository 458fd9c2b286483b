"""Changes files in memory: makes fixes until nothing is left to fix, and adds ignore comments."""

from __future__ import annotations

import gc
from bisect import bisect_right, insort_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.code.syntax import compile_problem, syntax_problem
from gclint.copies.generated import is_modular, modeling_path
from gclint.edit.edits import by_file, edited
from gclint.edit.ignoring import suppressed
from gclint.finding import Applicability, Edit, Finding, Problem
from gclint.rule import Rule, all_rules, codes_by_word, own_rules
from gclint.run.carry import joined
from gclint.run.check import LintResult, blame, check, check_again, collector_paused
from gclint.wording import listed

_PASSES = 20
_WENT = "it went with another fix"
_Edits = dict[Path, list[Edit]]
"""Edits by their files."""
_Wanted = Callable[[Sequence[Finding]], Sequence[Finding]]


@dataclass(frozen=True)
class FixResult(LintResult):
    """What a run found and did not fix, and what it changed."""

    applied: tuple[Finding, ...]
    """The findings whose fixes were made; their offsets refer to the text in which they were found."""
    changed: Mapping[Path, tuple[str, str]]
    """The texts of the changed files, before and after."""
    gone: tuple[Finding, ...] = field(default=(), kw_only=True)
    """Those that went with a fix of another one, without a fix of their own."""
    together: tuple[frozenset[Path], ...] = field(default=(), kw_only=True)
    """Files that fixes changed together: one fix, or fixes of copies of the same code."""
    broken: frozenset[object] = field(default=frozenset(), kw_only=True)
    """The identities of fixes that were not made because of a bug."""

    def rechecked(self, project: Project, changed: Set[Path], rules: Sequence[Rule]) -> FixResult:
        """Return the result with what there is to find now that the ``changed`` files have other texts."""
        again = _without_broken_fixes(check_again(project, self, changed, rules), self.broken)
        problems = tuple(dict.fromkeys((*self.problems, *again.problems)))
        back = set(map(_name, again.findings))
        gone = tuple(each for each in self.gone if _name(each) not in back)
        return replace(self, **vars(replace(again, problems=problems)), gone=gone)


def fix(
    project: Project,
    rules: Sequence[Rule],
    *,
    unsafe: bool,
    proves: bool = False,
    wanted: _Wanted = tuple,
    known: LintResult | None = None,
) -> FixResult:
    """Check the files that ``project`` was given and fix what can be fixed, in memory only.

    Conflicting fixes are made one after the other: a pass makes as many as it can, and then the files that it
    changed, and those that depend on them, are checked again.

    Who ``proves`` runs fixes before they are written, so that those based on runs may be made. Only fixes of
    ``wanted`` findings are made, and what is ``known`` need not be found again.
    """
    asked = {Applicability.UNSAFE: unsafe, Applicability.PROVABLE: proves}
    made = frozenset(each for each in Applicability if asked.get(each, True))
    with collector_paused():
        return _Repair(project, made, wanted).run(rules, known or check(project, rules))


class _Repair:
    def __init__(self, project: Project, made: Set[Applicability], wanted: _Wanted) -> None:
        self._project = project
        self._wanted = wanted
        self._made = made
        self._applied: list[Finding] = []
        self._gone: list[Finding] = []
        self._problems: list[Problem] = []
        self._before: dict[Path, str] = {}
        self._together: dict[frozenset[Path], None] = {}
        self._broken: set[object] = set()
        """Identities of fixes that are not tried again."""

    def run(self, rules: Sequence[Rule], result: LintResult) -> FixResult:
        for number in range(_PASSES):
            before, made = self._wanted(result.findings), len(self._applied)
            changed = self._make_pass(self._to_make(result), result.groups)
            if not changed:
                break
            # Facts about the old texts are garbage now, and the collector is paused. Later passes change few
            # files, and what is about them was mostly made since the last time.
            gc.collect(0 if number else 2)
            result = check_again(self._project, result, changed, rules)
            own = set(self._applied[made:])
            others = [each for each in before if each not in own]
            self._gone += _missing(others, self._wanted(result.findings))
        else:
            self._tell_restless(self._to_make(result))
        left = _without_broken_fixes(result, self._broken)
        return FixResult(
            **vars(replace(left, problems=(*left.problems, *self._problems))),
            applied=tuple(self._applied),
            changed=self._changed(),
            gone=tuple(self._gone),
            together=tuple(self._together),
            broken=frozenset(self._broken),
        )

    def _to_make(self, result: LintResult) -> list[Finding]:
        """Return the findings to repair: those that are wanted, and what is repaired together with them."""
        wanted = set(self._wanted(result.findings))
        linked = {each for group in result.groups if not wanted.isdisjoint(group) for each in group}
        return [each for each in result.findings if each in wanted or each in linked]

    def _make_pass(self, findings: Sequence[Finding], groups: Sequence[frozenset[Finding]]) -> set[Path]:
        """Make as many fixes as go together, and return the files that they changed."""
        while True:
            refused = len(self._broken)
            applicable = [finding for finding in findings if self._is_applicable(finding)]
            units = _together(applicable, groups)
            chosen = self._sound(_compatible(self._project, units))
            # A fix that was refused may have blocked another one.
            if chosen or len(self._broken) == refused:
                break
        made = set(chosen)
        for unit in units:
            paths = frozenset(edit.path for each in unit if each in made for edit in each.edits)
            if len(paths) > 1:
                self._together[paths] = None
        texts = self._texts(chosen)
        for path, text in texts.items():
            self._before.setdefault(path, self._project.file(path).text)
            self._project.replace(path, text)
        self._applied.extend(chosen)
        return set(texts)

    def _is_applicable(self, finding: Finding) -> bool:
        fix = finding.fix
        if fix is None or fix.applicability not in self._made:
            return False
        if _identity(finding) in self._broken:
            return False
        mistake = self._mistake(fix.edits)
        if mistake is not None:
            self._refuse(finding, mistake)
        return mistake is None

    def _mistake(self, edits: Iterable[Edit]) -> str | None:
        """Return what is wrong with a fix in itself."""
        changes = False
        for path, own in by_file(edits).items():
            text = self._project.file(path).text
            end = 0
            for edit in sorted(own, key=_place):
                if not end <= edit.start <= edit.end <= len(text):
                    return "its edits overlap"
                end = edit.end
                changes = changes or text[edit.start : edit.end] != edit.content
        return None if changes else "it changes nothing"

    def _sound(self, units: Sequence[Sequence[Finding]]) -> list[Finding]:
        """Return the findings whose fixes together leave every file valid Python; refuse the other units."""
        findings = [finding for unit in units for finding in unit]
        if self._damage(findings, self._texts(findings)) is None:
            return findings
        kept: list[Finding] = []
        for unit in units:
            own = self._texts(unit)
            if self._damage([*kept, *unit], own) is None:
                kept += unit
                continue
            problem = self._damage(unit, own)
            # What works only by itself waits for the next pass.
            if problem is not None:
                for finding in unit:
                    self._refuse(finding, f"the result would not be Python ({problem.message})")
        return kept

    def _damage(self, findings: Iterable[Finding], paths: Iterable[Path]) -> Problem | None:
        """Return what would be wrong with the files at ``paths`` after the fixes of ``findings``."""
        edits = by_file(_edits_of(findings))
        for path in paths:
            found = damage(self._project.file(path), edits[path]) if path in edits else None
            if found is not None:
                return found
        return None

    def _texts(self, findings: Iterable[Finding]) -> dict[Path, str]:
        """Return the texts of the files that the fixes of ``findings`` change."""
        texts = {}
        for path, own in by_file(_edits_of(findings)).items():
            before = self._project.file(path).text
            after = edited(before, own)
            if after != before:
                texts[path] = after
        return texts

    def _refuse(self, finding: Finding, why: str) -> None:
        self._broken.add(_identity(finding))
        position = self._project.file(finding.path).position(finding.start)
        message = (
            f"the fix of {finding.code} for {finding.symbol} was not made: {why}; {blame([finding.code])}"
        )
        self._problems.append(Problem(finding.path, message, position))

    def _tell_restless(self, findings: Iterable[Finding]) -> None:
        """Add a problem for each file that always has something left to fix."""
        codes: defaultdict[Path, set[str]] = defaultdict(set)
        for finding in filter(self._is_applicable, findings):
            codes[finding.path].add(finding.code)
        for path, restless in codes.items():
            names = listed(sorted(restless))
            message = f"the fixes of {names} did not converge in {_PASSES} passes; {blame(restless)}"
            self._problems.append(Problem(path, message))

    def _changed(self) -> dict[Path, tuple[str, str]]:
        changed = {}
        for path in self._project.paths:
            before = self._before.get(path)
            if before is not None and before != self._project.file(path).text:
                changed[path] = (before, self._project.file(path).text)
        return changed


def _missing(before: Iterable[Finding], after: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that are not there any more, though no fix of their own was made."""
    left = Counter(map(_name, after))
    for finding in before:
        if left[_name(finding)]:
            left[_name(finding)] -= 1
        else:
            yield finding.refused(_WENT)


def _name(finding: Finding) -> tuple[Path, str, str]:
    """Return what is the same for a finding before and after edits around it."""
    return finding.path, finding.code, finding.symbol


def _without_broken_fixes(result: LintResult, broken: Set[object]) -> LintResult:
    own = {rule.code for rule in own_rules()}
    findings = (
        each.refused(f"its fix failed because of a bug in {'the rule' if each.code in own else 'gclint'}")
        if _identity(each) in broken
        else each
        for each in result.findings
    )
    return replace(result, findings=tuple(findings))


def _identity(finding: Finding) -> object:
    """Return what is the same for a finding after edits elsewhere in its file."""
    contents = [edit.content for edit in finding.edits]
    return (finding.path, finding.code, finding.symbol, finding.message, *contents)


def _edits_of(findings: Iterable[Finding]) -> list[Edit]:
    return [edit for finding in findings for edit in finding.edits]


def _together(findings: Sequence[Finding], groups: Iterable[frozenset[Finding]]) -> list[list[Finding]]:
    """Return the findings by group; incomplete groups are left out."""
    group_of = {finding: group for group in groups for finding in group}
    applicable = set(findings)
    units: dict[object, list[Finding]] = {}
    for finding in findings:
        group = group_of.get(finding)
        if group is None or group <= applicable:
            units.setdefault(finding if group is None else group, []).append(finding)
    return list(units.values())


def _compatible(project: Project, units: Iterable[Sequence[Finding]]) -> list[Sequence[Finding]]:
    """Return as many units as possible whose fixes do not conflict."""
    chosen: list[Sequence[Finding]] = []
    taken: _Edits = {}
    for unit in units:
        own = _added(project, {}, unit)
        if own is None and len(unit) > 1:
            # They conflict in some file; the rest follows in the next pass.
            singles = _compatible(project, [[finding] for finding in unit])
            unit = [finding for single in singles for finding in single]
        both = _added(project, taken, unit)
        if both is not None:
            chosen.append(unit)
            taken = both
    return chosen


def _added(project: Project, taken: _Edits, findings: Iterable[Finding]) -> _Edits | None:
    """Return ``taken`` with the edits of more findings; None if they conflict."""
    both = dict(taken)
    for finding in findings:
        own = by_file(finding.edits)
        for path, edits in own.items():
            text = project.file(path).text
            near = ((edit, other) for edit in edits for other in _near(both.get(path, ()), edit))
            if any(_conflict(edit, other, text) for edit, other in near):
                return None
        for path, edits in own.items():
            ordered = list(both.get(path, ()))
            for edit in edits:
                if edit not in _near(ordered, edit):
                    insort_right(ordered, edit, key=_place)
            both[path] = ordered
    return both


def _near(edits: Sequence[Edit], edit: Edit) -> Iterator[Edit]:
    """Yield those of some edits, in order and each once, that one more may overlap or touch."""
    index = bisect_right(edits, edit.end, key=lambda each: each.start)
    while index > 0 and edits[index - 1].end >= edit.start:
        index -= 1
        yield edits[index]


def _conflict(edit: Edit, other: Edit, text: str) -> bool:
    """Return whether two edits of different fixes exclude each other.

    Two equal ones, such as the same import for two classes, are made once. An edit that replaces text
    with itself is there to exclude others: the fix depends on that text.
    """
    if edit == other:
        return text[edit.start : edit.end] == edit.content
    if edit.start < other.end and other.start < edit.end:
        return True
    touch = edit.start <= other.end and other.start <= edit.end
    return touch and (edit.start == edit.end or other.start == other.end)


def _place(edit: Edit) -> tuple[int, int]:
    return edit.start, edit.end


def damage(file: SourceFile, edits: Sequence[Edit]) -> Problem | None:
    """Return the syntax error that ``file`` would have after edits and does not have now."""
    try:
        for edit in edits:
            file.encode(edit.content)
    except UnicodeEncodeError:
        return Problem(file.path, f"the result contains a character that {file.encoding} cannot encode")
    text = edited(file.text, edits)
    if not file.reads_back(text):
        return Problem(file.path, "another line would declare the encoding")
    problem = compile_problem(file.path, text)
    if problem is None or compile_problem(file.path, file.text) is None:
        return problem
    return syntax_problem(SourceFile(file.path, file.encode(text)))


def with_ignores(
    project: Project, result: LintResult, findings: Sequence[Finding], rules: Sequence[Rule]
) -> tuple[FixResult, Mapping[Path, int]]:
    """Add an ignore comment for each finding in the given files, in memory.

    Returns what is left, and how many findings were suppressed in each file.
    """
    codes = codes_by_word((*all_rules(), *rules))
    by_path = defaultdict(list)
    for finding in findings:
        if finding.path in project.given and finding.path in project.fixable:
            by_path[finding.path].append(finding)
    fixed = result if isinstance(result, FixResult) else FixResult(**vars(result), applied=(), changed={})
    changed = dict(fixed.changed)
    numbers = {}
    for path, own in by_path.items():
        file = project.file(path)
        after, count = suppressed(file, own, codes)
        if count:
            numbers[path] = count
            before, _ = changed.get(path, (file.text, ""))
            changed[path] = (before, after.text)
            project.replace(path, after.text)
    again = check_again(project, result, set(by_path), rules)
    return replace(fixed, **{**vars(again), "problems": fixed.problems}, changed=changed), numbers


def fixed_together(project: Project, repaired: FixResult) -> list[list[Path]]:
    """Return all changed files in groups: those of one fix, and a source with its generated file."""
    return joined(repaired.changed, _ties(project, repaired))


def written_together(project: Project, repaired: FixResult) -> list[list[Path]]:
    """Return all changed files in groups, with those together that were checked with each other's text.

    The repair of a file depends on the repairs of those that it imports from.
    """
    ties = [*_ties(project, repaired)]
    for path in repaired.changed:
        ties.append([path, *(project.dependents([path]) & repaired.changed.keys())])
    return joined(repaired.changed, ties)


def _ties(project: Project, repaired: FixResult) -> Iterable[Iterable[Path]]:
    yield from repaired.together
    for path in repaired.changed:
        if is_modular(path):
            yield [path, project.identify(modeling_path(path))]
