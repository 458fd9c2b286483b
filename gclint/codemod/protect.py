"""Making blocks checkpointing layers: base class, import, legacy branches and run sites at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import libcst as cst

from gclint.codemod.branch import (
    LegacyBranch,
    differences,
    legacy_branch,
    removed_names,
    replacement,
    unused_helpers,
)
from gclint.codemod.call import repair_call
from gclint.codemod.imports import drop_unused_imports, import_checkpointing_base
from gclint.finding import Applicability, Edit, Fix, Part, Refusal, Repair
from gclint.network.activation import bind_site, requires_cache
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.index import subclasses
from gclint.network.model import Network, UnprotectedBlock
from gclint.network.runsite import RunSite
from gclint.network.support import old_override
from gclint.network.traits import statistics_class, stores_on_self
from gclint.source.generated import is_modular
from gclint.source.paths import shown


@dataclass
class _Group:
    """Blocks that have to be converted together, since one legacy branch checkpoints them all."""

    blocks: dict[ClassInfo, None] = field(default_factory=dict)
    branches: dict[cst.If, LegacyBranch] = field(default_factory=dict)


def protect(network: Network, block: UnprotectedBlock) -> Fix | Refusal:
    """Return the fix that makes a block a checkpointing layer, or why there is none."""
    group = _group(network, block)
    if isinstance(group, Refusal):
        return group
    problem = _obstacle(network, group)
    if problem is not None:
        return Refusal(problem)
    problem = _obstacle_in_subclasses(network, group)
    if problem is not None:
        return Refusal(problem)
    elsewhere = _fixes_elsewhere(network, group)
    if isinstance(elsewhere, Refusal):
        return elsewhere
    bases = _base_edits(network, group)
    if isinstance(bases, Refusal):
        return bases
    doubts = [doubt for info in group.blocks for doubt in _doubts(info)]
    doubts += elsewhere.doubts
    doubts += _branch_doubts(network, group)
    doubts += _shared_bases(network, group)
    sites, site_doubts = _site_edits(network, group)
    edits = list(elsewhere.edits)
    edits += [*bases, *_branch_edits(network, group, sites), *_outside(group, sites)]
    override = old_override(network.module)
    if override is not None:
        edits.append(Edit(network.file.path, override.method.start, override.method.end, ""))
        doubts.append(f"{override.description}; it goes, and the library sets the flag")
    reasons = list(dict.fromkeys(doubts + site_doubts))
    return Fix(
        f"Make {_names(group.blocks)} a `{CHECKPOINTING_BASE}`",
        tuple(dict.fromkeys(edits)),
        Applicability.UNSAFE if reasons else Applicability.SAFE,
        "; ".join(reasons) or None,
        (*elsewhere.repairs, *_repairs(group, sites)),
    )


def _repairs(group: _Group, sites: dict[RunSite, tuple[Edit, ...]]) -> Iterator[Repair]:
    """Yield what the fix of a group puts right in its own file, and the blocks whose bases are elsewhere."""
    for info in group.blocks:
        yield Repair(Part.BLOCK, info.file.path, info.definition.header, info.definition.end)
    for branch in group.branches.values():
        yield Repair(Part.BRANCH, branch.fragment.file.path, *branch.span)
    for site in sites:
        yield Repair(Part.CALL, site.fragment.file.path, *site.span(site.call))


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
        for difference in differences(branch):
            if not difference.one_is_silent:
                row = network.file.position(branch.span[0]).row
                return f"the legacy branch in line {row} cannot be removed, since {difference.description}"
    override = old_override(network.module)
    if override is not None and not override.only_sets_flags:
        return f"{override.description}, and does more than that"
    for info in group.blocks:
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
    return [
        f"with checkpointing, the call in line {network.file.position(branch.span[0]).row} changes: "
        f"{difference.description}"
        for branch in group.branches.values()
        for difference in differences(branch)
    ]


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
    assert network.checkpointing_module is not None
    return edits + list(import_checkpointing_base(network.file, network.checkpointing_module))


@dataclass
class _Elsewhere:
    """What has to change in other files."""

    edits: list[Edit] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)


def _fixes_elsewhere(network: Network, group: _Group) -> _Elsewhere | Refusal:
    """Return the fixes of bases in other files, each a block that its own file reports."""
    elsewhere = _Elsewhere()
    for root in dict.fromkeys(_root(info) for info in group.blocks):
        if root.file is network.file:
            continue
        other = Network(network.project, root.file)
        block = next((block for block in other.unprotected_blocks if block.info is root), None)
        if block is None:
            return Refusal(
                f"its base `{root.name}` in {root.file.path.name} would have to be a `{CHECKPOINTING_BASE}`"
            )
        fix = protect(other, block)
        if isinstance(fix, Refusal):
            return Refusal(f"its base `{root.name}` in {root.file.path.name} has no fix: {fix.reason}")
        elsewhere.edits += fix.edits
        elsewhere.repairs += fix.repairs
        if fix.reason is not None:
            elsewhere.doubts.append(f"in {root.file.path.name}, {fix.reason}")
    return elsewhere


def _module_base(root: ClassInfo, header: cst.ClassDef) -> cst.Arg | None:
    for arg in header.bases:
        code = cst.Module([]).code_for_node(arg.value)
        if any(getattr(value, "name", None) == "torch.nn.Module" for value in root.module.resolve(code)):
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


def _branch_edits(network: Network, group: _Group, sites: dict[RunSite, tuple[Edit, ...]]) -> list[Edit]:
    """Return the edits that take legacy branches away, and what only they used."""
    edits: list[Edit] = []
    names: set[str] = set()
    for branch in group.branches.values():
        inner = [edit for site in branch.plain for edit in sites.get(site, ())]
        edits.append(replacement(branch, inner))
        names |= removed_names(branch)
        edits += [Edit(network.file.path, *span, "") for span in unused_helpers(branch)]
    return [*edits, *drop_unused_imports(network.file, names, edits)]


def _outside(group: _Group, sites: dict[RunSite, tuple[Edit, ...]]) -> Iterable[Edit]:
    """Yield the repairs of run sites that stand in no branch that goes."""
    inside = {site for branch in group.branches.values() for site in branch.plain}
    for site, edits in sites.items():
        if site not in inside:
            yield from edits
