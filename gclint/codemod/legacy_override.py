"""Removing an override of the library's old interface, with the blocks that it kept from being enabled."""

from __future__ import annotations

from collections.abc import Iterator

from gclint.codemod.imports import drop_unused_imports
from gclint.codemod.protect import remedies
from gclint.codemod.recomputed import recomputation_doubts, stores_on_self
from gclint.codemod.removal import dotted_names
from gclint.codemod.switching import computed_doubts, override_doubts, remove_override
from gclint.finding import Applicability, Fix, Refusal
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo, words_of
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.outside import CHECKPOINT_FUNCTION, LIBRARY_SWITCH
from gclint.network.override import OldOverride
from gclint.network.traits import statistics_class
from gclint.releases import FIRST_WITH_SWITCH
from gclint.source.lines import mentions


def without_override(network: Network, override: OldOverride) -> Fix | Refusal:
    """Return the fix that removes an override: that of a block of the model, or one of its own."""
    if override.named is None:
        return Refusal("the override does more than set the flag of some classes")
    removal = remove_override(override)
    together = [
        each for each in remedies(network).values() if isinstance(each, Fix) and removal in each.edits
    ]
    if together:
        return min(together, key=lambda fix: fix.applicability is Applicability.UNSAFE)
    names = dotted_names((override.method,))
    imports = drop_unused_imports(network.project, override.model.file, names, (removal,))
    doubts = [*override_doubts(override), *_doubts(network, override)] or computed_doubts(override)
    return Fix(
        f"Remove `{override.model.name}.{LIBRARY_SWITCH}`",
        (removal, *imports),
        Applicability.UNSAFE if doubts else Applicability.SAFE,
        "; ".join(doubts) or None,
    )


def _doubts(network: Network, override: OldOverride) -> Iterator[str]:
    if not _is_new(network) and network.releases.come_before(FIRST_WITH_SWITCH):
        yield f"before transformers {FIRST_WITH_SWITCH} the library does not set the flags itself"
    for layer in _layers(network, override):
        if statistics_class(layer) is not None:
            yield f"`{layer.name}` keeps running statistics, which recomputation updates twice"
        if stores_on_self(layer):
            yield f"`{layer.name}.forward` assigns to attributes of `self`, which recomputation repeats"
        yield from recomputation_doubts(layer)


def _is_new(network: Network) -> bool:
    """Return whether a file names what the library has got only together with its own switch, or later."""
    outline = network.file.outline
    names = (CHECKPOINTING_BASE, CHECKPOINT_FUNCTION)
    return outline.imported(CHECKPOINTING_BASE) is not None or any(
        mentions(each.text, name) and name in words_of(each)
        for each in outline.definitions
        if each.parent is None
        for name in names
    )


def _layers(network: Network, override: OldOverride) -> list[ClassInfo]:
    """Return the checkpointing layers of the models that have the override."""
    models = [override.model, *subclasses(network.project, override.model)]
    parts = {part for model in models for part in model.all_parts if part.is_checkpointing}
    return sorted(parts, key=lambda part: part.name)
