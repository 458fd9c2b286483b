"""What becomes otherwise when the base class takes its cache away from a block, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gclint.code.paths import shown
from gclint.code.walk import last_name, text_of, walk
from gclint.edit.group import BlockGroup, sites_of
from gclint.edit.replaced import files_around, is_machinery
from gclint.edit.surroundings import emptied_doubts
from gclint.model.numbering import unnumbered
from gclint.model.objects import TooLong
from gclint.network.cacheless.comparison import CacheDifference, difference, slots_used
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.importers import words_in
from gclint.network.model import Network
from gclint.network.outside import KEEPING
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
        yield from site_doubts(info, [site for site in sites if info in site.blocks])
        yield from _kept(network, info)


def cache_doubts(network: Network, site: RunSite) -> Iterator[str]:
    """Yield what the blocks of a call do otherwise if it lets the base class take their cache away."""
    for info in site.blocks:
        yield from site_doubts(info, (site,))
        yield from _kept(network, info)
    yield from emptied_doubts(network, site.blocks)


def site_doubts(info: ClassInfo, sites: Sequence[RunSite]) -> Iterator[str]:
    """Yield what a block does otherwise, or the code that runs it, when its cache is taken away."""
    found = difference(info, sites)
    if found is not None:
        yield f"checkpointing takes the cache away from `{info.name}`, and {_WORDS[found]}"
        return
    try:
        slots = sorted(slots_used(info))
    except (TooLong, RecursionError):
        yield f"checkpointing takes the cache away from `{info.name}`, and {_WORDS[CacheDifference.UNKNOWN]}"
        return
    for owner in dict.fromkeys(site.owner for site in sites if slots):
        for path in unnumbered(owner.module.library.project, owner.file, owner.name, info.name, slots):
            slot = ".".join(("self", *path))
            yield (
                f"`{info.name}` may find in its cache what another layer has put there, which "
                f"checkpointing takes away: `{slot}` may not be another number in each layer"
            )


def _kept(network: Network, info: ClassInfo) -> Iterator[str]:
    """Yield what may let a block keep its cache, with releases from 5.23 on."""
    files = dict.fromkeys((*files_around(network), *(base.file for base in info.mro)))
    own = {node for base in info.mro for node in base.nodes if last_name(node) == KEEPING}
    for file in files:
        if KEEPING not in words_in(file) or is_machinery(network.project, file) or file.tree is None:
            continue
        for node in walk(file.tree.module):
            # What stands in the body of another class is its own.
            if node in own or text_of(node) == KEEPING or getattr(node, "attr", "") == KEEPING:
                row = getattr(node, "lineno", 0)
                where = f"line {row} of {shown(file.path)}"
                yield f"`{info.name}` may keep its cache while it checkpoints: {where} names `{KEEPING}`"
                return
