"""What a block's new base class means for whatever enables checkpointing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from gclint.codemod.computed import computed_uses
from gclint.codemod.removal import remove_functions
from gclint.finding import Edit
from gclint.network.construction import flag_settings
from gclint.network.evaluation.classes import CHECKPOINTING_BASE
from gclint.network.model import Network
from gclint.network.outside import LIBRARY_SWITCH
from gclint.network.override import OldOverride, old_overrides
from gclint.network.runsite import RunSite
from gclint.network.support import models_running
from gclint.network.switch import other_switch, switch_doubts
from gclint.network.switch_uses import uses_of


@dataclass(frozen=True)
class SwitchChanges:
    """What has to change about the switch, together with a block."""

    overrides: tuple[OldOverride, ...]
    """Which go, since the library has to set the flags."""
    doubts: tuple[str, ...]


def switch_obstacle(network: Network, sites: Sequence[RunSite]) -> str | None:
    """Return why blocks would not be enabled any more as checkpointing layers; None where they would.

    Args:
        network: the file.
        sites: the calls that run the blocks.
    """
    for override in _overrides(sites):
        if override.named is None:
            return f"{override.description}, and does more than that"
    switch = other_switch(network.project, sites)
    if switch is None:
        return None
    return (
        f"{switch.seen_from(network.file)}; a `{CHECKPOINTING_BASE}` would not be enabled that way, so "
        f"nothing would be recomputed; {switch.advice}"
    )


def switch_changes(network: Network, sites: Sequence[RunSite]) -> SwitchChanges:
    """Return what goes when blocks become checkpointing layers: overrides of the old interface."""
    overrides = _overrides(sites)
    doubts = [*switch_doubts(sites), *(doubt for each in overrides for doubt in override_doubts(each))]
    return SwitchChanges(overrides, tuple(doubts))


def remove_override(override: OldOverride) -> Edit:
    """Return the edit that takes an override away, so that the library sets the flags."""
    (edit,) = remove_functions(override.model.file, (override.method,))
    return edit


def override_doubts(override: OldOverride) -> list[str]:
    """Return what would change with an override that goes, besides the layers' flags."""
    others = list(override.unnamed())
    doubts = []
    if others:
        doubts.append(
            f"without the override of `{override.model.name}`, which does not name {others[0]}, "
            f"{others[0]} would be enabled as well"
        )
    doubts += [_used(override, place) for place in islice(uses_of(override), 1)]
    doubts += [
        f"only the override of `{override.model.name}` gives `{info.name}` a flag"
        for info in override.named or ()
        if not any(setting.is_librarys for setting in flag_settings(info))
    ]
    return doubts


def computed_doubts(override: OldOverride) -> list[str]:
    """Return where an override may be used by a name that is put together.

    What reads attributes by names has to be followed for this, so ask only if nothing else is in doubt.
    """
    return [_used(override, place) for place in islice(computed_uses(override), 1)]


def _used(override: OldOverride, place: str) -> str:
    return f"`{LIBRARY_SWITCH}` is used on {place}, where that of `{override.model.name}` may be meant"


def _overrides(sites: Sequence[RunSite]) -> tuple[OldOverride, ...]:
    owners = dict.fromkeys(site.owner for site in sites)
    return old_overrides(model for owner in owners for model in models_running(owner))
