"""What becomes otherwise when the base class takes its cache away from a block, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gclint.code.file import SourceFile
from gclint.code.paths import behind_line, shown
from gclint.code.walk import last_name, text_of, walk
from gclint.edit.group import BlockGroup, sites_of
from gclint.edit.receivers import names_holding, put_elsewhere
from gclint.edit.replaced import files_around, is_machinery
from gclint.edit.surroundings import emptied_doubts
from gclint.edit.users import users
from gclint.model import known
from gclint.model.notes import quoted
from gclint.model.objects import TooLong
from gclint.model.patches import Patch, patches
from gclint.model.slots.numbering import unnumbered
from gclint.model.slots.passing import not_fresh
from gclint.network.cacheless.comparison import (
    CacheDifference,
    difference,
    sites_beside,
    slots_used,
    stacks_run,
)
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.importers import words_in
from gclint.network.model import Network
from gclint.network.outside import KEEPING
from gclint.network.runsite import RunSite

_CACHES = known.CACHES | known.CACHE_BASES
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
        within = [site for site in sites if info in site.blocks]
        yield from _taken_doubts(network, info, within)


def cache_doubts(network: Network, site: RunSite) -> Iterator[str]:
    """Yield what the blocks of a call do otherwise if it lets the base class take their cache away."""
    for info in site.blocks:
        yield from _taken_doubts(network, info, sites_beside(info, site, network.run_sites))
    yield from _subclass_doubts(network, site)
    yield from emptied_doubts(network, site.blocks)


def _subclass_doubts(network: Network, site: RunSite) -> Iterator[str]:
    """Yield what other blocks do without their cache that heirs in other files put into the stack."""
    names = names_holding(network, site.owner, site.blocks)
    elsewhere = (info for _, _, held in put_elsewhere(network, site.owner, names) for info in held)
    for info in dict.fromkeys(elsewhere):
        if info.is_checkpointing and info not in site.blocks:
            yield from site_doubts(info, [site])


def _taken_doubts(network: Network, info: ClassInfo, sites: Sequence[RunSite]) -> Iterator[str]:
    doubts = [*site_doubts(info, sites)]
    yield from doubts or _slot_doubts(network, info, sites)
    yield from _kept(network, info)


def site_doubts(info: ClassInfo, sites: Sequence[RunSite]) -> Iterator[str]:
    """Yield what a block does otherwise, or the code that runs it, when its cache is taken away.

    That is if each layer has a slot of its own in it, which a run shows.
    """
    found = difference(info, sites)
    if found is not None:
        yield f"checkpointing takes the cache away from `{info.name}`, and {_WORDS[found]}"


def _slot_doubts(network: Network, info: ClassInfo, sites: Sequence[RunSite]) -> Iterator[str]:
    """Yield where a layer may not have a slot of its own."""
    beside = dict.fromkeys(each for site in sites for each in site.blocks)
    try:
        slots = {each.name: slots_used(each) for each in beside}
        stacks = stacks_run(info, sites) if slots.get(info.name) else set()
    except (TooLong, RecursionError):
        yield f"checkpointing takes the cache away from `{info.name}`, and {_WORDS[CacheDifference.UNKNOWN]}"
        return
    around = (network.file, *(each.file for each in users(network)))
    files = [each for each in around if not is_machinery(network.project, each)]
    yield from _not_fresh(network, info, sites, files) if any(slots.values()) else ()
    for owner in dict.fromkeys(site.owner for site in sites if slots.get(info.name)):
        for block, path in unnumbered(network.project, files, owner.file, owner.name, stacks, slots):
            slot = f"`{'.'.join(('self', *path))}`" + ("" if block == info.name else f" of `{block}`")
            yield (
                f"`{info.name}` may find in its cache what another layer has put there, which checkpointing "
                f"takes away: {slot} may not be another number in each layer"
            )


def _not_fresh(
    network: Network, info: ClassInfo, sites: Sequence[RunSite], files: Sequence[SourceFile]
) -> Iterator[str]:
    """Yield where a cache may hold something when the blocks get it, be another one, or be read later."""
    calls = {site.call for site in network.run_sites}
    for file, node in not_fresh(files, {site.owner.name for site in sites}, calls):
        where = f"line {getattr(node, 'lineno', 0)}{behind_line(file.path, network.file.path)}"
        yield (
            f"`{quoted(node)}` on {where} may pass a cache that holds something, or read one after the "
            f"blocks of `{info.name}` have run, which put nothing into it while checkpointing"
        )
    for file in files:
        for each in patches(file):
            if isinstance(each, Patch) and not _CACHES.isdisjoint((each.full, each.full.rpartition(".")[0])):
                where = f"line {each.row}{behind_line(file.path, network.file.path)}"
                yield f"`{each.code}` on {where} may change what a cache gives back"


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
