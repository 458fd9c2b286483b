"""Collects what is known about each call site in the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gclint.verify.worker.examination.blocks import Block, is_layer_class
from gclint.verify.worker.examination.case import Case
from gclint.verify.worker.examination.run import ENABLING, Run
from gclint.verify.worker.examination.trace import Call, definition
from gclint.verify.worker.protocol import Place, RunSite


@dataclass
class _Site:
    calls: list[Call] = field(default_factory=list)
    rewritten: dict[str, None] = field(default_factory=dict)
    shared: dict[str, None] = field(default_factory=dict)


class Sites:
    """Collects the calls of all runs by place."""

    def __init__(self) -> None:
        self._runs: list[tuple[Run, Mapping[str, type]]] = []
        self._blocks: dict[str, Block] = {}
        self._recomputed: dict[str, bool] = {}

    def add(self, case: Case) -> None:
        """Add the calls of a run."""
        self._runs.append((case.run, case.kinds))

    def judge(self, case: Case) -> None:
        """Add which blocks were recomputed in a run, except for those that lost their gradients."""
        blocks = (*case.blocks, *case.lone)
        self._blocks |= {each.name: each for each in blocks}
        if case.run.stage == ENABLING:
            self._recomputed |= {each.name: False for each in blocks}
        if case.run.error is not None:
            return
        lost = set(case.lost)
        for block in blocks:
            if case.run.forward[block.name] and not (lost and lost.issuperset(case.expected(block))):
                recomputed = block.name in case.recomputed
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

    def facts(self) -> tuple[RunSite, ...]:
        """Return what is known, in the order of the source."""
        sites: dict[tuple[Place, type], _Site] = {}
        for run, kinds in self._runs:
            times = Counter(node for call in run.calls for node in _nodes(call))
            for call in run.calls:
                site = sites.setdefault((call.place, kinds[call.block]), _Site())
                site.calls.append(call)
                site.shared.update(
                    (name, None)
                    for name, nodes in call.graphs.items()
                    if any(times[each] > 1 for each in nodes)
                )
                written = [kind for each, kind in call.caches.items() if each in run.side_effects.caches]
                site.rewritten.update(dict.fromkeys(written))
        found = [self._fact(place, kind, site) for (place, kind), site in sites.items()]
        return tuple(sorted(found, key=lambda each: (each.place.path, each.place.line, each.block)))

    def _fact(self, place: Place, kind: type, site: _Site) -> RunSite:
        blocks = [self._blocks[call.block] for call in site.calls if call.block in self._blocks]
        return RunSite(
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


def _nodes(call: Call) -> frozenset[int]:
    """Return the graph nodes that compute the arguments of a call, each once."""
    return frozenset[int]().union(*call.graphs.values())


def _names(groups: Iterable[Mapping[str, object] | Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))
