"""What keeps a fix from being right under every release that a file may run with."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gclint.finding import Refusal
from gclint.network.caches import live_caches
from gclint.network.evaluation.classes import CHECKPOINTING_BASE
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.releases import FIRST_WITH_BASE_CLASS

_NEEDS = f"`{CHECKPOINTING_BASE}` needs transformers {FIRST_WITH_BASE_CLASS} or later"


def too_old(network: Network) -> Refusal | None:
    """Return why no block of a file can become a checkpointing layer, where no release has that class."""
    if network.releases.have_base_class:
        return None
    return Refusal(f"{_NEEDS}, but this code targets {network.releases}")


def release_doubts(network: Network, sites: Collection[RunSite], *, loses_branch: bool) -> Iterator[str]:
    """Yield why blocks that become checkpointing layers may not work under every release.

    Args:
        network: the file.
        sites: the plain calls of the blocks that no branch ran while checkpointing.
        loses_branch: whether something else checkpointed the blocks until now.
    """
    older = network.releases.without_base_class
    if older is not None and not network.guards_base_class:
        yield f"{_NEEDS}, but this code may run with {older}"
    elif older is not None and loses_branch:
        yield f"nothing would be recomputed with {older}, where there is no `{CHECKPOINTING_BASE}`"
    for site in sites:
        for name, arg in live_caches(site):
            which = network.releases.not_neutralising(name)
            if which is not None:
                row = network.file.position(site.span(arg)[0]).row
                yield (
                    f"the call on line {row} passes `{name}`, which checkpointing does not disable in {which}"
                )


def keyword_doubt(network: Network, names: Collection[str]) -> str | Refusal | None:
    """Return why caches that are passed by keyword under these ``names`` may stay on while checkpointing."""
    for name in names:
        which = network.releases.not_neutralising(name)
        if which is not None:
            reason = f"in {which}, checkpointing does not disable `{name}` even if it is passed by keyword"
            return reason if network.releases.neutralise_somewhere(name) else Refusal(reason)
    return None
