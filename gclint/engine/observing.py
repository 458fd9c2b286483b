"""What runs saw, put as the source has it: what the linter reads beside the text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gclint.engine.fix import FixResult
from gclint.finding import Finding
from gclint.observations import Observations, Observed
from gclint.rule import Rule
from gclint.source.generated import is_modular
from gclint.source.project import Project
from gclint.verify.files import Runner
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, RunSite

_LEFT_OUT = frozenset((Cause.NOT_A_LAYER, Cause.NOTHING_TO_SWITCH))
"""What keeps checkpointing from recomputing a block that does not inherit from the base class."""
_Key = tuple[Path, int, int, str, Path]


def observe(project: Project, paths: Iterable[Path], run: Runner) -> None:
    """Run files as they are, and let ``project`` know what was seen.

    Raises:
        NothingRuns: nothing at all can be run.
        OSError: a file cannot be read.
    """
    ran = run([path for path in paths if not is_modular(path)], {})
    project.observe(observations(project, [result for each in ran.values() for result in each.results]))


class Reached:
    """Which repairs a run can prove: it came to the calls that they are about."""

    def __init__(self, project: Project, rules: Iterable[Rule]) -> None:
        """Judge findings by what ``project`` has observed."""
        self._about_calls = frozenset(rule.code for rule in rules if rule.is_about_calls)
        observed = (each for path in project.paths for each in project.observations.of(path))
        self._blocks = frozenset(each.block for each in observed)

    def provable(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings without those that would keep others in their files from being proven."""
        files = {each.path for each in findings if self._has(each)}
        return [each for each in findings if self._has(each) or each.path not in files]

    def judged(self, result: FixResult) -> FixResult:
        """Return what is left, without fixes that nobody can prove."""
        left = (_not_reached(each) if each.fix and not self._has(each) else each for each in result.findings)
        return replace(result, findings=tuple(left))

    def _has(self, finding: Finding) -> bool:
        """Tell whether a repair can be proven, as far as the calls go that it is about."""
        names = {finding.symbol, *(heir.symbol for heir in finding.heirs)}
        return finding.code not in self._about_calls or not self._blocks.isdisjoint(names)


def _not_reached(finding: Finding) -> Finding:
    return finding.refused(f"no class that was run runs `{finding.symbol}`, so the repair cannot be proven")


def observations(project: Project, runs: Iterable[ClassResult]) -> Observations:
    """Return what runs of the files, as ``project`` has them now, saw of their calls."""
    found: dict[_Key, Observed] = {}
    for run in runs:
        for site in run.sites:
            if site.calls:
                one = _observed(project, run, site)
                key = (one.path, one.first, one.last, one.block, one.definition)
                found[key] = _joined(found[key], one) if key in found else one
    return Observations(found.values())


def _observed(project: Project, run: ClassResult, site: RunSite) -> Observed:
    causes = {each.cause for each in run.failures if each.cause and site.place in each.places}
    is_left_out = site.is_trunk and not site.is_layer and site.recomputed is False
    return Observed(
        project.identify(Path(site.place.path)),
        site.place.line,
        site.place.end_line,
        site.block,
        project.identify(Path(site.definition.path)),
        # What an override keeps off, say, is another matter.
        is_left_out=is_left_out and not causes.isdisjoint(_LEFT_OUT),
        keywords=frozenset(site.keyword_activations),
        containers=frozenset(site.contained_activations),
        shared=frozenset(site.shared_activations),
        causes=frozenset(causes),
    )


def _joined(one: Observed, other: Observed) -> Observed:
    return replace(
        one,
        is_left_out=one.is_left_out or other.is_left_out,
        keywords=one.keywords | other.keywords,
        containers=one.containers | other.containers,
        shared=one.shared | other.shared,
        causes=one.causes | other.causes,
    )
