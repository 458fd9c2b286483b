"""Making blocks checkpointing layers: base class, import, legacy branches and run sites at once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from gclint.code.outline import Definition
from gclint.code.remembered import remembered
from gclint.code.walk import dotted_name
from gclint.edit.call import applicability, seen_blocks
from gclint.edit.doubts import (
    block_doubts,
    branch_doubts,
    compiled_doubts,
    newly_checkpointed,
    recorded_doubts,
    shared_bases,
    subclass_doubts,
)
from gclint.edit.elsewhere import fixes_elsewhere, foreign_obstacle, replaced_elsewhere
from gclint.edit.group import (
    BlockGroup,
    group_of,
    has_own_mode,
    obstacle,
    obstacle_in_caches,
    obstacle_in_order,
    obstacle_in_subclasses,
    root_of,
    sites_of,
)
from gclint.edit.imports import drop_unused_imports, import_checkpointing_base
from gclint.edit.leftover import leftover
from gclint.edit.modes import mode_doubts
from gclint.edit.outsiders import has_users_not_given, outside_doubts
from gclint.edit.patched import patch_doubts
from gclint.edit.receivers import repaired_call
from gclint.edit.recomputed import recomputation_doubts, unknown_doubts
from gclint.edit.release import import_doubts, release_doubts, too_old
from gclint.edit.removal import (
    dotted_names,
    remove_functions,
    removed_names,
    replacement,
    unused_helpers,
)
from gclint.edit.replaced import asking_doubts, replaced_doubts
from gclint.edit.surroundings import container_doubts, losing_gradients, passing_doubts, surrounding_doubts
from gclint.edit.switching import (
    computed_doubts,
    override_doubts,
    remove_override,
    removed_overrides,
    switch_obstacle,
)
from gclint.edit.without_cache import group_doubts
from gclint.finding import Edit, Fix, Refusal, Repair, RepairKind
from gclint.network.activation import SiteBinding, bind_site
from gclint.network.base_class import other_meaning
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.model import Network, UnprotectedBlock
from gclint.network.outside import LIBRARY_SWITCH
from gclint.network.override import OldOverride
from gclint.network.runsite import RunSite
from gclint.network.switch import switch_doubts
from gclint.network.untrained import untrained
from gclint.wording import listed_code

# -- what is to be so


_NONE_LOSING: Mapping[int, Collection[str]] = MappingProxyType({})
_Doubts: TypeAlias = "Callable[[Network, BlockGroup], Iterable[str]]"


def _of_blocks(doubts: Callable[[ClassInfo], Iterable[str]]) -> _Doubts:
    """Return what asks each of the blocks."""
    return lambda _, group: (doubt for info in group.blocks for doubt in doubts(info))


def _of_new(doubts: _Doubts) -> _Doubts:
    """Return what asks only where blocks are recomputed that were not, or in another mode."""
    return lambda network, group: doubts(network, group) if _is_new(network, group) else ()


def _is_new(network: Network, group: BlockGroup) -> bool:
    return has_own_mode(group) or bool(newly_checkpointed(network, group))


CONDITIONS: tuple[tuple[str, _Doubts], ...] = (
    (
        "the block keeps running statistics (recomputation updates them twice), `forward` assigns to `self`, "
        "or the block defines the flag or `training` itself, or an `__init_subclass__` that does not call "
        "its base's, or a metaclass sees its bases",
        _of_blocks(block_doubts),
    ),
    (
        "a block that was not recomputed before returns a dict, a list or an output class, or a detached "
        "tensor or a mask behind the hidden states, changes its arguments in place, changes something "
        "outside of itself, keeps something in a part that others read, needs gradients to be recorded in "
        "its forward pass, or draws random numbers that torch does not restore",
        _of_new(_of_blocks(recomputation_doubts)),
    ),
    ("hooks or recorded router outputs take tensors out of such a block", _of_new(recorded_doubts)),
    (
        "the file may run with a release that has no such class (before transformers 4.52), or with one that "
        "does not disable a cache that a call passes; `--target-version` selects the releases",
        lambda network, group: release_doubts(
            network, newly_checkpointed(network, group), loses_branch=bool(group.branches)
        ),
    ),
    (
        "nothing states which releases the file runs with, and it imports what the installed one does not "
        "have",
        lambda network, _: import_doubts(network),
    ),
    (
        "a legacy branch also checkpoints in evaluation mode, may choose `use_reentrant=False` where the "
        "base class does not (before transformers 5.0), does not surely call torch's checkpoint function or "
        "the one that the library sets, or its two calls differ in more than a cache",
        branch_doubts,
    ),
    ("classes that are not blocks share the base that has to change", shared_bases),
    (
        "the layers of a legacy branch may be in another mode than what runs them, or not get its flag: code "
        "puts parts of a model into evaluation mode, makes layers when checkpointing may already be enabled, "
        "puts others in their place or beside them, or has its own way to find parts",
        mode_doubts,
    ),
    ("blocks are compiled when they are made", compiled_doubts),
    ("the `forward` of a block is replaced", lambda network, group: patch_doubts(network, group.blocks)),
    (
        "other code than the methods of models, such as a function or a script, passes a block an activation "
        "by keyword, or a cache by position",
        lambda network, group: outside_doubts(network, group.blocks),
    ),
)
"""What makes it unsafe that blocks become checkpointing layers, and what finds it."""

_UNKNOWN: tuple[tuple[str, _Doubts], ...] = (
    (
        "without its cache, which the base class takes away, the block computes something else, or the code "
        "that runs it does, or that is not known, or another layer or run may have written to the same slot, "
        "or code names `_can_checkpoint_with_cache`, which leaves it the cache",
        group_doubts,
    ),
    (
        "it is not known what all that `forward` runs changes, keeps or reads: a function of another "
        "package, or an attribute that someone else sets, or it returns more than the hidden states, through "
        "an operation whose derivative may be infinite",
        _of_new(_of_blocks(unknown_doubts)),
    ),
    (
        "a class of another file, or one that a function makes, inherits from the block, and it is not known "
        "that it can be recomputed as well",
        subclass_doubts,
    ),
    (
        "something that such a block may run is replaced or hooked into, in its file or in one that belongs "
        "to it",
        _of_new(lambda network, group: replaced_doubts(network, group.blocks)),
    ),
    (
        "it is not known whether tensors inside of something that such a block gets require grad",
        _of_new(lambda network, group: container_doubts(network, group.blocks)),
    ),
    (
        "a file that is not given passes a block by keyword what may require grad",
        lambda network, group: passing_doubts(network, group.blocks) if has_users_not_given(network) else (),
    ),
    (
        "the code around such a block changes in place what it was given or holds, gives that to something "
        "unknown, changes settings that it is run with, reads a cache that it fills, or asks for what "
        "becomes different in a checkpointing layer; it runs the block in a context manager of its own, in a "
        "`try`, or inside of a transform, or compiles it as one graph; or it passes it an iterator, a "
        "function around a gradient, or nothing that requires grad",
        _of_new(lambda network, group: surrounding_doubts(network, group.blocks)),
    ),
    (
        "code in its file, or in one that belongs to it, may ask what a class or a function is: it names the "
        "base class otherwise than as a base, or looks at bases, at what a function wraps, or the like",
        lambda network, group: asking_doubts(network, group.blocks),
    ),
)
"""The same of what takes the most work to find; it is looked for only if nothing else is in doubt."""


_OF_RECOMPUTED: tuple[_Doubts, ...] = (
    _of_blocks(block_doubts),
    _of_blocks(recomputation_doubts),
    recorded_doubts,
    compiled_doubts,
    lambda network, group: outside_doubts(network, group.blocks),
)
"""What is asked of blocks that start to be recomputed without becoming layers, since they are layers."""

_OF_REPEATED: tuple[_Doubts, ...] = (
    _of_blocks(recomputation_doubts),
    _of_blocks(unknown_doubts),
    lambda network, group: replaced_doubts(network, group.blocks),
    lambda network, group: container_doubts(network, group.blocks),
    lambda network, group: surrounding_doubts(network, group.blocks),
)
"""What is asked of blocks that are done once more, whatever does that."""

_UNKNOWN_OF_RECOMPUTED: tuple[_Doubts, ...] = (group_doubts, *_OF_REPEATED[1:])
"""The same of what takes the most work to find; it is looked for only if nothing else is in doubt."""


def recomputed_doubts(network: Network, layers: Collection[ClassInfo]) -> list[str]:
    """Return why it may do harm that checkpointing layers are recomputed which were not enabled before.

    Args:
        network: a file that defines or runs them.
        layers: the layers.
    """
    group = BlockGroup(dict.fromkeys(layers))
    doubts = [doubt for find in _OF_RECOMPUTED for doubt in find(network, group)]
    doubts += filter(None, (leftover(network, layers, ()), obstacle_in_caches(network, group)))
    return doubts or [doubt for find in _UNKNOWN_OF_RECOMPUTED for doubt in find(network, group)]


def repeated_doubts(network: Network, blocks: Collection[ClassInfo]) -> list[str]:
    """Return what is not the same, or not known to be, if blocks that are no layers are done once more.

    Args:
        network: a file that runs them.
        blocks: the blocks.
    """
    group = BlockGroup(dict.fromkeys(blocks))
    return [doubt for find in _OF_REPEATED for doubt in find(network, group)] if blocks else []


def conditions() -> str:
    """Return what makes a fix unsafe as a list for a rule's page."""
    every = (*CONDITIONS, ("a call site would still be wrong afterwards", None), *_UNKNOWN)
    return "".join(f"- {words}{'.' if words is every[-1][0] else ';'}\n" for words, _ in every)


def _problem(network: Network, group: BlockGroup) -> str | None:
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


# -- the fix


def layers_to_be(network: Network) -> frozenset[ClassInfo]:
    """Return the blocks of a file that a fix makes checkpointing layers."""
    return frozenset(info for info, remedy in remedies(network).items() if isinstance(remedy, Fix))


@remembered
def remedies(network: Network) -> dict[ClassInfo, Fix | Refusal]:
    """Return for each unprotected block of a file its fix, or why there is none."""
    return {block.info: protect(network, block) for block in network.unprotected_blocks}


def protect(network: Network, block: UnprotectedBlock, done: frozenset[Path] = frozenset()) -> Fix | Refusal:
    """Return the fix that makes a block a checkpointing layer, or why there is none.

    Args:
        network: the file that defines or runs the block.
        block: the block.
        done: other files, whose part of the same fix is made already.
    """
    group = too_old(network) or _allowed_group(network, block)
    if isinstance(group, Refusal):
        return group
    elsewhere = fixes_elsewhere(network, group, done, protect)
    if isinstance(elsewhere, Refusal):
        return elsewhere
    bases = _base_edits(network, group)
    if isinstance(bases, Refusal):
        return bases
    calls = _repaired_calls(network, group)
    sites = sites_of(network, group)
    overrides = removed_overrides(sites)
    doubts = [doubt for _, find in CONDITIONS for doubt in find(network, group)]
    doubts += [*elsewhere.doubts, *switch_doubts(network.project, sites)]
    doubts += [doubt for override in overrides for doubt in override_doubts(override)]
    doubts += calls.doubts
    if not doubts and _is_new(network, group):
        calls = _repaired_calls(network, group, losing_gradients(network, group.blocks))
        doubts += calls.doubts
    doubts = doubts or [doubt for _, find in _UNKNOWN for doubt in find(network, group)]
    doubts = doubts or [doubt for override in overrides for doubt in computed_doubts(override)]
    inside = {site for branch in group.branches.values() for site in branch.plain}
    edits = [*elsewhere.edits, *_branch_edits(network, group, calls, overrides), *bases]
    edits += [edit for site, own in calls.edits.items() if site not in inside for edit in own]
    evidence = [*elsewhere.evidence, *calls.evidence]
    evidence += [f"a run showed that `{block.info.name}` is stacked"] if block.is_seen else []
    repairs = (*elsewhere.repairs, *_repairs(group, calls))
    derived = f"Derive {listed_code(info.name for info in group.blocks)} from `{CHECKPOINTING_BASE}`"
    return Fix(
        "; ".join(
            [
                derived,
                *(_said(network, each) for each in repairs if each.part is not RepairKind.BLOCK),
                *(f"remove `{each.model.name}.{LIBRARY_SWITCH}`" for each in overrides),
            ]
        ),
        tuple(dict.fromkeys(edits)),
        applicability(doubts, evidence),
        "; ".join(dict.fromkeys([*doubts, *evidence])) or None,
        repairs,
    )


def _said(network: Network, repair: Repair) -> str:
    """Return what a fix does to a call or a branch, in words."""
    file = network.project.file(repair.path)
    where = "" if file is network.file else f" of {file.path.name}"
    row = f"line {file.position(repair.start).row}{where}"
    return f"replace the branch on {row} by its plain call" if not repair.what else f"{repair.what} on {row}"


def _allowed_group(network: Network, block: UnprotectedBlock) -> BlockGroup | Refusal:
    """Return what has to be converted together with a block, or what forbids that."""
    problem = switch_obstacle(network, block.sites)
    if problem is not None:
        return Refusal(problem)
    group = group_of(network, block)
    problem = None if isinstance(group, Refusal) else _problem(network, group)
    return group if problem is None else Refusal(problem)


def _repairs(group: BlockGroup, calls: _Calls) -> Iterator[Repair]:
    """Yield what the fix of a group puts right in its own file, and the blocks whose bases are elsewhere."""
    for info in group.blocks:
        yield Repair(RepairKind.BLOCK, info.file.path, info.definition.header, info.definition.end)
    for branch in group.branches.values():
        yield Repair(RepairKind.BRANCH, branch.file.path, *branch.span)
    for site in calls.edits:
        path = site.scope.module.file.path
        yield Repair(RepairKind.CALL, path, *site.span(site.call), calls.moves[site])


# -- base classes


def _base_edits(network: Network, group: BlockGroup) -> list[Edit] | Refusal:
    """Return the edits that change the base classes and add the import."""
    edits: list[Edit] = []
    for root in (root_of(info) for info in group.blocks):
        if root.file is not network.file:
            continue
        base = _module_base(root)
        if base is None:
            return Refusal(f"`{root.name}` has no base `nn.Module` of its own to replace")
        edits.append(Edit(root.file.path, *root.file.places.span(base), CHECKPOINTING_BASE))
    row = other_meaning(network.module) if edits else None
    if row is not None:
        return Refusal(f"`{CHECKPOINTING_BASE}` is something else in this file, by what stands on line {row}")
    if not edits or network.guards_base_class:
        return edits
    assert network.checkpointing_module is not None
    return edits + list(import_checkpointing_base(network.file, network.checkpointing_module, edits))


def _module_base(root: ClassInfo) -> ast.expr | None:
    node = root.definition.node
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        name = dotted_name(base) or ""
        if any(getattr(value, "name", None) == "torch.nn.Module" for value in root.module.resolve(name)):
            return base
    return None


# -- calls and branches


@dataclass
class _Calls:
    """The repairs of the plain run sites."""

    edits: dict[RunSite, tuple[Edit, ...]] = field(default_factory=dict)
    moves: dict[RunSite, str] = field(default_factory=dict)
    """What the edits do, in words."""
    doubts: list[str] = field(default_factory=list)
    """About those that have no safe one."""
    evidence: list[str] = field(default_factory=list)
    """What they rest on that only a run has seen."""


def _repaired_calls(
    network: Network, group: BlockGroup, losing: Mapping[int, Collection[str]] = _NONE_LOSING
) -> _Calls:
    """Return the repairs of the plain run sites of a group.

    Args:
        network: the file that runs the blocks.
        group: the blocks.
        losing: what may get something that requires grad by keyword, by the line of the call.
    """
    found, left = _Calls(), dict(losing)
    for site in sites_of(network, group):
        row, _ = site.rows
        names = left.pop(row, ())
        if not (site.checkpointed or site.function is not None or untrained(site) is not None):
            _repair(network, group, site, names, found)
    for row, names in left.items():
        found.doubts += map(partial(losing_doubt, row), sorted(names))
    for site in _inside_of_others(found.edits):
        found.doubts.append(
            f"the call on line {site.rows[0]}, inside of another one, has to be repaired by hand"
        )
        found.edits.pop(site)
    return found


def _inside_of_others(sites: Iterable[RunSite]) -> list[RunSite]:
    """Return the calls that stand in the arguments of other ones."""
    placed = [((site.scope.module.file.path, *site.span(site.call)), site) for site in sites]
    inside: list[RunSite] = []
    around: list[tuple[Path, int, int]] = []
    for place, site in sorted(placed, key=lambda each: (each[0][0], each[0][1], -each[0][2])):
        path, start, end = place
        while around and (around[-1][0] != path or around[-1][2] < end):
            around.pop()
        # What is called may be a call itself, and begins where this one does.
        inside += [site] if around and around[0][1] < start else []
        around.append(place)
    return inside


def losing_doubt(row: int, name: str, *, is_new: bool = False) -> str:
    """Return what is in doubt about an argument that stays a keyword in a row, or becomes one."""
    what = f"`{name}` is" if name else "arguments of unknown names are"
    when = "then" if is_new else "still"
    return (
        f"{what} {when} passed by keyword on line {row}, where reentrant checkpointing gives no gradient, so "
        "check that nothing of it requires grad"
    )


def _repair(
    network: Network, group: BlockGroup, site: RunSite, losing: Collection[str], found: _Calls
) -> None:
    """Add the repair of a plain run site, if it needs one, and what is in doubt about it."""
    row, _ = site.rows
    if site.calls_forward:
        found.doubts.append(
            f"the call on line {row} calls `forward` directly, which only transformers 5.23 and later "
            "recompute"
        )
    found.evidence += seen_blocks(site, group.blocks)
    bindings: list[SiteBinding] = []
    for info in (each for each in site.blocks if each in group.blocks or each.is_checkpointing):
        binding = bind_site(site, info, network.gradients)
        if binding is None:
            found.doubts.append(f"the arguments of the call on line {row} cannot be matched to `forward`")
            return
        bindings.append(binding.with_uncertain(losing))
    bound_to = {name for binding in bindings for name in binding.names}
    found.doubts += [losing_doubt(row, name) for name in sorted(losing) if name not in bound_to]
    found.doubts += nested_doubts(row, bindings)
    if not any(binding.is_to_be_repaired() for binding in bindings):
        return
    repaired = repaired_call(network, site, bindings)
    if isinstance(repaired, Refusal):
        found.doubts.append(f"the call on line {row} has to be repaired by hand: {repaired.reason}")
    else:
        found.edits[site] = repaired.edits
        found.moves[site] = f"pass {moves(bindings)}"
        found.doubts += [f"in the call on line {row}, {doubt}" for doubt in repaired.doubts]
        found.doubts += repaired.outside_doubts
        found.evidence += repaired.evidence


def nested_doubts(row: int, bindings: Iterable[SiteBinding]) -> Iterator[str]:
    """Yield which activations the call in a row passes inside of something, where no repair of it helps."""
    for bound in (each for binding in bindings for each in binding.nested_activations()):
        yield (
            f"the call on line {row} passes activations inside `{bound.name}`, so they receive no gradient "
            "under reentrant checkpointing"
        )


def moves(bindings: Sequence[SiteBinding]) -> str:
    """Return what a call has to pass otherwise, and how, in words."""
    ways = {
        "by keyword": [bound for each in bindings for bound in each.positional_caches()],
        "by position": [bound for each in bindings for bound in each.to_be_positional()],
    }
    named = {
        way: listed_code(dict.fromkeys(each.name for each in found)) for way, found in ways.items() if found
    }
    return " and ".join(f"{names} {way}" for way, names in named.items())


def _branch_edits(
    network: Network, group: BlockGroup, calls: _Calls, overrides: Iterable[OldOverride]
) -> list[Edit]:
    """Return the edits that take legacy branches and old overrides away, and what only they used."""
    edits: list[Edit] = []
    names: set[str] = set()
    functions: dict[Definition, None] = {}
    for branch in group.branches.values():
        edits.append(
            replacement(branch, [edit for site in branch.plain for edit in calls.edits.get(site, ())])
        )
        names |= removed_names(branch)
        functions.update(dict.fromkeys(unused_helpers(branch)))
    edits += remove_functions(network.file, functions)
    for override in overrides:
        edits.append(remove_override(override))
        functions.update({override.method: None} if override.model.file is network.file else {})
    names |= dotted_names(functions)
    return [*edits, *drop_unused_imports(network.project, network.file, names, edits)]
