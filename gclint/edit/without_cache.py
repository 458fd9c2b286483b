"""What becomes otherwise when the base class takes its cache away from a block, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gclint.edit.group import BlockGroup, sites_of
from gclint.network.cacheless.comparison import CacheDifference, difference
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.model import Network
from gclint.network.runsite import RunSite

_WORDS: Mapping[CacheDifference, str] = {
    CacheDifference.ERROR: (
        "the block, or the code around it, then raises an error that it does not raise now"
    ),
    CacheDifference.EFFECT: "the block, or the code around it, then does something else, or in another order",
    CacheDifference.RESULT: "the block, or the code around it, then computes something else",
    CacheDifference.UNKNOWN: "the block and the code around it are too long to follow what they then compute",
}


def group_doubts(network: Network, group: BlockGroup) -> Iterator[str]:
    """Yield what blocks that become checkpointing layers do without caches that they have now."""
    beside = {site for branch in group.branches.values() for site in branch.plain}
    sites = [site for site in sites_of(network, group) if site not in beside and site.function is None]
    for info in group.blocks:
        yield from site_doubts(info, (site for site in sites if info in site.blocks))


def site_doubts(info: ClassInfo, sites: Iterable[RunSite]) -> Iterator[str]:
    """Yield what a block does otherwise, or the code that runs it, when its cache is taken away."""
    found = difference(info, sites)
    if found is not None:
        yield f"checkpointing takes the cache away from `{info.name}`, and {_WORDS[found]}"
