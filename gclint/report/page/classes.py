"""A row of the matrix for each model class, and what its details have beside the result itself."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Literal

from gclint.code.paths import shown
from gclint.report.page import matrix
from gclint.report.page.excerpts import RepairSection, Sources, brief
from gclint.report.page.matrix import MatrixCell
from gclint.report.verification import Story, stories
from gclint.verify.proven import proven_setting
from gclint.verify.worker.coverage import listed
from gclint.verify.worker.modes import CHECKPOINTED
from gclint.verify.worker.protocol import ClassResult, Cost, Mode, ObservedSite

_CHECKPOINTED: Mode = "non-reentrant"
"""The mode whose memory the row shows."""

Outcome = Literal["passed", "failed", "repaired", "not run"]
"""The outcome of a row; ``repaired`` failed before a repair that a run has proven."""
OUTCOMES: tuple[Outcome, ...] = ("failed", "repaired", "not run", "passed")
"""All outcomes, the most urgent first."""


@dataclass(frozen=True)
class Row:
    """A model class: with its repair, if that is proven."""

    result: ClassResult
    sources: Sources
    """The texts that it was run with."""
    before: Row | None = None
    """The same without the proven repair."""
    repairs: tuple[RepairSection, ...] = ()
    model: str = ""
    """The name of its model."""

    @property
    def stories(self) -> list[Story]:
        """Its failures, grouped by cause."""
        return stories([self.result], None)

    @property
    def key(self) -> str:
        """The fragment of its address."""
        return f"{self.model}/{self.result.name}"

    @property
    def outcome(self) -> Outcome:
        """The outcome that the row shows."""
        before = None if self.before is None else self.before.result.outcome
        is_repaired = before == "failed" and self.result.outcome == "passed"
        return "repaired" if is_repaired else self.result.outcome

    @cached_property
    def setting(self) -> str | None:
        """The setting with which it works, if it fails without."""
        return proven_setting(self.result)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its failures, to filter by."""
        return tuple(dict.fromkeys(_kinds(self._reported)))

    @property
    def saved(self) -> tuple[int, int] | None:
        """The bytes saved for backward without checkpointing and with it; None if they say nothing."""
        before, after = map(self.result.saved.get, ("plain", _CHECKPOINTED))
        return (before, after) if before and after is not None else None

    @property
    def text(self) -> str:
        """The text that a search looks through."""
        messages = (each.message for each in self._reported.failures)
        words = (self.result.name, self.model, brief(self.result.source), *self.kinds, *messages)
        return " ".join(words).lower()

    @property
    def _reported(self) -> ClassResult:
        return self.before.result if self.before and self.outcome == "repaired" else self.result


def models(results: Iterable[ClassResult]) -> dict[str, str]:
    """Return the names of the models of files; their paths if several have the same name."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for result in results:
        files[PurePath(result.source).stem.removeprefix("modeling_")].add(result.source)
    return {
        source: name if len(sources) == 1 else shown(source)
        for name, sources in files.items()
        for source in sources
    }


def _kinds(result: ClassResult) -> Iterator[str]:
    if result.outcome == "not run":
        yield f"not run: {result.category}"
    for failure in result.failures:
        yield failure.cause.value if failure.cause else failure.check
    for setup in result.setups:
        if setup.outcome == "fails":
            yield f"{setup.group}: {setup.symptom or 'fails'}"


def sites(result: ClassResult) -> list[ObservedSite]:
    """Return the calls that run blocks; first those that matter most."""
    return sorted(
        result.sites,
        key=lambda site: (not (site.is_trunk or site.recomputed), site.place.path, site.place.line),
    )


def defects(site: ObservedSite) -> Iterator[str]:
    """Yield what is wrong with a call."""
    if site.is_trunk and not site.is_layer:
        yield "not a checkpointing layer"
    for what, names in (
        ("gradient by keyword", site.keyword_activations),
        ("gradient inside containers", site.contained_activations),
        ("cache by position", site.positional_caches),
        ("cache written again", site.rewritten_caches),
    ):
        if names:
            yield f"{what}: {', '.join(names)}"


def shares(result: ClassResult) -> Iterator[tuple[Cost, float]]:
    """Yield the cost of each mode, with what it saves as a share of what is saved without checkpointing."""
    plain = result.saved.get("plain")
    return ((cost, cost.saved_bytes / plain if plain else 0.0) for cost in result.costs)


def trial(result: ClassResult, scenario: str) -> Iterator[tuple[MatrixCell, int | None]]:
    """Yield what each mode of a scenario shows, with the bytes saved for backward."""
    saved = {each.mode: each.saved_bytes for each in result.verdicts if each.scenario == scenario}
    return zip(matrix.mode_cells(result, scenario), map(saved.get, CHECKPOINTED), strict=True)


def remarks(result: ClassResult) -> Iterator[tuple[str, str]]:
    """Yield what else there is to know, each with its name before it."""
    if result.is_cut_short:
        yield "Cut short", "its process ended before all scenarios were run"
    if result.not_covered:
        yield "Not run in any scenario", ", ".join(result.not_covered)
    if result.unreached:
        yield "Branches that no run reached", listed(result.unreached)
    for each in result.not_compared:
        yield "Gradients not compared", f"{each.reason}: {', '.join(each.parameters)}"
    if result.parameters:
        yield "Gradients compared", f"{result.compared} of {result.parameters} parameters"
    for bears in result.stability:
        moved = f"gradients move by up to {bears.moved:.0%}"
        what = {"stable": moved, "amplifies": moved, "raises": f"raises {bears.error}"}[bears.grade]
        yield f"Noise in what is recomputed, {bears.experts} experts", f"{bears.grade}: {what}"
    for note in result.notes:
        yield "Note", note


def commands(result: ClassResult, repeat: str) -> Iterator[tuple[str, str]]:
    """Yield the commands that run a class, each with its purpose; ``repeat`` is the one for all files."""
    path = f"--class {result.name} {shlex.quote(shown(result.source))}"
    groups = ",".join(dict.fromkeys(each.group for each in result.setups))
    yield "Run it again", f"{repeat}{f' --scenario {groups}' if groups else ''} {path}"
    if result.outcome == "failed" and result.recipes:
        yield "Show the failure without gclint", f"{repeat} --write-repro repro {path}"
