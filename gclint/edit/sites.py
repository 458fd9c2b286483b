"""The run sites of checkpointing layers with an argument passed in the wrong way, and their repair."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from gclint.code.remembered import remembered
from gclint.edit.branch import is_spared
from gclint.edit.cache_arguments import dropped, no_cache
from gclint.edit.call import NeedsReordering, Slot, applicability, seen_blocks
from gclint.edit.doubts import later_doubts
from gclint.edit.places import argument_place
from gclint.edit.protect import layers_to_be, losing_doubt, moves, nested_doubts
from gclint.edit.receivers import repaired_call
from gclint.edit.recomputed import reentrant_doubts
from gclint.edit.release import keyword_doubt
from gclint.edit.replaced import class_replaced_doubts
from gclint.edit.signature import reorder_forward
from gclint.edit.surroundings import call_doubts, losing_gradients, requiring_grad
from gclint.edit.without_cache import cache_doubts
from gclint.finding import Applicability, Evidence, Fix, Refusal, Repair, RepairKind, StoryStep
from gclint.network.activation import SiteBinding, bind_site, is_never_activation
from gclint.network.binding import BoundArgument
from gclint.network.caches import requires_cache
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.network.story import call_story, gradient_steps, parameter_steps
from gclint.network.untrained import Untrained, untrained
from gclint.verify.worker.cause import Cause
from gclint.wording import listed_code

_NESTING = (ast.Tuple, ast.List, ast.Dict)
_SCALARS = frozenset(("bool", "float", "int", "str"))
"""The annotations of what is no tensor."""
_OUTSIDE_CALLERS = "calls outside the given files that pass them by position break"


@dataclass(frozen=True)
class SiteDefects:
    """A run site whose arguments do not suit a checkpointing layer."""

    network: Network
    site: RunSite
    bindings: tuple[SiteBinding, ...]
    positional_caches: tuple[BoundArgument, ...]
    keyword_activations: tuple[BoundArgument, ...]
    nested_activations: tuple[BoundArgument, ...]
    awaits: tuple[Path, int, int] | None = None
    """The class that has to become a checkpointing layer before they are wrong; None if they are now."""

    @property
    def symbol(self) -> str:
        """The name of the block that is run."""
        return self.bindings[0].block.name

    def span(self, bound: BoundArgument) -> tuple[int, int]:
        """Return where an argument stands in the file; one of an unpacked list or dict is the whole call."""
        return argument_place(self.site, bound.arg)

    def repair(self) -> Fix | Refusal:
        """Return the fix of the whole call, or why there is none."""
        if self.awaits is not None:
            return Refusal(f"the fix that makes `{self.symbol}` a `{CHECKPOINTING_BASE}` includes this")
        for info in self.site.blocks if self.positional_caches else ():
            needed = requires_cache(info)
            if needed is not None:
                return Refusal(
                    f"`{info.name}` needs its cache `{needed}` in training, which checkpointing disables"
                )
        other = no_cache(self.network, self.site, dropped(self.positional_caches))
        if other is not None:
            return Refusal(other)
        repaired = repaired_call(self.network, self.site, self.bindings)
        if isinstance(repaired, NeedsReordering):
            return self._reordered(repaired.reason)
        if isinstance(repaired, Refusal):
            return repaired
        names = [each.name for each in self.positional_caches]
        doubt = keyword_doubt(self.network, names)
        if isinstance(doubt, Refusal):
            return doubt
        doubts = [*repaired.doubts, *((doubt,) if doubt else ()), *repaired.outside_doubts]
        blocks = dict.fromkeys(each.block for each in self.bindings)
        if self.keyword_activations:
            doubts += dict.fromkeys(nested_doubts(self.site.rows[0], self.bindings))
        if self.keyword_activations and not doubts:
            doubts += dict.fromkeys(call_doubts(self.network, self.site, blocks))
        if not doubts:
            doubts += self._losing_doubts(blocks, repaired.slots)
        if self.keyword_activations and not doubts:
            doubts += [doubt for info in blocks for doubt in (*later_doubts(info), *reentrant_doubts(info))]
        seen = [*seen_blocks(self.site, blocks)]
        # What blocks do without a cache that only a run has shown, the run of a proof shows as well.
        if self.positional_caches and not (doubts or seen):
            doubts += cache_doubts(self.network, self.site)
        if not doubts:
            doubts += class_replaced_doubts(self.network, blocks)
        evidence = (*seen, *repaired.evidence)
        return Fix(
            f"Pass {moves(self.bindings)} to `{self.symbol}`",
            repaired.edits,
            applicability(doubts, evidence),
            "; ".join((*doubts, *evidence)) or None,
            (Repair(RepairKind.CALL, self.site.scope.module.file.path, *self.site.span(self.site.call)),),
            undecided=repaired.outside_doubts,
        )

    def _losing_doubts(self, blocks: Collection[ClassInfo], slots: Iterable[Slot]) -> Iterator[str]:
        """Yield what may require grad and becomes a keyword behind a cache, or is one that nothing shows."""
        row = self.site.rows[0]
        if self.keyword_activations:
            bound = {name for binding in self.bindings for name in binding.names}
            left = losing_gradients(self.network, blocks).get(row, set()) - bound
            yield from (losing_doubt(row, name) for name in sorted(left))
        behind = [each for each in slots if each.source is not None and each.source.by_position]
        # Checkpointing does not look into a tuple, however it is passed.
        tensors = [each for each in behind if each.source and not isinstance(each.source.arg.value, _NESTING)]
        names = {each.keyword for each in tensors if each.keyword is not None}
        parameters = {each for info in blocks if info.signature for each in info.signature.parameters}
        scalars = {each.name for each in parameters if each.annotation in _SCALARS}
        moved = {each for each in names - scalars if not is_never_activation(each)}
        for name in sorted(moved & requiring_grad(self.network, self.site, blocks)) if moved else ():
            yield losing_doubt(row, name, is_new=True)

    def _reordered(self, reason: str) -> Fix | Refusal:
        """Return the fix that changes the order of the block's parameters, and with it all calls."""
        block = self.bindings[0].block
        reordered = reorder_forward(self.network, block, self.bindings[0].activations)
        if isinstance(reordered, Refusal):
            return Refusal(f"{reason}, and it cannot be reordered: {reordered.reason}")
        signature = self.bindings[0].signature
        names = sorted(self.bindings[0].activations, key=lambda each: signature.index(each) or 0)
        return Fix(
            f"Move {listed_code(names)} to the front in `{block.name}.forward` and in its calls",
            tuple(reordered.edits),
            Applicability.UNSAFE,
            f"{reason}, so the fix changes their order: {_OUTSIDE_CALLERS}",
            tuple(reordered.calls),
        )

    def story(
        self, arguments: Sequence[BoundArgument], meaning: str, *, traced: bool
    ) -> tuple[StoryStep, ...]:
        """Return how the call comes to run the block, and what its parameters get.

        Args:
            arguments: the arguments that are passed in the wrong way.
            meaning: what there is to know of the parameter that receives one.
            traced: whether it matters where a gradient comes from.
        """
        block = self.bindings[0].block
        steps = list(call_story(self.site, block))
        for bound in arguments:
            steps += parameter_steps(block, bound.name, f"`{bound.name}` of `{block.name}.forward` {meaning}")
            if traced:
                steps += gradient_steps(self.site, bound.arg.value, bound.name, self.network.gradients)
        return tuple(steps)

    def evidence(self, causes: Collection[Cause]) -> Evidence | None:
        """Return what a run says, where the text alone would not have told.

        Args:
            causes: those of failures that are the damage.
        """
        if not (self.site.only_seen or any(binding.seen for binding in self.bindings)):
            return None
        is_confirmed = any(not each.causes.isdisjoint(causes) for each in self.site.seen)
        return Evidence.CONFIRMED if is_confirmed else Evidence.UNSEEN


@remembered
def defective_sites(network: Network) -> tuple[SiteDefects, ...]:
    """Return the plain run sites with a cache by position, or an activation where it gets no gradient."""
    return tuple(_defective_sites(network))


class Unjudged(Enum):
    """Why nothing is said of the arguments of a call site."""

    CHECKPOINTED = "the call goes through a checkpoint function, which passes its arguments on unchanged"
    INNER = "the call runs an inner function, whose own calls are checked instead"
    NOT_RECOMPUTED = (
        "{block} is not a checkpointing layer and no fix makes it one, so checkpointing does not see its "
        "arguments"
    )
    UNRECORDED = Untrained.UNRECORDED.value
    EVALUATING = Untrained.EVALUATING.value
    SPARED = "the call is in the branch that does not checkpoint"
    UNBOUND = (
        "the arguments cannot be matched to parameters: the call unpacks a list, or `forward` could not be "
        "read"
    )

    def of(self, site: RunSite) -> str:
        """Return the reason in words."""
        return self.value.replace("{block}", _named(site))


def _judged(network: Network, site: RunSite) -> tuple[SiteBinding, ...] | Unjudged:
    """Return the bindings of a call site for the blocks that are recomputed, or why it has none."""
    if site.checkpointed:
        return Unjudged.CHECKPOINTED
    if site.function is not None:
        return Unjudged.INNER
    idle = untrained(site)
    if idle is not None:
        return Unjudged(idle.value)
    # A layer is enabled along with its stack, which does not come here then.
    spared = is_spared(site)
    unprotected = layers_to_be(network)
    blocks = [info for info in site.blocks if info in unprotected or (not spared and info.is_checkpointing)]
    if not blocks:
        layers = any(info.is_checkpointing for info in site.blocks)
        return Unjudged.SPARED if spared and layers else Unjudged.NOT_RECOMPUTED
    bindings = [bind_site(site, info, network.gradients) for info in blocks]
    known = tuple(binding for binding in bindings if binding is not None)
    return known if len(known) == len(blocks) else Unjudged.UNBOUND


def reasons(network: Network, sites: Iterable[RunSite], innocence: str) -> Iterator[str]:
    """Yield for each call site why a rule about its arguments is silent.

    Args:
        network: the file.
        sites: the call sites.
        innocence: what is said of one that is judged; ``{block}`` stands for the block's name.
    """
    found = []
    for site in sites:
        judged = _judged(network, site)
        if isinstance(judged, Unjudged):
            found.append(judged.of(site))
        else:
            found.append(innocence.replace("`{block}`", _named(site)))
    yield from dict.fromkeys(found)


def _named(site: RunSite) -> str:
    run = [info for info in site.blocks if info in site.let_through] or site.blocks
    return " or ".join(f"`{info.name}`" for info in run)


def _defective_sites(network: Network) -> Iterator[SiteDefects]:
    for site in network.run_sites:
        if site.checkpointed or site.function is not None:
            continue
        known = _judged(network, site)
        if isinstance(known, Unjudged):
            continue
        wrong = [binding for binding in known if binding.defects()]
        layers = {binding.block for binding in wrong if binding.block.is_checkpointing}
        if site.let_through.isdisjoint(layers):
            wrong = [binding for binding in wrong if binding.block not in layers]
        if not wrong:
            continue
        # What is wrong today has to be right for all blocks, but for others it is not wrong yet.
        now = [binding for binding in wrong if binding.block.is_checkpointing]
        info = wrong[0].block
        yield SiteDefects(
            network,
            site,
            tuple(sorted(known, key=lambda each: bool(now) and not each.block.is_checkpointing)),
            _united(binding.positional_caches() for binding in now or wrong),
            _united(binding.keyword_activations() for binding in now or wrong),
            _united(binding.nested_activations() for binding in now or wrong),
            None if now else (info.file.path, *info.definition.heading),
        )


def _united(groups: Iterable[list[BoundArgument]]) -> tuple[BoundArgument, ...]:
    """Return the arguments of all groups, each place of the call once."""
    by_index = {bound.index: bound for group in groups for bound in group}
    return tuple(by_index[index] for index in sorted(by_index))
