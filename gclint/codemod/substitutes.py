"""Stacks that subclasses replace: a branch runs, and checkpoints, what all of them put there."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gclint.network.activation import bind_site
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.holders import held_classes
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.source.generated import is_modular
from gclint.source.paths import shown


def foreign_obstacle(network: Network, blocks: Collection[ClassInfo]) -> str | None:
    """Return what keeps blocks from being repaired that a loop in another file runs."""
    for site in network.foreign_sites:
        run = [info for info in site.blocks if info in blocks]
        if not run:
            continue
        file = site.scope.module.file
        where = f"on line {file.position(site.span(site.call)[0]).row} of {shown(file.path)}"
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
        names = [
            name
            for name in network.holding_attributes
            if not held_classes(owner.attribute(name)).isdisjoint(blocks)
        ]
        for heir in subclasses(network.project, owner):
            if heir.file is network.file or is_modular(heir.file.path):
                continue
            for name in names:
                held = held_classes(heir.attribute(name)) - held_classes(owner.attribute(name))
                left = sorted(
                    info.name
                    for info in held
                    if info.is_module and not info.is_checkpointing and info not in blocks
                )
                if left:
                    return (
                        f"`{heir.name}` in {shown(heir.file.path)} puts `{left[0]}` into `{name}`, "
                        "which only this branch checkpoints"
                    )
    return None
