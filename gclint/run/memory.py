"""Verdicts of an earlier run, and what a later run needs to tell which of them are still valid.

A verdict depends on files, in turn on what these depend on, on questions to all files, and on facts about the
packages around. If a file has changed, or a question has another answer, the files that depend on it are
checked again; if a fact about the packages has changed, all are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from gclint.cache.codec import decoded as value_of
from gclint.cache.codec import encoded
from gclint.cache.consulted import Damaged, RecordedAnswer, changed, consulted, decoded, still_holds
from gclint.cache.store import Store
from gclint.code.neighbouring_files import AROUND, files_around
from gclint.code.project import OF_FILES, Project
from gclint.code.questions import Question
from gclint.code.suppressions import Suppressions
from gclint.edit.hooks import FILES_THAT_HOOK
from gclint.edit.leftover import CHECKPOINTING
from gclint.edit.modes import MODES
from gclint.edit.own_functions import OWN_FUNCTIONS
from gclint.edit.patched import REPLACING
from gclint.edit.replaced import HOOKING, MENTIONING
from gclint.edit.signature import NAMING
from gclint.edit.switching import COMPUTING
from gclint.edit.users import USING
from gclint.facts import digest
from gclint.finding import Finding
from gclint.network.importers import BESIDE, IMPORTED, IMPORTERS
from gclint.network.index import BASES
from gclint.network.lineage import FOLLOWERS
from gclint.network.outside import FUNCTION_SETTINGS, SWITCHES
from gclint.network.switch_uses import SWITCH_USES
from gclint.network.taking import TAKING
from gclint.rule import Rule
from gclint.run.check import SUMMARY, FileVerdict, LintResult, Recalled, aims_at, known_codes, result_of
from gclint.run.copy_index import COPIES, CopyIndex
from gclint.trace import FileFact, Trace, current, phase

_TOPICS = {
    each.name: each
    for each in (
        BASES,
        BESIDE,
        CHECKPOINTING,
        COMPUTING,
        MODES,
        COPIES,
        FOLLOWERS,
        FUNCTION_SETTINGS,
        HOOKING,
        IMPORTED,
        IMPORTERS,
        NAMING,
        OWN_FUNCTIONS,
        REPLACING,
        MENTIONING,
        FILES_THAT_HOOK,
        SWITCHES,
        SWITCH_USES,
        TAKING,
        USING,
    )
}
_OF_SUMMARIES = (COPIES.name, FOLLOWERS.name)
_OF_THE_LINT = ("", OF_FILES, AROUND, str(SUMMARY))
"""The phases of facts that verdicts depend on; the facts of others are computed in each run."""


_Summary: TypeAlias = tuple[tuple[Finding, ...], tuple[tuple[int, ...], ...], tuple[Finding, ...]]
"""The findings of a whole run, the numbers of those that are repaired together, and what is pending."""


@dataclass(frozen=True)
class _Past:
    """What an earlier run has stored, beside the facts that it has consulted."""

    given: tuple[Path, ...]
    verdicts: Mapping[Path, tuple[tuple[Finding, ...], frozenset[str], bool]]
    """The findings, the codes of the rules that ran, and whether there are ignore comments."""
    summary: _Summary | None
    """The result of the whole run."""
    uses: Mapping[Path, tuple[Path, ...]]
    asked: Mapping[Path, tuple[Question, ...]]
    answers: Mapping[Question, frozenset[Path]]
    unparsed: tuple[Path, ...]


class Memory:
    """The verdicts of runs with the same settings and rules on the same paths."""

    def __init__(self, store: Store, run: Sequence[object]) -> None:
        """Remember where the verdicts of a ``run``, which its ``repr`` identifies, are; read nothing yet."""
        self._store = store
        self._name = f"verdicts-{digest(repr(run).encode('utf-8', 'surrogatepass'))[:32]}"

    def recall(self, project: Project, rules: Sequence[Rule]) -> Recalled:
        """Return what still stands."""
        trace = current()
        document = None if trace is None else self._store.read(self._name)
        if trace is None or document is None:
            return Recalled()
        try:
            if not still_holds(document.get("code")):
                return Recalled()
            past = _past(document.get("past"))
            return _Recall(project, trace, past, decoded(document.get("facts"))).recalled(rules)
        except Damaged:
            return Recalled()

    def keep(self, project: Project, result: LintResult) -> None:
        """Store what was found, if nothing has changed meanwhile."""
        trace = current()
        if trace is None:
            return
        summary = _summary(project, result)
        code, facts = consulted(trace)
        if code is None or facts is None:
            return
        past = _Past(
            project.paths,
            {
                path: (each.findings, each.ran, bool(each.suppressions.ignores))
                for path, each in result.verdicts.items()
                if each.suppressions is not None and not each.problems
            },
            summary,
            {user: tuple(used) for user, used in project.uses.items()},
            {user: tuple(asked) for user, asked in project.questions.of.items()},
            {each: frozenset(found) for each, found in project.questions.answers.items()},
            tuple(project.unparsed),
        )
        self._store.write(self._name, {"code": code, "facts": facts, "past": encoded(past)})


class _Recall:
    """Finds out which stored verdicts are still valid in a project."""

    def __init__(
        self, project: Project, trace: Trace, past: _Past, known: Mapping[FileFact, RecordedAnswer]
    ) -> None:
        self._project = project
        self._trace = trace
        self._past = past
        self._known = known

    def recalled(self, rules: Sequence[Rule]) -> Recalled:
        """Return what is still valid, and tell the project what it depends on."""
        past, project = self._past, self._project
        own = {fact: kept for fact, kept in self._known.items() if kept.phase in _OF_THE_LINT}
        now = changed(own)
        both = set(past.given) & project.given
        is_same_order = [path for path in past.given if path in both] == [
            path for path in project.paths if path in both
        ]
        if any(own[fact].phase == "" for fact in now) or not is_same_order:
            return Recalled()
        files = {Path(fact.path) for fact in now if own[fact].phase == OF_FILES}
        files |= set(past.given) ^ project.given
        answers = self._answers(files, now)
        self._note(own, now)
        self._learn(files, answers)
        asked_anew = {each for each, found in past.answers.items() if answers[each] != found}
        users = {user for user, asked in past.asked.items() if not asked_anew.isdisjoint(asked)}
        stale = project.dependents(files | users)
        if any(own[fact].phase == str(SUMMARY) for fact in now) or past.given != project.paths:
            stale.add(SUMMARY)
        project.questions.still_valid.update(
            (each, found)
            for each, found in answers.items()
            if SUMMARY not in stale or each.topic not in _OF_SUMMARIES
        )
        codes = known_codes(rules)
        verdicts = dict(self._verdicts(stale, files, codes))
        return Recalled(verdicts, self._result(stale, verdicts, codes, rules), is_all=not now)

    def _verdicts(
        self, stale: Set[Path], files: Set[Path], codes: Mapping[str, str]
    ) -> Iterator[tuple[Path, FileVerdict]]:
        project = self._project
        for path, (findings, ran, has_comments) in self._past.verdicts.items():
            if path not in project.given or path in stale:
                continue
            file = project.file(path) if has_comments else None
            verdict = FileVerdict(findings, (), ran, Suppressions(file, codes))
            if not aims_at(files, verdict):
                yield path, verdict

    def _result(
        self,
        stale: Set[Path],
        verdicts: Mapping[Path, FileVerdict],
        codes: Mapping[str, str],
        rules: Sequence[Rule],
    ) -> LintResult | None:
        """Return the result of the whole run, if only different verdicts could change it."""
        past = self._past
        if past.summary is None or SUMMARY in stale:
            return None
        before = dict(verdicts)
        for path, (findings, ran, has_comments) in past.verdicts.items():
            if path not in verdicts:
                if has_comments:  # They are not known as they were.
                    return None
                before[path] = FileVerdict(findings, (), ran, Suppressions(None, codes))
        findings, groups, pending = past.summary
        repaired = tuple(frozenset(findings[number] for number in group) for group in groups)
        return result_of(findings, repaired, pending, before, rules)

    def _answers(self, files: set[Path], now: Mapping[FileFact, str]) -> dict[Question, frozenset[Path]]:
        """Return the current answers to all questions; only changed files have to be asked."""
        past, project = self._past, self._project
        around = {Path(fact.path) for fact in self._known if self._is_searched(fact)}
        asked = {Path(fact.path) for fact in now if self._is_searched(fact)} | files
        later = around
        if any(self._known[fact].phase == AROUND and fact.kind != "search" for fact in now):
            later = set(files_around(project))
            asked |= around ^ later
        elif around:
            later = around - (set(past.given) - project.given) | project.given
        answers = dict(past.answers)
        for question, found in past.answers.items():
            topic = _TOPICS[question.topic]
            for path in asked:
                is_asked = (
                    topic.is_about_given if path in project.given else topic.is_about_others and path in later
                )
                file = next(project.readable([path]), None) if is_asked else None
                is_one = file is not None and topic.holds(file, question.key)
                if is_one != (path in found):
                    answers[question] = answers[question] ^ {path}
        return answers

    def _is_searched(self, fact: FileFact) -> bool:
        return fact.kind == "search" and self._known[fact].phase == AROUND

    def _note(self, own: Mapping[FileFact, RecordedAnswer], now: Mapping[FileFact, str]) -> None:
        """Record the dependencies of valid verdicts as read by this run."""
        changed_paths = {fact.path for fact in now}
        for fact, kept in own.items():
            with phase(kept.phase):
                self._trace.note(fact, now.get(fact, kept.text))
            if kept.signature is not None and fact.path not in changed_paths:
                self._trace.see(fact.path, kept.signature)

    def _learn(self, files: set[Path], answers: Mapping[Question, frozenset[Path]]) -> None:
        """Tell the project the known dependencies; those of changed files are computed again."""
        past, project = self._past, self._project
        project.learn_uses(
            (user, used) for user, several in past.uses.items() if user not in files for used in several
        )
        project.questions.learn(
            (user, each, tuple(answers[each]))
            for user, asked in past.asked.items()
            if user not in files
            for each in asked
        )
        project.learn_unparsed(path for path in past.unparsed if path not in files)


def _past(document: object) -> _Past:
    """Return what was stored.

    Raises:
        Damaged: it is something else.
    """
    past = value_of(_Past, document)
    asked = {each for several in past.asked.values() for each in several}
    if any(each.topic not in _TOPICS for each in past.answers) or not asked <= past.answers.keys():
        raise Damaged("there are other questions")
    findings, groups, _ = past.summary or ((), (), ())
    if any(not 0 <= number < len(findings) for group in groups for number in group):
        raise Damaged("there is no such finding")
    return past


def _summary(project: Project, result: LintResult) -> _Summary | None:
    """Return the result of the whole run for storage; None if it depends on files beside the given ones."""
    if any(verdict.findings for verdict in result.verdicts.values()):
        with phase(str(SUMMARY)):
            if not project.given.issuperset(CopyIndex(project).paths):
                return None
    number = {finding: index for index, finding in enumerate(result.findings)}
    groups = (tuple(sorted(number[finding] for finding in group)) for group in result.groups)
    return result.findings, tuple(groups), result.pending
