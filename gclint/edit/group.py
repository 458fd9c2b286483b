"""The blocks that become checkpointing layers together, and what forbids that."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from gclint.code.naming import MODEL_BASE
from gclint.code.paths import shown
from gclint.copies.generated import is_modular
from gclint.edit.branch import LegacyBranch, legacy_branch
from gclint.edit.cache_arguments import arguments, dropped, no_cache
from gclint.edit.differences import differences
from gclint.edit.switching import switch_obstacle
from gclint.edit.users import subclasses_around
from gclint.finding import Refusal
from gclint.network.caches import requires_cache
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.values import EvaluatedExternal
from gclint.network.index import subclasses
from gclint.network.model import Network, UnprotectedBlock
from gclint.network.runsite import RunSite
from gclint.network.support import models_running
from gclint.network.untrained import untrained


@dataclass
class BlockGroup:
    """Blocks that have to be converted together, since one legacy branch checkpoints them all."""

    blocks: dict[ClassInfo, None] = field(default_factory=dict)
    branches: dict[ast.If, LegacyBranch] = field(default_factory=dict)


def group_of(network: Network, block: UnprotectedBlock) -> BlockGroup | Refusal:
    """Return everything that hangs together with a block through legacy branches."""
    group = BlockGroup({block.info: None})
    waiting = [block.info]
    while waiting:
        info = waiting.pop()
        for site in network.run_sites:
            if info not in site.blocks or not site.checkpointed:
                continue
            branch = legacy_branch(site, network.run_sites)
            if isinstance(branch, Refusal):
                return branch
            group.branches[branch.node] = branch
            for other in (each for run in branch.legacy for each in run.blocks):
                if other not in group.blocks and not other.is_checkpointing:
                    group.blocks[other] = None
                    waiting.append(other)
    return group


def sites_of(network: Network, group: BlockGroup) -> list[RunSite]:
    """Return the calls in the file that run blocks of a group."""
    return [site for site in network.run_sites if any(info in group.blocks for info in site.blocks)]


def root_of(info: ClassInfo) -> ClassInfo:
    """Return the class, or the base of it, that names ``nn.Module`` as a base itself."""
    # What is mixed in beside them is no module.
    roots = [each for each in info.mro if EvaluatedExternal("torch.nn.Module") in each.bases]
    return roots[-1] if roots else info.mro[-1]


def classes_around(owner: ClassInfo, group: BlockGroup) -> dict[ClassInfo, None]:
    """Return what runs the blocks of a group, the models that run that, and the blocks, with their bases."""
    around = (owner, *models_running(owner), *group.blocks)
    return dict.fromkeys(each for info in around for each in info.mro if each.name != MODEL_BASE)


def obstacle(network: Network, group: BlockGroup) -> str | None:
    """Return what forbids the conversion altogether."""
    for branch in group.branches.values():
        for difference in differences(branch, network.releases):
            if not difference.one_is_silent:
                row = network.file.position(branch.span[0]).row
                return (
                    f"the branch on line {row} cannot become one plain call: {difference.description}; first "
                    "make its two sides agree"
                )
    problem = switch_obstacle(network, sites_of(network, group))
    if problem is not None:
        return problem
    for info in group.blocks:
        if info.is_model:
            return (
                f"`{info.name}` is itself a `{MODEL_BASE}`; move what is recomputed into a layer derived "
                f"from `{CHECKPOINTING_BASE}`"
            )
    return obstacle_in_caches(network, group)


def obstacle_in_caches(network: Network, group: BlockGroup) -> str | None:
    """Return which cache a group needs, or gets that may be none, although checkpointing disables it."""
    for site in sites_of(network, group):
        if site.function is not None or untrained(site) is not None:
            continue
        other = no_cache(network, site, dropped(arguments(site)))
        if other is not None:
            row, _ = site.rows
            return f"in the call on line {row}, {other}"
    for info in group.blocks:
        name = requires_cache(info)
        if name is not None:
            return f"`{info.name}` needs its cache `{name}` in training, which checkpointing disables"
    return None


def obstacle_in_subclasses(network: Network, group: BlockGroup) -> str | None:
    """Return what keeps a subclass in another file from being converted along with its base.

    It becomes a checkpointing layer with its base, so its own legacy branch must be able to go.
    Modular files are left out: what is generated from them is looked at together with them.
    """
    for info in group.blocks:
        if info.file is not network.file or root_of(info) is not info:
            continue
        for subclass in subclasses(network.project, info):
            if subclass.file is network.file or is_modular(subclass.file.path):
                continue
            other = Network(network.project, subclass.file)
            legacy = group_of(other, UnprotectedBlock(subclass, ()))
            problem = legacy.reason if isinstance(legacy, Refusal) else obstacle(other, legacy)
            if problem is not None:
                where = shown(subclass.file.path)
                return f"`{subclass.name}` in {where} inherits from `{info.name}`, and {problem}"
    return None


def obstacle_in_order(network: Network, group: BlockGroup) -> str | None:
    """Return the class that names the base class before one of the blocks, which Python then cannot order."""
    for root in dict.fromkeys(root_of(info) for info in group.blocks):
        for subclass in dict.fromkeys(
            (*subclasses(network.project, root), *subclasses_around(network, root))
        ):
            names = [
                base.name.rpartition(".")[2] if isinstance(base, EvaluatedExternal) else ""
                for base in subclass.bases
            ]
            after = subclass.bases[names.index(CHECKPOINTING_BASE) :] if CHECKPOINTING_BASE in names else ()
            if any(isinstance(base, ClassInfo) and root in base.mro for base in after):
                where = "" if subclass.file is network.file else f" in {shown(subclass.file.path)}"
                return (
                    f"`{subclass.name}`{where} names `{CHECKPOINTING_BASE}` before a class that would become "
                    "one, and Python could not order its bases"
                )
    return None


def has_own_mode(group: BlockGroup) -> bool:
    """Return whether a branch checkpoints in a mode of its own, which need not be the library's."""
    sites = (site for branch in group.branches.values() for site in branch.legacy)
    return any(not site.calls_library or site.may_be_non_reentrant for site in sites)
