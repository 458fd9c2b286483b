"""Collects the results of an examination, and what is known of call sites, and makes the result of them."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.block_calls import BlockCall, definition
from gclint.verify.worker.examination.blocks import Block, is_layer_class
from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
from gclint.verify.worker.examination.phrases import names
from gclint.verify.worker.examination.reporting import diagnose, recipe
from gclint.verify.worker.examination.run import ENABLING
from gclint.verify.worker.importing import coverage, executed_places
from gclint.verify.worker.protocol import (
    ClassResult,
    Cost,
    Failure,
    Fingerprint,
    InputEmbedding,
    NotCompared,
    ObservedSite,
    Outcome,
    Recipe,
    Source,
    SourcePlace,
    Stability,
    Verdict,
)
from gclint.verify.worker.scenarios import Scenario
from gclint.verify.worker.tiny_model import TinyModel


@dataclass
class _Site:
    calls: list[BlockCall] = field(default_factory=list)
    rewritten: dict[str, None] = field(default_factory=dict)
    shared: dict[str, None] = field(default_factory=dict)


class Sites:
    """Collects the calls of all runs by place."""

    def __init__(self) -> None:
        self._runs: list[tuple[Sequence[BlockCall], frozenset[int], Mapping[str, type]]] = []
        """The calls of each run, the caches that its backward passes have written to, and the classes of the
        modules: not the runs, which hold tensors."""
        self._blocks: dict[str, Block] = {}
        self._recomputed: dict[str, bool] = {}

    def add(self, comparison: Comparison) -> None:
        """Add the calls of a run."""
        run = comparison.run
        self._runs.append((run.calls, run.side_effects.caches, comparison.kinds))

    def judge(self, comparison: Comparison) -> None:
        """Add which blocks were recomputed in a run, except for those that lost their gradients."""
        blocks = (*comparison.blocks, *comparison.lone)
        self._blocks |= {each.name: each for each in blocks}
        if comparison.run.stage == ENABLING:
            self._recomputed |= {each.name: False for each in blocks}
        if comparison.run.error is not None:
            return
        lost = set(comparison.lost)
        for block in blocks:
            if comparison.run.forward[block.name] and not (
                lost and lost.issuperset(comparison.expected(block))
            ):
                recomputed = block.name in comparison.recomputed
                self._recomputed[block.name] = recomputed and self._recomputed.get(block.name, True)

    def take(self, other: Sites) -> None:
        """Add the calls of others; a block counts as recomputed only if it is so in both."""
        self._runs += other._runs
        self._blocks = other._blocks | self._blocks
        for name, recomputed in other._recomputed.items():
            self._recomputed[name] = recomputed and self._recomputed.get(name, True)

    def counts(self) -> tuple[int, int]:
        """Return how many blocks ran, and how many of them were recomputed in every mode."""
        judged = [each for name, each in self._recomputed.items() if not self._blocks[name].is_lone]
        return len(judged), sum(judged)

    def facts(self) -> tuple[ObservedSite, ...]:
        """Return what is known, in the order of the source."""
        sites: dict[tuple[SourcePlace, type], _Site] = {}
        for calls, rewritten, kinds in self._runs:
            # Each node that computes arguments of a call counts once for it.
            times = Counter(node for call in calls for node in set().union(*call.graphs.values()))
            for call in calls:
                site = sites.setdefault((call.place, kinds[call.block]), _Site())
                site.calls.append(call)
                site.shared.update(
                    (name, None)
                    for name, nodes in call.graphs.items()
                    if any(times[each] > 1 for each in nodes)
                )
                site.rewritten.update((kind, None) for each, kind in call.caches.items() if each in rewritten)
        found = [self._fact(place, kind, site) for (place, kind), site in sites.items()]
        return tuple(sorted(found, key=lambda each: (each.place.path, each.place.line, each.block)))

    def _fact(self, place: SourcePlace, kind: type, site: _Site) -> ObservedSite:
        blocks = [self._blocks[call.block] for call in site.calls if call.block in self._blocks]
        return ObservedSite(
            place,
            kind.__name__,
            definition(kind),
            is_layer=is_layer_class(kind),
            is_trunk=any(each.is_trunk for each in blocks),
            calls=len(site.calls),
            recomputed=self._is_recomputed({call.block for call in site.calls}),
            keyword_activations=_names(call.keyword for call in site.calls),
            contained_activations=_names(call.contained for call in site.calls),
            positional_caches=_names(call.positional_caches for call in site.calls),
            rewritten_caches=tuple(site.rewritten),
            shared_activations=tuple(site.shared),
        )

    def _is_recomputed(self, blocks: set[str]) -> bool | None:
        """Return whether these were recomputed; None if no run was completed, or they are not counted."""
        seen = [self._recomputed[each] for each in blocks if each in self._recomputed]
        return all(seen) if seen else None


def _names(groups: Iterable[Mapping[str, object] | Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))


@dataclass(frozen=True)
class Inconclusive:
    """The reason why something cannot be judged."""

    category: str
    """The kind of the reason in a word or two."""
    reason: str


_GUESSED = (Cause.DISAGREEMENT, Cause.NO_INPUT_GRADIENT)
"""Causes that are named if there is no evidence for another one."""
_IDLE = Inconclusive(
    "nothing to recompute",
    "nothing was recomputed: no block that checkpointing could recompute has run with gradients",
)


class ClassResultBuilder:
    """Collects what becomes the result of one class."""

    def __init__(self, source: Source, model_class: Any) -> None:
        self.scenarios: list[str] = []
        self._not_covered: tuple[str, ...] | None = None
        self.notes: list[str] = []
        self.costs: list[Cost] = []
        self.fingerprints: list[Fingerprint] = []
        self._least: Comparison | None = None
        self.inconclusive: Inconclusive | None = None
        """Why the class has not passed, even if nothing failed."""
        self._is_idle: bool | None = None
        """Whether nothing that could be recomputed has run; None if nothing is known yet."""
        self.verdicts: list[Verdict] = []
        self.sites = Sites()
        self._embeddings: dict[Any, InputEmbedding] = {}
        self.is_complete = source.complete
        """Whether to run everything that a comparison of two versions of the class needs."""
        self.stability: list[Stability] = []
        self.executed: set[int] = set()
        """The numbers of what runs that can be judged have executed."""
        self._made_of: set[str] = set()
        self._source = source
        self._class = model_class
        self._failures: dict[Any, Failure] = {}
        self._recipes: dict[str, Recipe] = {}
        self._started = time.perf_counter()

    def separate(self) -> ClassResultBuilder:
        """Return a builder for the same class that is empty, but for what was executed."""
        made = ClassResultBuilder(self._source, self._class)
        made.executed |= self.executed
        return made

    def not_judged(self, tiny_model: TinyModel, inconclusive: Inconclusive) -> None:
        """Record that a further tiny model cannot be judged."""
        self.notes.append(f"{tiny_model.scenario}: {inconclusive.reason}")

    def new_failures(self, other: ClassResultBuilder) -> frozenset[Any]:
        """Return the keys of the failures that only ``other`` has."""
        return frozenset(other._failures.keys() - self._failures.keys())

    @property
    def failures(self) -> frozenset[Any]:
        """The keys of the failures."""
        return frozenset(self._failures)

    def take(self, other: ClassResultBuilder) -> None:
        """Add the results of further scenarios."""
        self.scenarios += other.scenarios
        self.verdicts += other.verdicts
        self.fingerprints += other.fingerprints
        self.notes += other.notes
        self.inconclusive = self.inconclusive or other.inconclusive
        self._be(idle=other._is_idle)
        self.sites.take(other.sites)
        self.add_embeddings(other._embeddings.values())
        self.executed |= other.executed
        self._made_of |= other._made_of
        if other._not_covered is not None:
            self.add_not_covered(other._not_covered)
        if other._least is not None:
            self._take_least(other._least)
        self._recipes = {**other._recipes, **self._recipes}
        for key in self.new_failures(other):
            self._failures[key] = other._failures[key]

    def add_classes(self, kinds: Iterable[type]) -> None:
        """Record the classes of the modules that were run."""
        if self.is_complete:
            for kind in {base for each in kinds for base in each.__mro__}:
                with suppress(TypeError):  # A class without source.
                    self._made_of.add(f"{inspect.getsourcefile(kind)}::{kind.__qualname__}")

    def add_not_covered(self, parts: Collection[str]) -> None:
        """Record that a tiny model ran all parts of the model except these."""
        before = parts if self._not_covered is None else self._not_covered
        self._not_covered = tuple(each for each in before if each in parts)

    def judge(
        self, comparison: Comparison, failed_checks: Sequence[FailedCheck], tiny_model: TinyModel
    ) -> None:
        """Record the failures that explain failed checks, unless an earlier scenario has shown them."""
        for failure in diagnose(comparison, failed_checks):
            if not self._is_known(comparison, failure):
                self.fail(failure, tiny_model)

    def _is_known(self, comparison: Comparison, failure: Failure) -> bool:
        """Return whether an earlier scenario has shown the cause of what is only guessed here."""
        shown = [
            each.parameters
            for each in self._failures.values()
            if (each.mode, each.check) == (failure.mode, failure.check) and each.cause not in _GUESSED
        ]
        if failure.cause is Cause.DISAGREEMENT and failure.difference is None and not failure.places:
            return bool(shown)
        return failure.cause in _GUESSED and comparison.plain is None and failure.parameters in shown

    def fail(self, failure: Failure, tiny_model: TinyModel) -> None:
        """Record a failure, unless there is one with the same cause, mode and places."""
        key = (failure.mode, failure.cause or failure.check, failure.places)
        self._failures.setdefault(key, failure)
        if tiny_model.scenario not in self._recipes:
            self._recipes[tiny_model.scenario] = recipe(tiny_model)

    def compared(
        self, comparison: Comparison, why: Callable[[Comparison], Inconclusive] | None = None
    ) -> None:
        """Record how much of a run could be compared; if it is too little, the class has not passed."""
        if not comparison.has(0):
            return
        is_whole = not comparison.run.conditions.scenario.frozen_base
        if is_whole:
            self._take_least(comparison)
        if not comparison.is_meaningful:
            self.inconclusive = self.inconclusive or (why or not_compared)(comparison)
        self._be(idle=comparison.is_idle)

    def _be(self, *, idle: bool | None) -> None:
        if idle is not None:
            self._is_idle = idle and self._is_idle is not False

    def _take_least(self, comparison: Comparison) -> None:
        if self._least is None or _share(comparison) < _share(self._least):
            self._least = comparison

    def failed_by(self, causes: Collection[Cause], scenario: Scenario | None = None) -> bool:
        """Return whether a scenario, or any, has shown a failure with one of these causes."""
        return any(
            each.cause in causes and (scenario is None or each.scenario == scenario.name)
            for each in self._failures.values()
        )

    def add_embeddings(self, embeddings: Collection[InputEmbedding]) -> None:
        """Record which modules would give the first blocks inputs that require grad."""
        for each in embeddings:
            self._embeddings.setdefault((each.place, each.model), each)

    def result(self) -> ClassResult:
        """Return the result so far."""
        blocks, recomputed = self.sites.counts()
        inconclusive = None if self._failures else self.inconclusive or (_IDLE if self._is_idle else None)
        return self._result(
            "failed" if self._failures else "not run" if inconclusive else "passed",
            reason=inconclusive and inconclusive.reason,
            category=inconclusive and inconclusive.category,
            not_covered=self._not_covered or (),
            failures=tuple(self._failures.values()),
            blocks=blocks,
            recomputed=recomputed,
            sites=self.sites.facts(),
            costs=tuple(self.costs),
            fingerprints=tuple(self.fingerprints),
            recipes=tuple(self._recipes.values()),
            embeddings=tuple(self._embeddings.values()),
            verdicts=tuple(self.verdicts),
            stability=tuple(self.stability),
            made_of=tuple(sorted(self._made_of)),
            **self._comparison(),
            executed=tuple(sorted(executed_places(self.executed), key=lambda each: (each.path, each.line))),
            coverage=tuple(coverage(self.executed)),
        )

    def _comparison(self) -> dict[str, Any]:
        """Return the fields of the result about the run of which least was compared."""
        if self._least is None:
            return {}
        left_out = (
            ("rounding", self._least.blurred),
            ("not reproducible", self._least.changing),
            ("not finite", self._least.not_finite),
        )
        return {
            "compared": self._least.compared,
            "parameters": len(self._least.agreements(0)),
            "not_compared": tuple(
                NotCompared(reason, parameters) for reason, parameters in left_out if parameters
            ),
        }

    def not_run(self, inconclusive: Inconclusive) -> ClassResult:
        """Return a result for a class that cannot be judged at all."""
        return self._result("not run", reason=inconclusive.reason, category=inconclusive.category)

    def _result(self, outcome: Outcome, **more: Any) -> ClassResult:
        return ClassResult(
            self._source.path,
            self._class.__name__,
            outcome,
            scenarios=tuple(self.scenarios),
            notes=tuple(dict.fromkeys(self.notes)),
            seconds=time.perf_counter() - self._started,
            **more,
        )


def not_compared(comparison: Comparison) -> Inconclusive:
    """Return why too few gradients of a run could be compared."""
    total, conditions = len(comparison.agreements(0)), comparison.run.conditions
    if comparison.changing:
        return Inconclusive(
            "not reproducible",
            f"two plain runs from the same state differ in {len(comparison.changing)} of {total} gradients "
            f"({conditions.scenario.name}): {names(comparison.changing)}",
        )
    why = (
        [f"the effect of rounding on {names(comparison.blurred)} is too large"] if comparison.blurred else []
    )
    if comparison.not_finite:
        why.append(
            f"there are no finite values in those of {names(comparison.not_finite)} without checkpointing"
        )
    how = "without" if conditions.mode == "plain" else f"{conditions.mode}"
    return Inconclusive(
        "not compared",
        f"only {comparison.compared} of {total} gradients can be compared ({how} checkpointing, "
        f"{conditions.scenario.name}): {'; '.join(why)}",
    )


def _share(comparison: Comparison) -> float:
    return comparison.compared / max(len(comparison.agreements(0)), 1)
