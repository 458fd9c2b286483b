"""Verdicts of an earlier run that still stand, and what a later run has to know to tell which do.

A verdict hangs on files, in turn on what these hang on, on questions to all files, and on facts about the
packages around. Where a file is another one now, or a question has another answer, the files that hang on it
are judged again; where a fact about the packages is another one, all are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gclint.cache.code import code_facts
from gclint.cache.codec import decoded as value_of
from gclint.cache.codec import encoded as document_of
from gclint.cache.store import Store
from gclint.cache.traces import Damaged, Known, changed, decoded, encoded, still_holds
from gclint.codemod.leftover import CHECKPOINTING
from gclint.codemod.patched import REPLACING
from gclint.codemod.signature import NAMING
from gclint.engine.check import Verdict, aims_at, known_codes
from gclint.facts import Fact, Trace, current, digest, phase
from gclint.finding import Finding
from gclint.network.importers import BESIDE, IMPORTED, IMPORTERS
from gclint.network.index import BASES
from gclint.network.outside import SWITCHES
from gclint.rule import Rule
from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.project import OF_FILES, Project
from gclint.source.questions import Question
from gclint.source.suppressions import Suppressions
from gclint.source.surroundings import AROUND, files_around

_TOPICS = {
    each.name: each
    for each in (BASES, BESIDE, CHECKPOINTING, IMPORTED, IMPORTERS, NAMING, REPLACING, SWITCHES)
}
_OF_THE_LINT = ("", OF_FILES, AROUND)
"""The phases of facts that verdicts hang on; what others are about, each run finds out anew."""


@dataclass(frozen=True)
class _Past:
    """What an earlier run has kept."""

    facts: Known
    phases: Mapping[Fact, str]
    given: Sequence[Path]
    verdicts: Mapping[Path, tuple[tuple[Finding, ...], frozenset[str], bool]]
    uses: Mapping[Path, Sequence[Path]]
    asked: Mapping[Path, Sequence[Question]]
    answers: Mapping[Question, frozenset[Path]]


class Memory:
    """The verdicts of runs with the same settings and rules on the same paths."""

    def __init__(self, folder: Path, run: Sequence[object]) -> None:
        """Look at nothing yet.

        Args:
            folder: the cache.
            run: what stands for such runs; its ``repr`` does.
        """
        self.store = Store(folder)
        self._name = f"verdicts-{digest(repr(run).encode('utf-8', 'surrogatepass'))[:32]}"

    def recall(self, project: Project, rules: Sequence[Rule]) -> dict[Path, Verdict]:
        """Return the verdicts that still stand."""
        trace = current()
        document = None if trace is None else self.store.read(self._name)
        if trace is None or document is None:
            return {}
        try:
            if not still_holds(document.get("code")):
                return {}
            past = _past(document)
        except Damaged:
            return {}
        return _Recall(project, trace, past).verdicts(rules)

    def keep(self, project: Project, verdicts: Mapping[Path, Verdict]) -> None:
        """Keep verdicts, if nothing has changed while they were found."""
        trace = current()
        code = None if trace is None or trace.is_torn else code_facts()
        if trace is None or code is None:
            return
        rows = [
            [str(path), document_of(each.findings), document_of(each.ran), bool(each.suppressions.ignores)]
            for path, each in verdicts.items()
            if each.suppressions is not None and not each.problems
        ]
        questions = project.questions
        document = {
            "code": encoded(code),
            "facts": encoded(trace),
            "given": [str(path) for path in project.paths],
            "verdicts": rows,
            "uses": [[str(user), [*map(str, used)]] for user, used in project.uses.items()],
            "asked": [[str(user), [*map(list, asked)]] for user, asked in questions.of.items()],
            "answers": [[*each, [*map(str, found)]] for each, found in questions.answers.items()],
        }
        self.store.write(self._name, document)


class _Recall:
    """What of the past still stands in a project."""

    def __init__(self, project: Project, trace: Trace, past: _Past) -> None:
        self._project = project
        self._trace = trace
        self._past = past
        self._files: dict[Path, SourceFile | None] = {}

    def verdicts(self, rules: Sequence[Rule]) -> dict[Path, Verdict]:
        """Return the verdicts that still stand, and let the project know what they hang on."""
        past, project = self._past, self._project
        own = {fact: past.facts[fact] for fact in past.facts if past.phases[fact] in _OF_THE_LINT}
        now = changed(own)
        both = set(past.given) & project.given
        is_same_order = [path for path in past.given if path in both] == [
            path for path in project.paths if path in both
        ]
        if any(past.phases[fact] == "" for fact in now) or not is_same_order:
            return {}
        files = {Path(fact.path) for fact in now if past.phases[fact] == OF_FILES}
        files |= set(past.given) ^ project.given
        answers = self._answers(files, now)
        self._note(own, now)
        self._learn(files, answers)
        asked_anew = {each for each, found in past.answers.items() if answers[each] != found}
        users = {user for user, asked in past.asked.items() if not asked_anew.isdisjoint(asked)}
        stale = project.dependents(files | users)
        codes = known_codes(rules)
        found = {}
        for path, (findings, ran, has_comments) in past.verdicts.items():
            if path in project.given and path not in stale:
                comments = (
                    Suppressions(project.file(path), codes) if has_comments else Suppressions.none(codes)
                )
                verdict = Verdict(findings, (), ran, comments)
                if not aims_at(files, verdict):
                    found[path] = verdict
        return found

    def _answers(self, files: set[Path], now: Mapping[Fact, str]) -> dict[Question, frozenset[Path]]:
        """Return the answers that all questions have now; only of changed files they have to be found."""
        past, project = self._past, self._project
        around = {Path(fact.path) for fact in past.facts if self._is_searched(fact)}
        asked = {Path(fact.path) for fact in now if self._is_searched(fact)} | files
        later = around
        if any(past.phases[fact] == AROUND and fact.kind != "search" for fact in now):
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
                file = self._file(path) if is_asked else None
                is_one = file is not None and topic.holds(file, question.key)
                if is_one != (path in found):
                    answers[question] = answers[question] ^ {path}
        return answers

    def _is_searched(self, fact: Fact) -> bool:
        return fact.kind == "search" and self._past.phases[fact] == AROUND

    def _file(self, path: Path) -> SourceFile | None:
        if path not in self._files:
            try:
                self._files[path] = self._project.file(path)
            except (OSError, UnreadableFile):
                self._files[path] = None
        return self._files[path]

    def _note(self, own: Known, now: Mapping[Fact, str]) -> None:
        """Let what verdicts hang on be among what this run has read."""
        for fact, (answer, seen) in own.items():
            with phase(self._past.phases[fact]):
                self._trace.note(fact, now.get(fact, answer))
            if seen is not None and fact not in now:
                self._trace.signatures.setdefault(fact.path, seen)

    def _learn(self, files: set[Path], answers: Mapping[Question, frozenset[Path]]) -> None:
        """Let the project know what hangs on what; what changed files hung on is found out anew."""
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


def _past(document: Mapping[str, Any]) -> _Past:
    """Return what was kept.

    Raises:
        Damaged: it is something else.
    """
    facts, phases = decoded(document.get("facts"))
    asked: defaultdict[Path, list[Question]] = defaultdict(list)
    answers = {}
    for topic, key, found in value_of(tuple[tuple[str, str, tuple[Path, ...]], ...], document.get("answers")):
        answers[Question(topic, key)] = frozenset(found)
    for user, questions in value_of(
        tuple[tuple[Path, tuple[tuple[str, str], ...]], ...], document.get("asked")
    ):
        asked[user] = [Question(*each) for each in questions]
    if any(each.topic not in _TOPICS for each in answers) or any(
        each not in answers for several in asked.values() for each in several
    ):
        raise Damaged("there are other questions")
    verdicts = value_of(
        tuple[tuple[Path, tuple[Finding, ...], frozenset[str], bool], ...], document.get("verdicts")
    )
    return _Past(
        facts,
        phases,
        value_of(tuple[Path, ...], document.get("given")),
        {path: (findings, ran, has_comments) for path, findings, ran, has_comments in verdicts},
        dict(value_of(tuple[tuple[Path, tuple[Path, ...]], ...], document.get("uses"))),
        asked,
        answers,
    )
