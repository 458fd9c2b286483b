"""Making blocks checkpointing layers: base class, import, legacy branches and run sites at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gclint.codemod.conversion import base_edits, branch_edits, edits_outside, site_edits
from gclint.codemod.doubts import (
    block_doubts,
    branch_doubts,
    compiled_doubts,
    mode_doubts,
    newly_checkpointed,
    recorded_doubts,
    shared_bases,
)
from gclint.codemod.elsewhere import fixes_elsewhere
from gclint.codemod.evidence import applicability
from gclint.codemod.group import (
    Group,
    group_of,
    has_own_mode,
    obstacle,
    obstacle_in_order,
    obstacle_in_subclasses,
    sites_of,
)
from gclint.codemod.leftover import leftover
from gclint.codemod.outputs import output_doubts
from gclint.codemod.patched import patch_doubts
from gclint.codemod.received import container_doubts, surrounding_doubts
from gclint.codemod.recomputed import recomputation_doubts, unknown_doubts
from gclint.codemod.release import import_doubts, release_doubts, too_old
from gclint.codemod.replacement import unused_helpers
from gclint.codemod.substitutes import foreign_obstacle, replaced_elsewhere
from gclint.codemod.switching import computed_doubts, switch_changes, switch_obstacle
from gclint.finding import Edit, Fix, Part, Refusal, Repair
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.model import Network, UnprotectedBlock
from gclint.network.runsite import RunSite
from gclint.source.remembered import remembered
from gclint.wording import listed_code


def protect(network: Network, block: UnprotectedBlock, done: frozenset[Path] = frozenset()) -> Fix | Refusal:
    """Return the fix that makes a block a checkpointing layer, or why there is none.

    Args:
        network: the file that defines or runs the block.
        block: the block.
        done: other files, whose part of the same fix is made already.
    """
    refusal = too_old(network)
    if refusal is not None:
        return refusal
    problem = switch_obstacle(network, block.sites)
    if problem is not None:
        return Refusal(problem)
    group = group_of(network, block)
    if isinstance(group, Refusal):
        return group
    problem = _problem(network, group)
    if problem is not None:
        return Refusal(problem)
    elsewhere = fixes_elsewhere(network, group, done, protect)
    if isinstance(elsewhere, Refusal):
        return elsewhere
    bases = base_edits(network, group)
    if isinstance(bases, Refusal):
        return bases
    sites = site_edits(network, group)
    switching = switch_changes(network, sites_of(network, group))
    doubts = [*_doubts(network, group), *elsewhere.doubts, *switching.doubts, *sites.doubts]
    doubts = doubts or [
        *_unknown(network, group),
        *(doubt for override in switching.overrides for doubt in computed_doubts(override)),
    ]
    edits = list(elsewhere.edits)
    edits += branch_edits(network, group, sites.edits, switching.overrides)
    edits += [*bases, *edits_outside(group, sites.edits)]
    evidence = [*elsewhere.evidence, *sites.evidence, *_evidence(block)]
    return Fix(
        f"Derive {_names(group.blocks)} from `{CHECKPOINTING_BASE}`",
        tuple(dict.fromkeys(edits)),
        applicability(doubts, evidence),
        "; ".join(dict.fromkeys([*doubts, *evidence])) or None,
        (*elsewhere.repairs, *_repairs(group, sites.edits)),
    )


def _evidence(block: UnprotectedBlock) -> Iterator[str]:
    """Yield that only a run has seen that a block is one."""
    if block.is_seen:
        yield f"a run showed that `{block.info.name}` is stacked"


def _problem(network: Network, group: Group) -> str | None:
    """Return what forbids that the blocks of a group become checkpointing layers."""
    branches = group.branches.values()
    removed = [branch.span for branch in branches]
    removed += [(each.start, each.end) for branch in branches for each in unused_helpers(branch)]
    legacy = [site for branch in branches for site in branch.legacy]
    return (
        obstacle(network, group)
        or obstacle_in_subclasses(network, group)
        or obstacle_in_order(network, group)
        or foreign_obstacle(network, group.blocks)
        or replaced_elsewhere(network, group.blocks, legacy)
        or leftover(network, group.blocks, removed)
    )


def _doubts(network: Network, group: Group) -> list[str]:
    """Return why someone should look before the blocks of a group become checkpointing layers."""
    doubts = [doubt for info in group.blocks for doubt in block_doubts(info)]
    new = newly_checkpointed(network, group)
    if new or has_own_mode(group):
        doubts += [doubt for info in group.blocks for doubt in recomputation_doubts(info)]
        doubts += recorded_doubts(network, group)
    doubts += release_doubts(network, new, loses_branch=bool(group.branches))
    if network.checkpointing_module is not None and not network.guards_base_class:
        doubts += import_doubts(network, network.checkpointing_module)
    doubts += branch_doubts(network, group)
    doubts += output_doubts(sites_of(network, group), group.blocks)
    doubts += shared_bases(network, group)
    doubts += mode_doubts(network, group)
    doubts += [*compiled_doubts(network, group), *patch_doubts(network, group.blocks)]
    return doubts


def _unknown(network: Network, group: Group) -> list[str]:
    """Return what is not known of blocks that are recomputed and were not, if nothing else is in doubt."""
    if not newly_checkpointed(network, group) and not has_own_mode(group):
        return []
    doubts = [doubt for info in group.blocks for doubt in unknown_doubts(info)]
    doubts += container_doubts(network, group.blocks)
    return [*doubts, *surrounding_doubts(network, group.blocks)]


def layers_to_be(network: Network) -> frozenset[ClassInfo]:
    """Return the blocks of a file that a fix makes checkpointing layers."""
    return frozenset(info for info, remedy in remedies(network).items() if isinstance(remedy, Fix))


@remembered
def remedies(network: Network) -> dict[ClassInfo, Fix | Refusal]:
    """Return for each unprotected block of a file its fix, or why there is none."""
    return {block.info: protect(network, block) for block in network.unprotected_blocks}


def _repairs(group: Group, sites: dict[RunSite, tuple[Edit, ...]]) -> Iterator[Repair]:
    """Yield what the fix of a group puts right in its own file, and the blocks whose bases are elsewhere."""
    for info in group.blocks:
        yield Repair(Part.BLOCK, info.file.path, info.definition.header, info.definition.end)
    for branch in group.branches.values():
        yield Repair(Part.BRANCH, branch.scope.module.file.path, *branch.span)
    for site in sites:
        yield Repair(Part.CALL, site.scope.module.file.path, *site.span(site.call))


def _names(blocks: Iterable[ClassInfo]) -> str:
    return listed_code(info.name for info in blocks)
