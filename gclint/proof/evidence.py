"""What runs say: observations for the linter to use beside the text, and evidence for or against findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.project import Project
from gclint.code.suppressions import Suppressions
from gclint.copies.generated import is_modular
from gclint.finding import Applicability, Evidence, Finding, InheritedDefect, Refusal, in_reading_order
from gclint.observations import Feeding, Observations, Observed
from gclint.rule import Rule, all_rules, codes_by_word, with_level
from gclint.run.check import LintResult
from gclint.verify.files import FileRun, Runner
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.coverage import is_reached
from gclint.verify.worker.protocol import ClassResult, Failure, ObservedSite, SourcePlace

_ONLY_SEEN = "this was seen in a run, and the text alone does not say how to repair it"


@dataclass(frozen=True)
class Hint:
    """What repairs a failure: the fixes of findings of one rule at its places."""

    code: str
    paths: tuple[Path, ...]
    """The files that the fixes change: all of them have to be given."""
    is_unsafe: bool
    is_whole: bool
    """Whether each place of the failure has such a finding."""
    needs_run: bool = False
    """Whether a fix rests on what a run saw, so that only a run that proves it makes it."""
    findings: tuple[Finding, ...] = field(default=(), compare=False)
    """The findings with these fixes; hints that say the same are equal."""


@dataclass(frozen=True)
class Weighed:
    """The combined results of the linter and of runs."""

    findings: tuple[Finding, ...] = ()
    """Those of the linter with what the runs say about them, and those that only the runs have."""
    hints: Mapping[tuple[str, str, Failure], tuple[Hint, ...]] = field(default_factory=dict)
    """By source, class and failure; none where nothing can be repaired."""

    def hints_of(self, result: ClassResult, failure: Failure) -> tuple[Hint, ...]:
        """Return what repairs a failure of a class."""
        return self.hints.get((result.source, result.name, failure), ())


def weigh(
    project: Project, result: LintResult, runs: Iterable[ClassResult], rules: Sequence[Rule]
) -> Weighed:
    """Combine what the linter found in the texts that were run with what happened in the runs."""
    return _Scales(project, result, rules).weigh(list(runs))


class _Scales:
    def __init__(self, project: Project, result: LintResult, rules: Sequence[Rule]) -> None:
        self._project = project
        self._result = result
        self._rules = {rule.code: rule for rule in rules}

    def weigh(self, runs: Sequence[ClassResult]) -> Weighed:
        sites = [site for run in runs for site in run.sites if site.calls]
        weighed = [
            replace(each, evidence=self._evidence(each, sites, runs)) for each in self._result.findings
        ]
        seen: dict[tuple[Path, int, str], Finding] = {}
        hints: dict[tuple[str, str, Failure], tuple[Hint, ...]] = {}
        for run in runs:
            for failure in run.failures:
                claims = [rule for rule in self._rules.values() if failure.cause in rule.causes]
                hints[run.source, run.name, failure] = tuple(
                    hint for rule in claims for hint in self._hints(rule, failure, run)
                )
                for finding in self._seen_only(claims, failure, run.sites):
                    seen.setdefault((finding.path, finding.start, finding.code), finding)
        return Weighed(tuple(in_reading_order([*weighed, *seen.values()])), hints)

    def _evidence(
        self, finding: Finding, sites: Collection[ObservedSite], runs: Collection[ClassResult]
    ) -> Evidence | None:
        rule = self._rules.get(finding.code)
        if rule is None:
            return None
        if self._is_shown(rule, finding, runs):
            return Evidence.CONFIRMED
        if rule.is_about_calls and self._is_left_out(finding, runs):
            return Evidence.NOT_RUN
        matching = [site for site in sites if self._is_about(rule, finding, site)]
        here = [site.place for site in matching if self._covers(site.place, finding)]
        others = [
            place
            for place in here
            if any(map(place.encloses, here)) or _is_of_another(rule, finding, place, sites)
        ]
        matching = [site for site in matching if site.place not in others]
        return rule.evidence(matching, self._text) if matching else None

    def _is_left_out(self, finding: Finding, runs: Collection[ClassResult]) -> bool:
        """Return whether no run came to a call, or to the calls of the class that a finding is about."""
        own = [run for run in runs if self._project.identify(Path(run.source)) == finding.path]
        if not own or finding.inherited_by:
            return False
        file = self._project.file(finding.path)
        here = [
            each
            for run in runs
            for each in run.coverage
            if not each.is_inside and self._project.identify(Path(each.path)) == finding.path
        ]
        if not here:
            return all(run.outcome == "not run" for run in own)
        return is_reached(here, file.text, *_in_bytes(file, finding.start)) is False

    def _is_shown(self, rule: Rule, finding: Finding, runs: Iterable[ClassResult]) -> bool:
        return any(
            is_shown(rule, finding, self._covers, run, failure, self._project)
            for run in runs
            for failure in run.failures
        )

    def _is_about(self, rule: Rule, finding: Finding, site: ObservedSite) -> bool:
        files = {self._project.identify(Path(place.path)) for place in (site.place, site.definition)}
        if any(
            site.block == inherited.symbol and inherited.path in files for inherited in finding.inherited_by
        ):
            return True
        return any(self._covers(place, finding) for place in rule.places(finding, site))

    def _covers(self, place: SourcePlace, finding: Finding) -> bool:
        """Return whether a finding is in a piece of code: on its lines, and within its columns."""
        if self._project.identify(Path(place.path)) != finding.path:
            return False
        file = self._project.file(finding.path)
        first, last = _in_bytes(file, finding.start), _in_bytes(file, finding.end)
        if not place.columns:
            return place.line <= first[0] <= place.end_line
        return (place.line, place.columns[0]) < last and first < (place.end_line, place.columns[1])

    def _text(self, place: SourcePlace) -> str:
        file = self._project.file(Path(place.path))
        last = min(place.end_line, len(file.line_starts))
        return "\n".join(file.line(row) for row in range(place.line, last + 1))

    def _about(self, rule: Rule, place: SourcePlace, sites: Iterable[ObservedSite]) -> list[Finding]:
        """Return the findings of a rule about a place where something failed."""
        here = [site for site in sites if site.place == place]
        return [
            each
            for each in self._result.findings
            if each.code == rule.code
            and (self._covers(place, each) or any(self._is_about(rule, each, site) for site in here))
        ]

    def _hints(self, rule: Rule, failure: Failure, run: ClassResult) -> Iterator[Hint]:
        about = [self._about(rule, place, run.sites) for place in failure.places]
        if not failure.places:
            own = (each for each in self._result.findings if each.code == rule.code)
            about = [[each for each in own if rule.concerns(each, failure, run)]]
        repairable = [[each for each in found if each.fix] for found in about]
        made = [other for found in repairable for each in found for other in self._made_with(each)]
        fixes = [each.fix for each in made if each.fix is not None]
        if fixes:
            yield Hint(
                rule.code,
                tuple(dict.fromkeys(edit.path for fix in fixes for edit in fix.edits)),
                any(fix.applicability is Applicability.UNSAFE for fix in fixes),
                all(repairable),
                any(_rests_on_run(each) for found in repairable for each in found),
                in_reading_order(set(made)),
            )

    def _made_with(self, finding: Finding) -> Iterator[Finding]:
        """Yield a finding, and those whose fixes are made together with it."""
        groups = (group for group in self._result.groups if finding in group)
        yield from next(groups, frozenset((finding,)))

    def _seen_only(
        self, claims: Sequence[Rule], failure: Failure, sites: Sequence[ObservedSite]
    ) -> Iterator[Finding]:
        """Yield findings for a failure that no other finding is about, at its places in given files."""
        explaining = [rule for rule in claims if rule.explains_all]
        for place in failure.places if explaining else ():
            path = self._project.identify(Path(place.path))
            if path in self._project.paths and not any(self._about(rule, place, sites) for rule in claims):
                finding = self._seen(explaining[0], failure, place, path, sites)
                if not Suppressions(self._project.file(path), codes_by_word(all_rules())).covers(finding):
                    yield finding

    def _seen(
        self, rule: Rule, failure: Failure, place: SourcePlace, path: Path, sites: Sequence[ObservedSite]
    ) -> Finding:
        file = self._project.file(path)
        start = file.line_starts[place.line - 1]
        line = file.line(place.line)
        found = rule.finding(
            failure.text,
            path,
            (start + len(line) - len(line.lstrip()), start + len(line)),
            next((site.block for site in sites if site.place == place), ""),
            Refusal(_ONLY_SEEN),
            evidence=Evidence.CONFIRMED,
        )
        return with_level(self._project.settings, found)


def _rests_on_run(finding: Finding) -> bool:
    """Return whether a finding of a rule, or its fix, exists only because of what a run saw."""
    is_provable = finding.fix is not None and finding.fix.applicability is Applicability.PROVABLE
    return is_provable or finding.evidence is not None


def _in_bytes(file: SourceFile, offset: int) -> tuple[int, int]:
    """Return the row, from 1, and the column, from 0 in bytes of UTF-8, of an offset."""
    at = file.position(offset)
    return at.row, len(file.line(at.row)[: at.column - 1].encode(errors="surrogatepass"))


def _is_of_another(rule: Rule, finding: Finding, place: SourcePlace, sites: Iterable[ObservedSite]) -> bool:
    """Return whether a call at a place whose columns are not known runs other blocks than the flagged one.

    There may be several calls on a line, and not every Python tells them apart.
    """
    blocks = {site.block for site in sites if site.place == place and not place.columns}
    return rule.is_about_calls and bool(blocks) and finding.symbol not in blocks


def is_shown(
    rule: Rule,
    finding: Finding,
    covers: Callable[[SourcePlace, Finding], bool],
    run: ClassResult,
    failure: Failure,
    project: Project,
) -> bool:
    """Return whether a failure is the damage of a defect: at its place, or in a run of its model.

    ``covers`` tells whether a finding is in a piece of the text that was run.
    """
    if failure.cause not in (rule.causes if rule.shown_by is None else rule.shown_by):
        return False
    if not failure.places:
        return rule.concerns(finding, failure, run)
    for place in failure.places:
        path = project.identify(Path(place.path))
        if covers(place, finding) and not _is_of_another(rule, finding, place, run.sites):
            return True
        blocks = {site.block for site in run.sites if site.place == place}
        for inherited in finding.inherited_by:
            if inherited.path == path and (inherited.symbol in blocks or _defines(project, inherited, place)):
                return True
    return False


def _defines(project: Project, inherited: InheritedDefect, place: SourcePlace) -> bool:
    """Return whether a place is in the class that a finding names in another file."""
    try:
        file = project.file(inherited.path)
    except (OSError, UnreadableFile):
        return False
    definition = file.outline.classes.get(inherited.symbol)
    if definition is None:
        return False
    return file.position(definition.start).row <= place.line <= file.position(definition.end).row


_LEFT_OUT = frozenset((Cause.NOT_A_LAYER, Cause.NOTHING_TO_SWITCH))
"""Why checkpointing does not recompute a block that does not inherit from the base class."""
_Key = tuple[Path, int, int, tuple[int, ...], str, Path]


def observe(project: Project, paths: Iterable[Path], run: Runner) -> Mapping[Path, FileRun]:
    """Run files as they are, let ``project`` know what was seen, and return it.

    Raises:
        NothingRuns: nothing at all can be run.
        OSError: a file cannot be read.
    """
    ran = run([path for path in paths if not is_modular(path)], {})
    project.observe(observations(project, [result for each in ran.values() for result in each.results]))
    return ran


def observations(project: Project, runs: Sequence[ClassResult]) -> Observations:
    """Return what runs of the files, as ``project`` has them now, saw of their calls."""
    found: dict[_Key, Observed] = {}
    for run in runs:
        for site in run.sites:
            if site.calls:
                one = _observed(project, run, site)
                key = (one.path, one.first, one.last, one.columns, one.block, one.definition)
                found[key] = _united(found[key], one) if key in found else one
    return Observations(found.values(), _feeding(project, runs), _changed(project, runs))


def _feeding(project: Project, runs: Iterable[ClassResult]) -> Iterator[Feeding]:
    found: dict[tuple[Path, str], Feeding] = {}
    for run in runs:
        for each in run.embeddings:
            path = project.identify(Path(each.place.path))
            feeding = Feeding(path, each.model, each.module, each.present, each.fails)
            found.setdefault((path, each.model), feeding)
    yield from found.values()


def _changed(project: Project, runs: Iterable[ClassResult]) -> Iterator[tuple[Path, int]]:
    for run in runs:
        for failure in run.failures:
            if failure.cause is Cause.LEAF:
                for place in failure.places:
                    yield project.identify(Path(place.path)), place.line


def _observed(project: Project, run: ClassResult, site: ObservedSite) -> Observed:
    causes = {each.cause for each in run.failures if each.cause and site.place in each.places}
    is_left_out = site.is_trunk and not site.is_layer and site.recomputed is False
    return Observed(
        project.identify(Path(site.place.path)),
        site.place.line,
        site.place.end_line,
        site.block,
        project.identify(Path(site.definition.path)),
        site.place.columns,
        # What an override disables, for example, is another matter.
        is_left_out=is_left_out and not causes.isdisjoint(_LEFT_OUT),
        keywords=frozenset(site.keyword_activations),
        containers=frozenset(site.contained_activations),
        shared=frozenset(site.shared_activations),
        causes=frozenset(causes),
        shown=frozenset(
            rule.code
            for rule in all_rules()
            if rule.shows(site)
            or not causes.isdisjoint(rule.causes if rule.shown_by is None else rule.shown_by)
        ),
    )


def _united(one: Observed, other: Observed) -> Observed:
    return replace(
        one,
        is_left_out=one.is_left_out or other.is_left_out,
        keywords=one.keywords | other.keywords,
        containers=one.containers | other.containers,
        shared=one.shared | other.shared,
        causes=one.causes | other.causes,
        shown=one.shown | other.shown,
    )
