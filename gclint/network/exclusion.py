"""The reasons why a class need not become a checkpointing layer."""

from __future__ import annotations

from enum import Enum

from gclint.network.caches import fills_cache, requires_cache
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.runsite import RunSite
from gclint.network.support import is_run_by_a_model, supports_checkpointing
from gclint.network.traits import is_named_as_mixer, mixes_sequence
from gclint.network.untrained import Untrained, untrained


class Exclusion(Enum):
    """A reason to leave a class as it is; ``{block}``, ``{owner}`` and ``{cache}`` are replaced by names."""

    LAYER = f"`{{block}}` is already a `{CHECKPOINTING_BASE}`"
    UNKNOWN_BASE = "a base of `{block}` could not be found, and may be a checkpointing layer"
    MODEL = "`{block}` is itself a model, and this call is not in a loop"
    NOT_FED_BACK = (
        "the output of `{block}` is not its next input in the loop: it is one of several heads, projections "
        "or pyramid levels, not a decoder or encoder layer"
    )
    NOT_IN_A_LOOP = (
        "no `for` or `while` loop around the call feeds the output of `{block}` to its next call, so it is "
        "not a decoder or encoder layer"
    )
    NO_MIXER = (
        "`{block}` has no token mixer: neither it nor its parts look like attention, a recurrence or a state "
        "space, so recomputing it saves little"
    )
    MIXER = "by its name, `{block}` is a token mixer, not the layer around one"
    UNRECORDED = Untrained.UNRECORDED.value
    EVALUATING = Untrained.EVALUATING.value
    FILLS_CACHE = "`{owner}` creates the cache for `{block}` whatever `use_cache` says, so training needs it"
    NEEDS_CACHE = "`{block}` unpacks or reads `{cache}` without checking for None, so training needs it"
    WITHIN_BLOCK = "`{owner}`, which runs `{block}`, is itself a recomputed block, or part of one"
    HOLDS_LAYERS = "`{block}` is a stage, whose own layers are checkpointed"
    NO_MODEL = "no model was found that contains `{owner}`, which runs `{block}`"
    NO_SUPPORT = (
        "no model that contains `{owner}` sets `supports_gradient_checkpointing = True`, so "
        "`gradient_checkpointing_enable()` raises"
    )
    NO_BASE_CLASS = f"the release of transformers that this file belongs to has no `{CHECKPOINTING_BASE}` yet"

    def of(self, info: ClassInfo, site: RunSite | None) -> str:
        """Return the reason as text, for a class and the call site that runs it."""
        owner = info.name if site is None else site.owner.name
        cache = requires_cache(info) if self is Exclusion.NEEDS_CACHE else None
        text: str = self.value
        return text.format(block=info.name, owner=owner, cache=cache)


def disqualified(info: ClassInfo, site: RunSite) -> Exclusion | None:
    """Return why a class needs no change, independent of its call sites."""
    if info.is_checkpointing:
        return Exclusion.LAYER
    if not info.resolved:
        return Exclusion.UNKNOWN_BASE
    # A model that another one calls once is not a block, but one that a loop runs may be.
    return Exclusion.MODEL if info.is_model and not site.loops else None


def outside_of_trunks(info: ClassInfo, site: RunSite) -> Exclusion | None:
    """Return why a call does not run a class as a block of a trunk, as far as the code shows."""
    if not site.is_trunk:
        return Exclusion.NOT_FED_BACK if site.loops else Exclusion.NOT_IN_A_LOOP
    if not mixes_sequence(info):
        return Exclusion.NO_MIXER
    return Exclusion.MIXER if is_named_as_mixer(info) else None


def needs_no_layer(info: ClassInfo, site: RunSite) -> Exclusion | None:
    """Return why a class that a plain call runs is not a block of a trunk, or is correct as it is."""
    outside = outside_of_trunks(info, site)
    if outside is not None and info not in site.left_out:
        return outside
    idle = untrained(site)
    if idle is not None:
        return Exclusion(idle.value)
    # A block that must fill a cache in training cannot be recomputed, so it must not be checkpointed.
    if fills_cache(site, info):
        return Exclusion.FILLS_CACHE
    return None if requires_cache(info) is None else Exclusion.NEEDS_CACHE


def without_model(site: RunSite) -> Exclusion | None:
    """Return why no model that supports checkpointing runs the block at a call site; None if one does.

    A model supports checkpointing if it declares that, or makes a checkpointed call.
    """
    if site.checkpointed:
        return None if is_run_by_a_model(site.owner) else Exclusion.NO_MODEL
    # A run only sees calls in models that support checkpointing.
    if site.left_out or supports_checkpointing(site.owner):
        return None
    return Exclusion.NO_SUPPORT if is_run_by_a_model(site.owner) else Exclusion.NO_MODEL
