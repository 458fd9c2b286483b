"""Translates what runs saw into observations about the source, which the linter uses beside the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gclint.observations import Changed, Feeding, Observations, Observed
from gclint.rule import all_rules
from gclint.source.generated import is_modular
from gclint.source.project import Project
from gclint.verify.files import FileRun, Runner
from gclint.verify.worker.cause import Cause
from gclint.verify.worker.protocol import ClassResult, RunSite

_LEFT_OUT = frozenset((Cause.NOT_A_LAYER, Cause.NOTHING_TO_SWITCH))
"""Why checkpointing does not recompute a block that does not inherit from the base class."""
_Key = tuple[Path, int, int, str, Path]


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
                key = (one.path, one.first, one.last, one.block, one.definition)
                found[key] = _joined(found[key], one) if key in found else one
    return Observations(found.values(), _feeding(project, runs), _changed(project, runs))


def _feeding(project: Project, runs: Iterable[ClassResult]) -> Iterator[Feeding]:
    found: dict[tuple[Path, str], Feeding] = {}
    for run in runs:
        for each in run.embeddings:
            path = project.identify(Path(each.place.path))
            feeding = Feeding(path, each.model, each.module, each.present, each.fails)
            found.setdefault((path, each.model), feeding)
    yield from found.values()


def _changed(project: Project, runs: Iterable[ClassResult]) -> Iterator[Changed]:
    for run in runs:
        for failure in run.failures:
            if failure.cause is Cause.LEAF:
                for place in failure.places:
                    yield Changed(project.identify(Path(place.path)), place.line)


def _observed(project: Project, run: ClassResult, site: RunSite) -> Observed:
    causes = {each.cause for each in run.failures if each.cause and site.place in each.places}
    is_left_out = site.is_trunk and not site.is_layer and site.recomputed is False
    return Observed(
        project.identify(Path(site.place.path)),
        site.place.line,
        site.place.end_line,
        site.block,
        project.identify(Path(site.definition.path)),
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


def _joined(one: Observed, other: Observed) -> Observed:
    return replace(
        one,
        is_left_out=one.is_left_out or other.is_left_out,
        keywords=one.keywords | other.keywords,
        containers=one.containers | other.containers,
        shared=one.shared | other.shared,
        causes=one.causes | other.causes,
        shown=one.shown | other.shown,
    )
