"""Explains a place: what is there, and what each rule reports about it, or why it is silent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from gclint.code.file import SourceFile
from gclint.code.project import Project
from gclint.code.suppressions import Ignore
from gclint.copies.generated import is_modular, modeling_path, modular_path
from gclint.finding import Finding, Position
from gclint.network.explaining.facts import Section
from gclint.network.explaining.places import CodeToExplain, PlaceKind, code_at
from gclint.network.explaining.understanding import headline, sections
from gclint.network.model import Network
from gclint.rule import CommentRule, Rule, ignored_codes
from gclint.run.baseline import Baseline
from gclint.run.check import LintResult, collector_paused, crash, judge, summarise


class RuleOutcome(Enum):
    """What became of a place under a rule."""

    FOUND = "found"
    SUPPRESSED = "suppressed by a comment"
    BASELINE = "known from the baseline"
    IGNORED = "ignored by the settings"
    ELSEWHERE = "reported where it is written"
    SILENT = "silent"
    UNCONCERNED = "not about this"
    CRASHED = "crashed"


@dataclass(frozen=True)
class Opinion:
    """What a rule reports about a place, and why."""

    rule: Rule
    outcome: RuleOutcome
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class ExplainedCode:
    """One thing at a place."""

    explained: CodeToExplain
    headline: str
    sections: tuple[Section, ...]
    opinions: tuple[Opinion, ...]


@dataclass(frozen=True)
class PlaceExplanation:
    """All that is known about a place."""

    project: Project
    file: SourceFile
    place: Position
    """The column is 0 if none was given."""
    explained: tuple[ExplainedCode, ...]
    comments: tuple[tuple[Ignore, tuple[Finding, ...]], ...]
    """The ignore comments that apply to it, with what they suppress."""
    releases: str
    origin: str
    """Where the releases come from."""
    notes: tuple[str, ...] = ()


class Explainer:
    """Explains places in a file, which is judged once for all of them."""

    def __init__(
        self,
        project: Project,
        path: Path,
        rules: Sequence[Rule],
        selected: Sequence[Rule],
        *,
        baseline: Baseline | None = None,
        known: LintResult | None = None,
    ) -> None:
        """Judge the file at ``path``, or use what a run of all rules has ``known``.

        The ``baseline`` holds what is not reported.
        """
        self._project = project
        self._file = file = project.file(path)
        self._rules = rules
        self._selected = selected
        self._network = Network(project, file)
        if known is None:
            with collector_paused():
                known = summarise(project, judge(project, self._related(), rules), rules)
        self._every = [each for verdict in known.verdicts.values() for each in verdict.findings]
        own = [each for each in self._every if each.path == file.path]
        self._raw = [each for each in own if each.awaits is None]
        """What the rules find in the file before comments, settings and the baseline are applied."""
        self._pending = [each for each in own if each.awaits is not None]
        self._reported = reported = known.findings
        self._new = {*(reported if baseline is None else baseline.without_known(project, reported))}
        self._verdict = known.verdicts[file.path]
        self._ignored = ignored_codes(project.settings, file.path, rules)

    def _related(self) -> tuple[Path, ...]:
        """Return the given files that affect what is reported: the file, its source, and its copy."""
        path = self._file.path
        other = modeling_path(path) if is_modular(path) else modular_path(self._file)
        both = (path, *(() if other is None else (self._project.identify(other),)))
        return tuple(each for each in both if each in self._project.given)

    def explain(self, place: Position, notes: Iterable[str] = ()) -> PlaceExplanation:
        """Explain a place in the file, a row and a column or 0, with further remarks about the file."""
        file, network = self._file, self._network
        row = file.row_start(place.row)
        start, end = row, row + len(file.line(place.row))
        if place.column:
            start = end = row + place.column - 1
        else:
            start += len(file.line(place.row)) - len(file.line(place.row).lstrip())
        explained = []
        for code in code_at(network, start, end, is_exact=bool(place.column)):
            opinions = tuple(self._opinion(rule, code, start, end) for rule in self._rules)
            explained.append(
                ExplainedCode(code, headline(network, code), tuple(sections(network, code)), opinions)
            )
        assumed = self._project.assumed(file)
        return PlaceExplanation(
            self._project,
            file,
            place,
            tuple(explained),
            tuple(self._comments(start, end)),
            str(assumed.releases),
            assumed.origin,
            tuple(notes),
        )

    def _opinion(self, rule: Rule, explained: CodeToExplain, start: int, end: int) -> Opinion:
        found, raw = (
            tuple(
                each
                for each in findings
                if each.code == rule.code
                and each.path == self._file.path
                and _is_about(each, explained, start, end)
            )
            for findings in (self._reported, self._raw)
        )
        if found and rule in self._selected:
            is_new = any(each in self._new for each in found)
            return Opinion(rule, RuleOutcome.FOUND if is_new else RuleOutcome.BASELINE, (), found)
        if found or (raw and rule.code in self._ignored):
            return Opinion(rule, RuleOutcome.IGNORED, (), found or raw)
        if raw:
            covers = self._verdict.suppressions
            if covers is not None and any(map(covers.covers, raw)):
                return Opinion(rule, RuleOutcome.SUPPRESSED, (), raw)
            own = (each for each in self._reported if each.code == rule.code)
            elsewhere = tuple(each for each in own if self._stands_for(each, raw))
            return Opinion(rule, RuleOutcome.ELSEWHERE, (), elsewhere or raw)
        pending = [each for each in self._pending if each.code == rule.code]
        parts = [self._part(each) for each in pending if _is_about(each, explained, start, end)]
        if parts:
            return Opinion(rule, RuleOutcome.SILENT, tuple(dict.fromkeys(parts)))
        has_run = rule.code in self._verdict.ran or rule.code in self._ignored
        if not has_run and not isinstance(rule, CommentRule):
            return Opinion(rule, RuleOutcome.CRASHED, tuple(each.message for each in self._verdict.problems))
        try:
            reasons = tuple(dict.fromkeys(rule.silence(self._network, explained)))
        except (Exception, SystemExit) as error:
            return Opinion(
                rule, RuleOutcome.CRASHED, (crash(self._file.path, rule.code, error, rule).message,)
            )
        return Opinion(rule, RuleOutcome.SILENT if reasons else RuleOutcome.UNCONCERNED, reasons)

    def _part(self, finding: Finding) -> str:
        """Return which fix sees to what is no defect yet, as a clause."""
        for each in self._every:
            if finding.awaits in (each.class_elsewhere, (each.path, each.start, each.end)):
                row = self._project.file(each.path).position(each.start).row
                where = "" if each.path == finding.path else f" of {each.path.name}"
                return f"part of the fix of {each.code} on line {row}{where}"
        return f"`{finding.symbol}` is not a checkpointing layer yet"

    def _stands_for(self, finding: Finding, raw: Iterable[Finding]) -> bool:
        """Return whether a finding at the source of a generated file stands for others."""
        symbols = {each.symbol for each in raw}
        return any(
            inherited.path == self._file.path and inherited.symbol in symbols
            for inherited in finding.inherited_by
        )

    def _comments(self, start: int, end: int) -> Iterable[tuple[Ignore, tuple[Finding, ...]]]:
        """Yield the ignore comments that apply to a place, or are there, with what they suppress."""
        suppressions = self._verdict.suppressions
        for ignore in () if suppressions is None else suppressions.ignores:
            first, last = ignore.covered
            if first <= start < last or ignore.start < max(end, start + 1) <= ignore.end + 1:
                yield ignore, tuple(filter(ignore.suppresses, (*self._raw, *self._pending)))


def _is_about(finding: Finding, explained: CodeToExplain, start: int, end: int) -> bool:
    """Return whether a finding is about what stands at a place, or in one of its call sites."""
    if finding.start < max(end, start + 1) and start < finding.end:
        return True
    if explained.kind is PlaceKind.CLASS and explained.start <= finding.start < explained.end:
        return True
    if any(finding.start == info.definition.header for info in explained.classes):
        return True
    sites = (site for site in explained.sites if site.scope.module.file.path == finding.path)
    return any(first <= finding.start < last for first, last in (site.span(site.call) for site in sites))
