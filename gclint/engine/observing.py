"""What runs saw, put as the source has it: what the linter reads beside the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gclint.observations import Observations, Observed
from gclint.source.generated import is_modular
from gclint.source.project import Project
from gclint.verify.files import Runner
from gclint.verify.worker.protocol import ClassResult, RunSite

_Key = tuple[Path, int, int, str, Path]


def observe(project: Project, paths: Iterable[Path], run: Runner) -> None:
    """Run files as they are, and let ``project`` know what was seen.

    Raises:
        NothingRuns: nothing at all can be run.
        OSError: a file cannot be read.
    """
    ran = run([path for path in paths if not is_modular(path)], {})
    project.observe(observations(project, [result for each in ran.values() for result in each.results]))


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
    causes = (each.cause for each in run.failures if site.place in each.places)
    return Observed(
        project.identify(Path(site.place.path)),
        site.place.line,
        site.place.end_line,
        site.block,
        project.identify(Path(site.definition.path)),
        is_left_out=site.is_trunk and not site.is_layer and site.recomputed is False,
        keywords=frozenset(site.keyword_activations),
        containers=frozenset(site.contained_activations),
        shared=frozenset(site.shared_activations),
        causes=frozenset(cause for cause in causes if cause is not None),
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
