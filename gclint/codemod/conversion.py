"""The edits that make a group of blocks checkpointing layers: base class, legacy branches and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

from gclint.codemod.call import repair_call
from gclint.codemod.evidence import seen_blocks
from gclint.codemod.group import Group, root_of
from gclint.codemod.imports import drop_unused_imports, import_checkpointing_base
from gclint.codemod.receivers import onlooker_doubts, other_bindings, receiver_doubts
from gclint.codemod.removal import (
    dotted_names,
    remove_functions,
    removed_names,
    replacement,
    unused_helpers,
)
from gclint.codemod.switching import remove_override
from gclint.finding import Edit, Refusal
from gclint.network.activation import bind_site
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.model import Network
from gclint.network.override import OldOverride
from gclint.network.runsite import RunSite
from gclint.network.untrained import untrained
from gclint.source.file import SourceFile
from gclint.source.lines import mentions
from gclint.source.outline import Definition
from gclint.source.walk import dotted_name, walk


def base_edits(network: Network, group: Group) -> list[Edit] | Refusal:
    """Return the edits that change the base classes and add the import."""
    edits: list[Edit] = []
    for info in group.blocks:
        root = root_of(info)
        if root.file is not network.file:
            continue
        base = _module_base(root)
        if base is None:
            return Refusal(f"`{root.name}` has no base `nn.Module` of its own to replace")
        edits.append(Edit(root.file.path, *root.file.places.span(base), CHECKPOINTING_BASE))
    if all(root_of(info).file is not network.file for info in group.blocks):
        return edits
    if network.guards_base_class:
        return edits
    row = _other_of_that_name(network.file)
    if row is not None:
        return Refusal(f"`{CHECKPOINTING_BASE}` is something else in this file, by what stands on line {row}")
    assert network.checkpointing_module is not None
    return edits + list(import_checkpointing_base(network.file, network.checkpointing_module, edits))


def _other_of_that_name(file: SourceFile) -> int | None:
    """Return the row on which a file itself defines something under the name of the base class."""
    for statement in file.outline.imports:
        for item in statement.items:
            if item.alias == CHECKPOINTING_BASE != item.path:
                return file.position(statement.start).row
    if file.tree is None or not mentions(file.text, CHECKPOINTING_BASE):
        return None
    defining = next((node for node in walk(file.tree.module) if _binds_base(node)), None)
    return None if defining is None else file.position(file.places.start(defining)).row


def _binds_base(node: ast.AST) -> bool:
    """Return whether a node gives the name of the base class another meaning, and is no import."""
    if isinstance(node, ast.Name):
        return node.id == CHECKPOINTING_BASE and not isinstance(node.ctx, ast.Load)
    # A definition, the name behind `except … as`, or a pattern.
    return getattr(node, "name", None) == CHECKPOINTING_BASE and not isinstance(node, ast.alias)


def _module_base(root: ClassInfo) -> ast.expr | None:
    node = root.definition.node
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        name = dotted_name(base) or ""
        if any(getattr(value, "name", None) == "torch.nn.Module" for value in root.module.resolve(name)):
            return base
    return None


@dataclass
class SiteEdits:
    """The repairs of the plain run sites."""

    edits: dict[RunSite, tuple[Edit, ...]] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    """About those that have no safe one."""
    evidence: list[str] = field(default_factory=list)
    """What they rest on that only a run has seen."""


def site_edits(network: Network, group: Group) -> SiteEdits:
    """Return the repairs of the plain run sites of a group."""
    found = SiteEdits()
    repairs, doubts = found.edits, found.doubts
    for site in network.run_sites:
        blocks = [info for info in site.blocks if info in group.blocks or info.is_checkpointing]
        if site.checkpointed or site.function is not None or not any(info in group.blocks for info in blocks):
            continue
        if untrained(site) is not None:
            continue
        bindings = [bind_site(site, info, network.gradients) for info in blocks]
        row = network.file.position(site.span(site.call)[0]).row
        if isinstance(site.call.func, ast.Attribute) and site.call.func.attr == "forward":
            doubts.append(
                f"the call on line {row} calls `forward` directly, which only transformers 5.23 and later "
                "recompute"
            )
        found.evidence += seen_blocks(site, group.blocks)
        known = [binding for binding in bindings if binding is not None]
        if len(known) != len(bindings):
            doubts.append(f"the arguments of the call on line {row} cannot be matched to `forward`")
            continue
        doubts += [
            (
                f"the call on line {row} passes activations inside `{bound.parameter.name}`, so they "
                "receive no gradient under reentrant checkpointing"
            )
            for binding in known
            for bound in binding.nested_activations()
            if bound.parameter is not None
        ]
        if not any(binding.is_to_be_repaired() for binding in known):
            continue
        others = other_bindings(network, site, known)
        repaired = (
            others if isinstance(others, Refusal) else repair_call(network.file, site.call, known, others)
        )
        if isinstance(repaired, Refusal):
            doubts.append(f"the call on line {row} would still be wrong: {repaired.reason}")
        else:
            repairs[site] = repaired.edits
            doubts += [f"in the call on line {row}, {doubt}" for doubt in repaired.doubts]
            doubts += receiver_doubts(network, site)
            doubts += onlooker_doubts(site)
            found.evidence += repaired.evidence
    return found


def branch_edits(
    network: Network,
    group: Group,
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
    return [*edits, *drop_unused_imports(network.project, network.file, names, edits)]


def edits_outside(group: Group, sites: dict[RunSite, tuple[Edit, ...]]) -> Iterable[Edit]:
    """Yield the repairs of run sites that stand in no branch that goes."""
    inside = {site for branch in group.branches.values() for site in branch.plain}
    for site, edits in sites.items():
        if site not in inside:
            yield from edits
