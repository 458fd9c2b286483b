"""Making blocks checkpointing layers: base class, import, legacy branches and run sites at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst

from gclint.codemod.branch import (
    LegacyBranch,
    differences,
    leaves_out_training,
    legacy_branch,
    removed_names,
    replacement,
    unused_helpers,
)
from gclint.codemod.call import repair_call
from gclint.codemod.imports import drop_unused_imports, import_checkpointing_base
from gclint.codemod.leftover import leftover
from gclint.codemod.patched import patch_doubts
from gclint.codemod.release import release_doubts, too_old
from gclint.codemod.removal import dotted_names, remove_functions
from gclint.codemod.substitutes import foreign_obstacle, replaced_elsewhere
from gclint.codemod.switching import remove_override, switch_changes, switch_obstacle
from gclint.finding import Applicability, Edit, Fix, Part, Refusal, Repair
from gclint.network.activation import bind_site, requires_cache
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, MODEL_BASE, ClassInfo, remembered
from gclint.network.evaluation.walk import dotted_name
from gclint.network.importers import importers
from gclint.network.index import subclasses
from gclint.network.model import Network, UnprotectedBlock
from gclint.network.override import OldOverride
from gclint.network.runsite import RunSite
from gclint.network.traits import statistics_class, stores_on_self
from gclint.source.generated import is_modular
from gclint.source.outline import Definition
from gclint.source.paths import shown


@dataclass
class _Group:
    """Blocks that have to be converted together, since one legacy branch checkpoints them all."""

    blocks: dict[ClassInfo, None] = field(default_factory=dict)
    branches: dict[cst.If, LegacyBranch] = field(default_factory=dict)


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
    group = _group(network, block)
    if isinstance(group, Refusal):
        return group
    problem = _obstacle(network, group)
    if problem is not None:
        return Refusal(problem)
    removed = [branch.span for branch in group.branches.values()]
    removed += [
        (each.start, each.end) for branch in group.branches.values() for each in unused_helpers(branch)
    ]
    legacy = [site for branch in group.branches.values() for site in branch.legacy]
    problem = (
        _obstacle_in_subclasses(network, group)
        or foreign_obstacle(network, group.blocks)
        or replaced_elsewhere(network, group.blocks, legacy)
        or leftover(network, group.blocks, removed)
    )
    if problem is not None:
        return Refusal(problem)
    elsewhere = _fixes_elsewhere(network, group, done)
    if isinstance(elsewhere, Refusal):
        return elsewhere
    bases = _base_edits(network, group)
    if isinstance(bases, Refusal):
        return bases
    doubts = [doubt for info in group.blocks for doubt in _doubts(info)]
    doubts += elsewhere.doubts
    doubts += release_doubts(network, _newly_checkpointed(network, group), loses_branch=bool(group.branches))
    doubts += _branch_doubts(network, group)
    doubts += _shared_bases(network, group)
    doubts += patch_doubts(network, group.blocks)
    sites, site_doubts = _site_edits(network, group)
    switching = switch_changes(network, _sites(network, group))
    doubts += switching.doubts
    edits = list(elsewhere.edits)
    edits += [*bases, *_branch_edits(network, group, sites, switching.overrides), *_outside(group, sites)]
    reasons = list(dict.fromkeys(doubts + site_doubts))
    return Fix(
        f"Make {_names(group.blocks)} a `{CHECKPOINTING_BASE}`",
        tuple(dict.fromkeys(edits)),
        Applicability.UNSAFE if reasons else Applicability.SAFE,
        "; ".join(reasons) or None,
        (*elsewhere.repairs, *_repairs(group, sites)),
    )


def layers_to_be(network: Network) -> frozenset[ClassInfo]:
    """Return the blocks of a file that a fix makes checkpointing layers."""
    return frozenset(info for info, remedy in remedies(network).items() if isinstance(remedy, Fix))


@remembered
def remedies(network: Network) -> dict[ClassInfo, Fix | Refusal]:
    """Return for each unprotected block of a file its fix, or why there is none."""
    return {block.info: protect(network, block) for block in network.unprotected_blocks}


def _repairs(group: _Group, sites: dict[RunSite, tuple[Edit, ...]]) -> Iterator[Repair]:
    """Yield what the fix of a group puts right in its own file, and the blocks whose bases are elsewhere."""
    for info in group.blocks:
        yield Repair(Part.BLOCK, info.file.path, info.definition.header, info.definition.end)
    for branch in group.branches.values():
        yield Repair(Part.BRANCH, branch.fragment.file.path, *branch.span)
    for site in sites:
        yield Repair(Part.CALL, site.fragment.file.path, *site.span(site.call))


def _sites(network: Network, group: _Group) -> list[RunSite]:
    """Return the calls in the file that run blocks of a group."""
    return [site for site in network.run_sites if any(info in group.blocks for info in site.blocks)]


def _names(blocks: Iterable[ClassInfo]) -> str:
    return " and ".join(f"`{info.name}`" for info in blocks)


def _group(network: Network, block: UnprotectedBlock) -> _Group | Refusal:
    """Return everything that hangs together with a block through legacy branches."""
    group = _Group({block.info: None})
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


def _obstacle(network: Network, group: _Group) -> str | None:
    """Return what forbids the conversion altogether."""
    for branch in group.branches.values():
        for difference in differences(branch, network.releases):
            if not difference.one_is_silent:
                row = network.file.position(branch.span[0]).row
                return f"the legacy branch in line {row} cannot be removed, since {difference.description}"
    problem = switch_obstacle(network, _sites(network, group))
    if problem is not None:
        return problem
    for info in group.blocks:
        if info.is_model:
            return (
                f"`{info.name}` is a `{MODEL_BASE}` itself; put what is recomputed into a layer of its own, "
                f"derived from `{CHECKPOINTING_BASE}`"
            )
        name = requires_cache(info)
        if name is not None:
            return f"`{info.name}` needs its cache `{name}` in training, which checkpointing takes away"
    return None


def _obstacle_in_subclasses(network: Network, group: _Group) -> str | None:
    """Return what keeps a subclass in another file from being converted along with its base.

    It becomes a checkpointing layer with its base, so its own legacy branch must be able to go.
    Modular files are left out: what is generated from them is looked at together with them.
    """
    for info in group.blocks:
        if info.file is not network.file or _root(info) is not info:
            continue
        for heir in subclasses(network.project, info):
            if heir.file is network.file or is_modular(heir.file.path):
                continue
            other = Network(network.project, heir.file)
            legacy = _group(other, UnprotectedBlock(heir, ()))
            problem = legacy.reason if isinstance(legacy, Refusal) else _obstacle(other, legacy)
            if problem is not None:
                return f"`{heir.name}` in {shown(heir.file.path)} inherits from `{info.name}`, and {problem}"
    return None


def _branch_doubts(network: Network, group: _Group) -> list[str]:
    """Return what the plain call passes otherwise than the checkpointed one that it replaces."""
    doubts: list[str] = []
    for branch in group.branches.values():
        row = network.file.position(branch.span[0]).row
        doubts += [
            f"with checkpointing, the call in line {row} changes: {difference.description}"
            for difference in differences(branch, network.releases)
        ]
        if leaves_out_training(branch):
            doubts.append(
                f"the branch on line {row} checkpoints in evaluation as well, "
                "and the base class in training only"
            )
    return doubts


def _doubts(info: ClassInfo) -> list[str]:
    """Return why someone should look before a block is recomputed in the backward pass."""
    doubts: list[str] = []
    part = statistics_class(info)
    if part is not None:
        where = f"`{part}`" if part == info.name else f"`{part}` in `{info.name}`"
        doubts.append(f"{where} keeps running statistics, which recomputation updates twice")
    if stores_on_self(info):
        doubts.append(f"`{info.name}.forward` assigns to the object itself, which recomputation does twice")
    return doubts


def _root(info: ClassInfo) -> ClassInfo:
    """Return the class, or the base of it, that names ``nn.Module`` as a base itself."""
    return info.mro[-1]


def _base_edits(network: Network, group: _Group) -> list[Edit] | Refusal:
    """Return the edits that change the base classes and add the import."""
    edits: list[Edit] = []
    for info in group.blocks:
        root = _root(info)
        if root.file is not network.file:
            continue
        fragment = root.header_fragment()
        node = root.header_node()
        if fragment is None or node is None:
            return Refusal(f"the header of `{root.name}` cannot be read")
        header = cst.ensure_type(fragment.body[0], cst.ClassDef)
        arg = _module_base(root, header)
        if arg is None:
            return Refusal(f"`{root.name}` has no base `nn.Module` of its own to replace")
        edits.append(Edit(root.file.path, *fragment.span(arg.value), CHECKPOINTING_BASE))
    if all(_root(info).file is not network.file for info in group.blocks):
        return edits
    if network.guards_base_class:
        return edits
    assert network.checkpointing_module is not None
    return edits + list(import_checkpointing_base(network.file, network.checkpointing_module))


@dataclass
class _Elsewhere:
    """What has to change in other files."""

    edits: list[Edit] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)


def _fixes_elsewhere(network: Network, group: _Group, done: frozenset[Path]) -> _Elsewhere | Refusal:
    """Return what other files need: those that define a block or its base, and those that run it.

    Args:
        network: the file.
        group: its blocks.
        done: the files whose part of the fix is made already.
    """
    elsewhere = _Elsewhere()
    done |= {network.file.path}
    for info, other in _parts_elsewhere(network, group, done):
        if network.project.is_context(other.file.path):
            return Refusal(
                f"its base `{info.name}` would have to be a `{CHECKPOINTING_BASE}`, and belongs to the "
                "installed transformers, which is not changed"
            )
        if info.file is other.file and other.checkpointing_module is None:
            return Refusal(
                f"`{info.name}` is in {other.file.path.name}, where there is no `{CHECKPOINTING_BASE}`"
            )
        known = {block.info: block for block in other.unprotected_blocks}
        is_base = any(info in each.mro for each in group.blocks)
        if is_base and info not in known and info not in group.blocks:
            return Refusal(
                f"its base `{info.name}` in {info.file.path.name} would have to be a `{CHECKPOINTING_BASE}`"
            )
        fix = protect(other, known.get(info, UnprotectedBlock(info, ())), done)
        if isinstance(fix, Refusal):
            return Refusal(f"{_role(group, info, other)} has no fix: {fix.reason}")
        elsewhere.edits += fix.edits
        elsewhere.repairs += fix.repairs
        if fix.reason is not None:
            elsewhere.doubts.append(f"in {other.file.path.name}, {fix.reason}")
    return elsewhere


def _parts_elsewhere(
    network: Network, group: _Group, done: frozenset[Path]
) -> Iterator[tuple[ClassInfo, Network]]:
    """Yield the classes that other files define or run, each with such a file."""
    for root in dict.fromkeys(_root(info) for info in group.blocks):
        if root.file.path not in done:
            yield root, Network(network.project, root.file)
    for info in group.blocks:
        for module in importers(network.project, info):
            if module.file.path in done or is_modular(module.file.path):
                continue
            other = Network(network.project, module.file)
            if any(info in site.blocks for site in other.run_sites):
                yield info, other
        for heir in subclasses(network.project, info):
            if heir.file.path not in done and not is_modular(heir.file.path):
                other = Network(network.project, heir.file)
                if any(site.checkpointed and heir in site.blocks for site in other.run_sites):
                    yield heir, other


def _role(group: _Group, info: ClassInfo, other: Network) -> str:
    """Describe what a class of another file is to a group."""
    if info.file is not other.file:
        return f"the call in {other.file.path.name} that runs `{info.name}`"
    if info in group.blocks:
        return f"its class in {other.file.path.name}"
    relation = "its base" if any(info in each.mro for each in group.blocks) else "its subclass"
    return f"{relation} `{info.name}` in {other.file.path.name}"


def _module_base(root: ClassInfo, header: cst.ClassDef) -> cst.Arg | None:
    for arg in header.bases:
        name = dotted_name(arg.value) or ""
        if any(getattr(value, "name", None) == "torch.nn.Module" for value in root.module.resolve(name)):
            return arg
    return None


def _shared_bases(network: Network, group: _Group) -> list[str]:
    """Return doubts about classes that are no blocks and would change along with a base."""
    doubts: list[str] = []
    blocks = {block.info for block in network.unprotected_blocks} | set(group.blocks)
    for info in group.blocks:
        root = _root(info)
        others = sorted(
            other.name
            for other in network.module.classes.values()
            if root in other.mro and other not in blocks and other is not root
        )
        if others:
            doubts.append(f"`{root.name}` is also a base of `{others[0]}`, which is no stacked block")
        holders = sorted(
            other.name for other in blocks if other not in group.blocks and info in other.all_parts
        )
        if holders:
            doubts.append(f"`{info.name}` is also a part of `{holders[0]}`, which is recomputed as a whole")
    return doubts


def _site_edits(network: Network, group: _Group) -> tuple[dict[RunSite, tuple[Edit, ...]], list[str]]:
    """Return the repairs of the plain run sites, and doubts about those that have no safe one."""
    repairs: dict[RunSite, tuple[Edit, ...]] = {}
    doubts: list[str] = []
    for site in network.run_sites:
        blocks = [info for info in site.blocks if info in group.blocks or info.is_checkpointing]
        if site.checkpointed or site.function is not None or not any(info in group.blocks for info in blocks):
            continue
        bindings = [bind_site(site, info, network.gradients) for info in blocks]
        row = network.file.position(site.span(site.call)[0]).row
        if isinstance(site.call.func, cst.Attribute) and site.call.func.attr.value == "forward":
            doubts.append(
                f"the call of `forward` itself in line {row} is recomputed from transformers 5.23 on only"
            )
        known = [binding for binding in bindings if binding is not None]
        if len(known) != len(bindings):
            doubts.append(f"the arguments of the call in line {row} cannot be matched to `forward`")
            continue
        if not any(binding.is_to_be_repaired() for binding in known):
            continue
        repaired = repair_call(site.fragment, site.call, known)
        if isinstance(repaired, Refusal):
            doubts.append(f"the call in line {row} would still be wrong: {repaired.reason}")
        else:
            repairs[site] = repaired.edits
            doubts += [f"in the call in line {row}, {doubt}" for doubt in repaired.doubts]
    return repairs, doubts


def _newly_checkpointed(network: Network, group: _Group) -> list[RunSite]:
    """Return the plain calls of blocks that stand beside no checkpointed one."""
    beside = {site for branch in group.branches.values() for site in branch.plain}
    return [
        site
        for site in network.run_sites
        if not site.checkpointed and site not in beside and any(info in group.blocks for info in site.blocks)
    ]


def _branch_edits(
    network: Network,
    group: _Group,
    sites: dict[RunSite, tuple[Edit, ...]],
    overrides: Iterable[OldOverride],
) -> list[Edit]:
    """Return the edits that take legacy branches and old overrides away, and what only they used."""
    edits: list[Edit] = []
    names: set[str] = set()
    functions: dict[Definition, None] = {}
    for branch in group.branches.values():
        inner = [edit for site in branch.plain for edit in sites.get(site, ())]
        edits.append(replacement(branch, inner))
        names |= removed_names(branch)
        functions.update(dict.fromkeys(unused_helpers(branch)))
    edits += remove_functions(network.file, functions)
    for override in overrides:
        edits.append(remove_override(override))
        functions.update({override.method: None} if override.model.file is network.file else {})
    names |= dotted_names(functions)
    return [*edits, *drop_unused_imports(network.file, names, edits)]


def _outside(group: _Group, sites: dict[RunSite, tuple[Edit, ...]]) -> Iterable[Edit]:
    """Yield the repairs of run sites that stand in no branch that goes."""
    inside = {site for branch in group.branches.values() for site in branch.plain}
    for site, edits in sites.items():
        if site not in inside:
            yield from edits
