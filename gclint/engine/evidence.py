"""What a run says about findings: it confirms some, contradicts some, and has some of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gclint.engine.check import CheckResult
from gclint.finding import Evidence, Finding, Refusal, in_reading_order
from gclint.rule import Rule, all_rules, codes_by_word
from gclint.source.project import Project
from gclint.source.suppressions import Suppressions
from gclint.verify.worker.protocol import ClassResult, Failure, Place, RunSite

_ONLY_SEEN = "this was seen in a run, and the text alone does not say how to repair it"


def weigh(
    project: Project,
    result: CheckResult,
    runs: Iterable[ClassResult],
    rules: Sequence[Rule],
) -> list[Finding]:
    """Return the findings with what the runs say about them, and those that only the runs have.

    Args:
        project: the files; those that the user gave are its ``paths``.
        result: what the linter found in the texts that were run.
        runs: what happened.
        rules: those whose findings are wanted.
    """
    runs = list(runs)
    sites = [site for run in runs for site in run.sites]
    weighed = [replace(each, evidence=_evidence(project, each, sites)) for each in result.findings]
    wanted = {rule.code: rule for rule in rules}
    given = {project.resolve(path): path for path in project.paths}
    seen = {
        (finding.path, finding.start, finding.code): finding
        for run in runs
        for failure in run.failures
        if failure.rule in wanted
        for place in failure.places
        for finding in _seen_only(project, failure, place, run.sites, weighed, wanted, given)
    }
    return in_reading_order([*weighed, *seen.values()])


def _evidence(project: Project, finding: Finding, sites: Iterable[RunSite]) -> Evidence | None:
    judge = _JUDGES.get(finding.code)
    if judge is None:
        return None
    matching = [site for site in sites if site.calls and _is_about(project, finding, site)]
    return judge(project, matching) if matching else None


def _is_about(project: Project, finding: Finding, site: RunSite) -> bool:
    files = {project.resolve(Path(place.path)) for place in (site.place, site.definition)}
    if any(site.block == heir.symbol and project.resolve(heir.path) in files for heir in finding.heirs):
        return True
    if finding.code == "GC001" and finding.symbol == site.block:
        return _covers(project, site.definition, finding) or _covers(project, site.place, finding)
    return _covers(project, site.place, finding)


def _covers(project: Project, place: Place, finding: Finding) -> bool:
    if project.resolve(Path(place.path)) != project.resolve(finding.path):
        return False
    return place.line <= project.file(finding.path).position(finding.start).row <= place.end_line


def _of_missing_layer(project: Project, sites: Sequence[RunSite]) -> Evidence | None:
    if any(site.recomputed is False for site in sites):
        return Evidence.CONFIRMED
    if any(site.recomputed is None for site in sites):
        return None
    by_branch = any(_names_checkpointing(project, site.place) for site in sites)
    # Recomputed by a branch in the model's own loop: that is what such a finding says.
    return Evidence.CONFIRMED if by_branch else Evidence.CONTRADICTED


def _of_positional_cache(_project: Project, sites: Sequence[RunSite]) -> Evidence | None:
    # Another configuration may well pass one: what did not happen here contradicts nothing.
    return Evidence.CONFIRMED if any(site.positional_caches for site in sites) else None


def _of_keyword_activation(_project: Project, sites: Sequence[RunSite]) -> Evidence | None:
    return Evidence.CONFIRMED if any(site.keyword_activations for site in sites) else Evidence.CONTRADICTED


_JUDGES: Mapping[str, Callable[[Project, Sequence[RunSite]], Evidence | None]] = {
    "GC001": _of_missing_layer,
    "GC002": _of_positional_cache,
    "GC003": _of_keyword_activation,
}


def _names_checkpointing(project: Project, place: Place) -> bool:
    file = project.file(Path(place.path))
    last = min(place.end_line, len(file.line_starts))
    return any("checkpoint" in file.line(row) for row in range(place.line, last + 1))


def _seen_only(
    project: Project,
    failure: Failure,
    place: Place,
    sites: Sequence[RunSite],
    found: Iterable[Finding],
    rules: Mapping[str, Rule],
    given: Mapping[Path, Path],
) -> Iterable[Finding]:
    """Yield a finding for a failure that no finding speaks of, at a place in a file that was given."""
    path = given.get(project.resolve(Path(place.path)))
    if path is None or failure.rule is None:
        return
    site = next((site for site in sites if site.place == place), None)
    if any(each.code == failure.rule and _speaks_of(project, each, place, site) for each in found):
        return
    file = project.file(path)
    start = file.line_starts[place.line - 1]
    line = file.line(place.line)
    indent = len(line) - len(line.lstrip())
    finding = Finding(
        failure.rule,
        rules[failure.rule].name,
        failure.message,
        path,
        start + indent,
        start + len(line),
        site.block if site else "",
        Refusal(_ONLY_SEEN),
        evidence=Evidence.CONFIRMED,
    )
    if not Suppressions(file, codes_by_word(all_rules())).covers(finding):
        yield finding


def _speaks_of(project: Project, finding: Finding, place: Place, site: RunSite | None) -> bool:
    return _covers(project, place, finding) or (site is not None and _is_about(project, finding, site))
