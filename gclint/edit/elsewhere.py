"""What other files need where a block becomes a checkpointing layer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from gclint.code.paths import shown
from gclint.copies.generated import is_modular
from gclint.edit.group import BlockGroup, root_of
from gclint.edit.receivers import names_holding, put_elsewhere
from gclint.finding import Applicability, Edit, Fix, Refusal, Repair
from gclint.network.activation import bind_site
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.importers import importers
from gclint.network.index import subclasses
from gclint.network.model import Network, UnprotectedBlock
from gclint.network.runsite import RunSite

Protect: TypeAlias = Callable[[Network, UnprotectedBlock, frozenset[Path]], Fix | Refusal]
"""Returns the part of a fix that one file needs, given the files whose part is made already."""


@dataclass
class Elsewhere:
    """What has to change in other files."""

    edits: list[Edit] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    """What the changes rest on that only a run has seen."""
    repairs: list[Repair] = field(default_factory=list)


def fixes_elsewhere(
    network: Network, group: BlockGroup, done: frozenset[Path], protect: Protect
) -> Elsewhere | Refusal:
    """Return what other files need: those that define a block or its base, and those that run it.

    Args:
        network: the file.
        group: its blocks.
        done: the files whose part of the fix is made already.
        protect: what makes the part of another file.
    """
    elsewhere = Elsewhere()
    done |= {network.file.path}
    for info, other in _parts_elsewhere(network, group, done):
        known = {block.info: block for block in other.unprotected_blocks}
        problem = _obstacle_there(network, group, info, other, known)
        if problem is not None:
            return Refusal(problem)
        fix = protect(other, known.get(info, UnprotectedBlock(info, ())), done)
        if isinstance(fix, Refusal):
            return Refusal(f"{_role(group, info, other)} has no fix: {fix.reason}")
        elsewhere.edits += fix.edits
        elsewhere.repairs += fix.repairs
        if fix.reason is not None:
            is_proof_enough = fix.applicability is Applicability.PROVABLE
            reasons = elsewhere.evidence if is_proof_enough else elsewhere.doubts
            reasons.append(f"in {other.file.path.name}, {fix.reason}")
    return elsewhere


def _obstacle_there(
    network: Network, group: BlockGroup, info: ClassInfo, other: Network, known: Collection[ClassInfo]
) -> str | None:
    """Return what keeps a class of another file, whose blocks are ``known``, from being converted there."""
    if network.project.is_context(other.file.path):
        return (
            f"its base `{info.name}` would have to become a `{CHECKPOINTING_BASE}`, but belongs to the "
            "installed transformers, which gclint does not change"
        )
    if info.file is other.file and other.checkpointing_module is None:
        return f"`{info.name}` is in {other.file.path.name}, which has no `{CHECKPOINTING_BASE}`"
    is_base = any(info in each.mro for each in group.blocks)
    if is_base and info not in known and info not in group.blocks:
        return (
            f"its base `{info.name}` in {info.file.path.name} would have to become a `{CHECKPOINTING_BASE}`"
        )
    return None


def _parts_elsewhere(
    network: Network, group: BlockGroup, done: frozenset[Path]
) -> Iterator[tuple[ClassInfo, Network]]:
    """Yield the classes that other files define or run, each with such a file."""
    for root in dict.fromkeys(root_of(info) for info in group.blocks):
        if root.file.path not in done:
            yield root, Network(network.project, root.file)
    for info in group.blocks:
        for module in importers(network.project, info):
            if module.file.path in done or is_modular(module.file.path):
                continue
            other = Network(network.project, module.file)
            if any(info in site.blocks for site in other.run_sites):
                yield info, other
        for subclass in subclasses(network.project, info):
            if subclass.file.path not in done and not is_modular(subclass.file.path):
                other = Network(network.project, subclass.file)
                if any(site.checkpointed and subclass in site.blocks for site in other.run_sites):
                    yield subclass, other


def _role(group: BlockGroup, info: ClassInfo, other: Network) -> str:
    """Describe what a class of another file is to a group."""
    if info.file is not other.file:
        return f"the call in {other.file.path.name} that runs `{info.name}`"
    if info in group.blocks:
        return f"its class in {other.file.path.name}"
    relation = "its base" if any(info in each.mro for each in group.blocks) else "its subclass"
    return f"{relation} `{info.name}` in {other.file.path.name}"


def foreign_obstacle(network: Network, blocks: Collection[ClassInfo]) -> str | None:
    """Return what keeps blocks from being repaired that a loop in another file runs."""
    for site in network.foreign_sites:
        run = [info for info in site.blocks if info in blocks]
        if not run:
            continue
        where = f"on line {site.rows[0]} of {shown(site.scope.module.file.path)}"
        if site.checkpointed:
            return f"`{site.owner.name}` inherits the loop that checkpoints it {where}"
        bindings = [bind_site(site, info, network.gradients) for info in run]
        if any(each is None or each.positional_caches() or each.keyword_activations() for each in bindings):
            return f"`{site.owner.name}` inherits the call {where}, which would have to change"
    return None


def replaced_elsewhere(
    network: Network, blocks: Collection[ClassInfo], legacy: Iterable[RunSite]
) -> str | None:
    """Return which class of another file relies on a branch that goes, for blocks of its own."""
    for owner in dict.fromkeys(site.owner for site in legacy):
        names = names_holding(network, owner, blocks)
        for subclass, name, held in put_elsewhere(network, owner, names):
            left = next((each for each in held if not each.is_checkpointing and each not in blocks), None)
            if left is not None:
                return (
                    f"`{subclass.name}` in {shown(subclass.file.path)} puts `{left.name}` into `{name}`, "
                    "which only this branch checkpoints"
                )
    return None
