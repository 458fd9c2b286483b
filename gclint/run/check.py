"""Runs rules over files: what they find, what is suppressed, and why a file could not be checked."""

from __future__ import annotations

import gc
import traceback
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from gclint import __version__
from gclint.code.file import UnreadableFile
from gclint.code.paths import shown
from gclint.code.project import Project
from gclint.code.questions import Asked
from gclint.code.suppressions import Suppressions
from gclint.code.syntax import syntax_problem
from gclint.edit.edits import by_file, edited
from gclint.finding import Finding, Problem, in_reading_order
from gclint.interruption import SECONDS, Interrupted, TookTooLong, limited, number_of
from gclint.model.attributes import let_go
from gclint.network.importers import read_imports
from gclint.network.model import Network
from gclint.own import Unsound, found_by, sent
from gclint.rule import (
    CommentRule,
    Rule,
    all_rules,
    codes_by_word,
    home,
    ignored_codes,
    is_own,
    own_rules,
    selected_for,
    with_level,
)
from gclint.run.carry import carry
from gclint.run.copy_index import CopyIndex, attribute, may_belong_elsewhere
from gclint.run.jobs import spread
from gclint.trace import News, begin, current, phase
from gclint.wording import listed

_DECLARING = 2
"""How many lines at the top of a file may declare its encoding."""
TOO_SLOW = f"checking this file takes more than {SECONDS:g} s of CPU time, so it was given up"
_TOO_DEEP = "it is nested too deeply, or names, classes or calls in it lead to others too many times"
BUG = f"this is a bug in gclint {__version__}; please report it together with the file"


@dataclass(frozen=True)
class FileVerdict:
    """What the rules found in one file, before comments suppress some of it."""

    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    ran: frozenset[str] = frozenset()
    """The codes of the rules that looked at the file and did not crash."""
    suppressions: Suppressions | None = None
    """None if the file could not be checked."""


@dataclass(frozen=True)
class LintResult:
    """What a run found."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    files: int
    """How many files were checked."""
    ran: Mapping[Path, frozenset[str]] = field(default_factory=dict, kw_only=True)
    """By checked file, the codes of the rules whose findings in it are known."""
    pending: tuple[Finding, ...] = field(default=(), kw_only=True)
    """What is no defect yet, and seen to by the fix of another finding."""
    groups: tuple[frozenset[Finding], ...] = field(kw_only=True)
    """Findings whose fixes are made together, since they change copies of the same code."""
    verdicts: Mapping[Path, FileVerdict] = field(default_factory=dict, kw_only=True)
    """The verdict on each file of the run, from which all of this is derived."""
    shown_in: Set[Path] = field(default=frozenset(), kw_only=True)
    """The files in whose texts something has its place: a finding, an edit, a step, or an ignore comment."""


class CheckInterrupted(Interrupted):
    """A run was interrupted before all files were checked."""

    def __init__(self, number: int, result: LintResult) -> None:
        super().__init__(number)
        self.result = result
        """What was found in the files that were checked."""


SUMMARY = Path("<summary>")
"""Stands among the paths of files for the result of a whole run, which has dependencies as well."""


@dataclass(frozen=True)
class Recalled:
    """What is known of an earlier run."""

    verdicts: Mapping[Path, FileVerdict] = field(default_factory=dict)
    """The verdicts that are still valid."""
    result: LintResult | None = None
    """The result of the whole run, with its verdicts; None unless all of it is still valid."""
    is_all: bool = False
    """Whether nothing has changed of what the earlier run has consulted."""


class EarlierResults(Protocol):
    """Remembers what earlier runs have found."""

    def recall(self, project: Project, rules: Sequence[Rule]) -> Recalled:
        """Return what is still valid."""

    def keep(self, project: Project, result: LintResult) -> None:
        """Store what was found in all files of a run."""


def check(
    project: Project,
    rules: Sequence[Rule],
    advance: Callable[[Path], None] = lambda _path: None,
    jobs: int = 1,
    memory: EarlierResults | None = None,
) -> LintResult:
    """Run ``rules`` over the files that ``project`` was given, and call ``advance`` after each.

    With several ``jobs``, the files are distributed over processes; what ``memory`` knows is not repeated.

    Raises:
        CheckInterrupted: the run was interrupted before all files were checked.
    """
    with collector_paused():
        known = Recalled() if memory is None else memory.recall(project, rules)
        for path in known.verdicts:
            advance(path)
        others = [path for path in project.paths if path not in known.verdicts]
        found = dict(known.verdicts)
        try:
            judge(project, others, rules, advance, jobs, found)
        except KeyboardInterrupt as error:
            verdicts = {path: found[path] for path in project.paths if path in found}
            raise CheckInterrupted(number_of(error), summarise(project, verdicts, rules)) from None
        verdicts = {path: found[path] for path in project.paths}
        result = known.result
        if result is not None and all(
            says_the_same(result.verdicts.get(path), verdicts[path]) for path in others
        ):
            result = with_verdicts(result, verdicts, rules)
        else:
            with project.read_for(SUMMARY), phase(str(SUMMARY)):
                result = summarise(project, verdicts, rules)
            others = [SUMMARY]
        if memory is not None and (others or not known.is_all):
            memory.keep(project, result)
        return result


def says_the_same(before: FileVerdict | None, after: FileVerdict) -> bool:
    """Return whether two verdicts on a file give the same summary."""
    if before is None:
        return not after.findings
    if before.suppressions is None or after.suppressions is None:
        return not before.findings and not after.findings
    return (
        before.findings == after.findings
        and [each.story for each in before.findings] == [each.story for each in after.findings]
        and not before.suppressions.ignores
        and not after.suppressions.ignores
    )


def check_again(
    project: Project, result: LintResult, changed: Set[Path], rules: Sequence[Rule]
) -> LintResult:
    """Return what there is to find now that the texts of the ``changed`` files are different."""
    paths = to_judge_again(result.verdicts, changed, project.dependents(changed))
    return summarise(project, {**result.verdicts, **judge(project, paths, rules)}, rules)


def to_judge_again(
    verdicts: Mapping[Path, FileVerdict], changed: Set[Path], dependents: Set[Path]
) -> list[Path]:
    """Return the files whose verdicts may be different now that the ``changed`` files are."""
    return [path for path, verdict in verdicts.items() if path in dependents or aims_at(changed, verdict)]


def aims_at(changed: Set[Path], verdict: FileVerdict) -> bool:
    """Return whether a finding, an edit or a step has its offsets in a text that has changed."""
    return any(
        finding.path in changed
        or any(edit.path in changed for edit in finding.edits)
        or any(step.path in changed for step in finding.story)
        for finding in verdict.findings
    )


def judge(
    project: Project,
    paths: Iterable[Path],
    rules: Sequence[Rule],
    advance: Callable[[Path], None] = lambda _path: None,
    jobs: int = 1,
    verdicts: dict[Path, FileVerdict] | None = None,
) -> dict[Path, FileVerdict]:
    """Return the verdict on each of ``paths``; several ``jobs`` read files as they are on the disk.

    A caller that needs what was found even if this is interrupted gives the ``verdicts`` to add it to.
    """
    paths = tuple(paths)
    verdicts, trace = {} if verdicts is None else verdicts, current()
    with closing(spread(_Judging(project, rules, is_traced=trace is not None), paths, jobs)) as answers:
        for path, judged in answers:
            project.learn_uses(judged.uses)
            project.learn_unparsed(judged.unparsed)
            if trace is not None and judged.news is not None:
                trace.learn(judged.news)
                project.questions.learn(judged.asked)
            verdicts[path] = judged.verdict
            advance(path)
    return {path: verdicts[path] for path in paths}


@dataclass(frozen=True)
class _Judged:
    """A verdict, and what its process has learnt that others need."""

    verdict: FileVerdict
    uses: tuple[tuple[Path, Path], ...]
    """The dependencies between files that were found."""
    news: News | None
    """What was read."""
    asked: tuple[Asked, ...]
    """What was asked of all files."""
    unparsed: tuple[Path, ...]
    """The consulted files that cannot be parsed."""


class _Judging:
    """Judges files, in this process or in another one."""

    def __init__(self, project: Project, rules: Sequence[Rule], *, is_traced: bool) -> None:
        self._project = project
        self._rules = tuple(rules)
        self._codes = known_codes(rules)
        self._is_traced = is_traced

    def __call__(self, path: Path) -> _Judged:
        if self._is_traced:
            begin()
        with self._project.read_for(path):
            verdict = _judge(self._project, path, self._rules, self._codes)
        news = begin().news() if self._is_traced else None
        project = self._project
        return _Judged(verdict, project.new_uses(), news, project.questions.news(), project.unparsed)

    def prepare(self) -> None:
        """Read the files, as each process otherwise would, to know what they import."""
        read_imports(self._project)

    def __reduce__(self) -> tuple[object, ...]:
        return sent(partial(_Judging, self._project, self._rules, is_traced=self._is_traced))


def summarise(
    project: Project,
    verdicts: Mapping[Path, FileVerdict],
    rules: Sequence[Rule],
    tree: CopyIndex | None = None,
) -> LintResult:
    """Put the verdicts of ``rules`` on all files of a run together, without what comments suppress.

    Findings in generated files are reported at their source, and copies are repaired together with their
    origin; ``tree`` is what is around the files, where that is known.
    """
    codes = known_codes(rules)
    comments = _Comments(project, verdicts, rules, codes)
    found = dict.fromkeys(
        _limited_to_given_files(project, each) for verdict in verdicts.values() for each in verdict.findings
    )
    pending = [each for each in found if each.awaits is not None]
    comments.note(pending)
    findings = comments.left(each for each in found if each.awaits is None)
    groups: list[frozenset[int]] = []
    inherited = [each for each in comments.suppressed if may_belong_elsewhere(project, each)]
    if findings or inherited or pending:  # The tree around a single file has hundreds of folders.
        tree = tree or CopyIndex(project)
        # A generator copies comments along: that of the source is needed all the same.
        comments.note(attribute(project, inherited, tree.lineage))
        attributed = attribute(project, [*findings, *pending], tree.lineage)
        pending = [each for each in attributed if each.awaits is not None]
        comments.note(pending)
        findings = [each for each in attributed if each.awaits is None]
        findings, groups = carry(project, comments.left(findings), comments.suppressed, tree)
    checked = (_limited_to_given_files(project, each) for each in comments.checked(_about_comments(rules)))
    findings = [with_level(project.settings, _limited_by_encoding(project, each)) for each in findings]
    numbered = tuple(frozenset(findings[number] for number in group) for group in groups)
    found_in_comments = (
        with_level(project.settings, _limited_by_encoding(project, each)) for each in checked
    )
    ordered = in_reading_order([*findings, *found_in_comments])
    result = result_of(ordered, numbered, in_reading_order(pending), verdicts, rules)
    pairs = tree.paired_files if tree else ()
    return replace(result, shown_in=frozenset(_places(result)).union(pairs))


def with_verdicts(
    result: LintResult, verdicts: Mapping[Path, FileVerdict], rules: Sequence[Rule]
) -> LintResult:
    """Return the same findings with other verdicts, on files that none of the findings involves."""
    again = result_of(result.findings, result.groups, result.pending, verdicts, rules)
    return replace(again, shown_in=result.shown_in)


def result_of(
    findings: tuple[Finding, ...],
    groups: tuple[frozenset[Finding], ...],
    pending: tuple[Finding, ...],
    verdicts: Mapping[Path, FileVerdict],
    rules: Sequence[Rule],
) -> LintResult:
    """Return the result with these findings and verdicts."""
    codes, about_comments = known_codes(rules), _about_comments(rules)
    return LintResult(
        findings,
        tuple(problem for verdict in verdicts.values() for problem in verdict.problems),
        sum(verdict.suppressions is not None for verdict in verdicts.values()),
        ran={
            path: _decided(verdict.ran, about_comments, codes)
            for path, verdict in verdicts.items()
            if verdict.suppressions is not None
        },
        pending=pending,
        groups=groups,
        verdicts=verdicts,
    )


def _places(result: LintResult) -> Iterator[Path]:
    """Yield the files that findings and comments have places in."""
    raw = [finding for verdict in result.verdicts.values() for finding in verdict.findings]
    for finding in (*raw, *result.findings):
        yield finding.path
        if finding.class_elsewhere is not None:
            yield finding.class_elsewhere[0]
        yield from (edit.path for edit in finding.edits)
        yield from (step.path for step in finding.story)
    for path, verdict in result.verdicts.items():
        if verdict.problems or verdict.suppressions is None or verdict.suppressions.ignores:
            yield path


def _about_comments(rules: Iterable[Rule]) -> list[CommentRule]:
    return [rule for rule in rules if isinstance(rule, CommentRule)]


class _Comments:
    """The ignore comments of a run's files, and what they and ``per-file-ignores`` suppress."""

    def __init__(
        self,
        project: Project,
        verdicts: Mapping[Path, FileVerdict],
        rules: Sequence[Rule],
        codes: Mapping[str, str],
    ) -> None:
        self.suppressed: list[Finding] = []
        self._project = project
        self._verdicts = verdicts
        self._rules = rules
        self._ignored: dict[Path, frozenset[str]] = {}
        self._codes = codes
        self._by_path: defaultdict[Path, dict[Finding, None]] = defaultdict(dict)
        self._others: dict[Path, Suppressions] = {}

    def left(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return what nothing suppresses."""
        left = []
        for finding in findings:
            self._by_path[finding.path][finding] = None
            suppressions = self._of(finding.path)
            if self._is_ignored(finding) or (suppressions is not None and suppressions.covers(finding)):
                self.suppressed.append(finding)
            else:
                left.append(finding)
        return left

    def note(self, findings: Iterable[Finding]) -> None:
        """Let comments count as needed that suppress these."""
        for finding in findings:
            self._by_path[finding.path][finding] = None

    def _is_ignored(self, finding: Finding) -> bool:
        if finding.path not in self._ignored:
            settings = self._project.settings
            self._ignored[finding.path] = ignored_codes(settings, finding.path, self._rules)
        return finding.code in self._ignored[finding.path]

    def _of(self, path: Path) -> Suppressions | None:
        if path in self._verdicts:
            return self._verdicts[path].suppressions
        if path not in self._others:
            self._others[path] = Suppressions(self._project.file(path), self._codes)
        return self._others[path]

    def checked(self, rules: Iterable[CommentRule]) -> Iterator[Finding]:
        """Yield the findings about the comments themselves, once it is known what they suppress."""
        for path, verdict in self._verdicts.items():
            if verdict.suppressions and verdict.suppressions.ignores:
                for rule in rules:
                    found = rule.check_comments(verdict.suppressions, self._by_path[path], verdict.ran)
                    yield from (each for each in found if not self._is_ignored(each))


@contextmanager
def collector_paused(*, keeps: bool = True) -> Iterator[None]:
    """Disable Python's garbage collector: syntax trees have millions of objects and no cycles.

    If it ``keeps`` the objects made meanwhile, they are exempt from all later collections.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Otherwise the collector would traverse what is still needed again and again, and at exit.
        if keeps:
            gc.freeze()
        if was_enabled:
            gc.enable()


def known_codes(rules: Iterable[Rule]) -> dict[str, str]:
    """Return the codes by the words that comments may use for them: of all rules, and of those that run."""
    return codes_by_word((*all_rules(), *rules))


def _decided(ran: frozenset[str], about_comments: Iterable[Rule], codes: Mapping[str, str]) -> frozenset[str]:
    """Return the codes whose findings are all known: those about comments only if all rules ran."""
    return ran if ran >= set(codes.values()) else ran - {rule.code for rule in about_comments}


def _judge(project: Project, path: Path, rules: Sequence[Rule], codes: Mapping[str, str]) -> FileVerdict:
    try:
        with limited():
            return _judge_patiently(project, path, rules, codes)
    except TookTooLong:
        project.forget_derived()  # It may be incomplete.
        return FileVerdict(problems=(Problem(path, TOO_SLOW),))


def _judge_patiently(
    project: Project, path: Path, rules: Sequence[Rule], codes: Mapping[str, str]
) -> FileVerdict:
    try:
        file = project.file(path)
    except UnreadableFile as error:
        return FileVerdict(problems=(Problem(path, error.message, error.position),))
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError)
        cause = "this file was deleted during the run" if is_gone else error.strerror
        return FileVerdict(problems=(Problem(path, f"this file cannot be read: {cause}"),))
    problem = syntax_problem(file)
    if problem is not None:
        return FileVerdict(problems=(problem,))
    suppressions = Suppressions(file, codes)
    try:
        network = Network(project, file)
    except Exception as error:
        return FileVerdict(problems=(crash(path, "gclint", error),), suppressions=suppressions)
    findings: list[Finding] = []
    problems: list[Problem] = []
    ran: set[str] = set()
    ignored = ignored_codes(project.settings, path, rules)
    for rule in selected_for(project.settings, path, rules):
        try:
            # Ignored findings are needed all the same: as with a comment, their code must not change.
            findings += found_by(rule, network)
        except (Exception, SystemExit) as error:
            if rule.code not in ignored:
                problems.append(crash(path, rule.code, error, rule))
        else:
            ran.add(rule.code)
    network.facts.clear()  # They hold the network, which would never be freed with the collector paused.
    let_go(project)
    return FileVerdict(tuple(findings), tuple(problems), frozenset(ran) - ignored, suppressions)


def crash(path: Path, what: str, error: BaseException, rule: Rule | None = None) -> Problem:
    """Return the problem that an error of gclint is, or of a rule, while it looks at a file."""
    if isinstance(error, RecursionError):
        return Problem(path, f"{what} gave this file up: {_TOO_DEEP}")
    if isinstance(error, Unsound):
        return Problem(path, f"{what} cannot be used on this file: {error}; {blame([what])}")
    lines = str(error).splitlines()
    description = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if rule is not None and is_own(rule) and each.filename == home(rule)]
    place = (own or frames)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return Problem(path, f"{what} crashed on this file: {description} ({where}); {blame([what])}")


def blame(codes: Collection[str]) -> str:
    """Return a clause that says whose bug it is if the rules with these codes do not work."""
    files = {shown(home(rule)) for rule in own_rules() if rule.code in codes}
    return f"this is a bug in the rule, which is in {listed(sorted(files))}" if files else BUG


def _limited_by_encoding(project: Project, finding: Finding) -> Finding:
    """Return a finding, without its fix if another line would declare the encoding of a file after it."""
    for path, edits in by_file(finding.edits).items():
        file = project.file(path)
        is_above = min(edit.start for edit in edits) < file.row_start(_DECLARING + 1)
        if is_above and not file.reads_back(edited(file.text, edits)):
            return finding.refused(
                f"the fix would change which of the first {_DECLARING} lines declares the encoding of "
                f"{shown(path)}, which would be read differently then"
            )
    return finding


def _limited_to_given_files(project: Project, finding: Finding) -> Finding:
    """Return a finding, without its fix if that needs other files too."""
    changed = {edit.path for edit in finding.edits}
    for path in sorted(changed & project.given - project.fixable):
        outside = f"{shown(path)} leads to {shown(project.location(path))}, outside the given folders"
        return finding.refused(f"{outside}; to fix it, pass that path")
    others = changed - project.given
    if not others:
        return finding
    names = listed(sorted(map(shown, others)))
    if any(map(project.is_context, others)):
        return finding.refused(f"the fix would also have to change the installed transformers: {names}")
    return finding.refused(
        f"the fix also changes {names}; pass {'it' if len(others) == 1 else 'them'} to gclint as well"
    )
