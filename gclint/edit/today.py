"""What recomputes the blocks that are not checkpointing layers today: a branch, another call, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gclint.code.remembered import remembered
from gclint.edit.leftover import leftover
from gclint.edit.receivers import names_holding
from gclint.network.checkpoints import calls_between
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.model import Network, UnprotectedBlock
from gclint.network.runsite import RunSite


class Way(Enum):
    """How a block is recomputed without the base class."""

    BRANCH = "a legacy branch"
    CALL = "an explicit checkpoint call"
    NONE = "nothing"


@dataclass(frozen=True)
class Today:
    """What recomputes a block today, and the call of the block that shows it."""

    way: Way
    site: RunSite


@remembered
def today(network: Network) -> dict[ClassInfo, Today]:
    """Return for each unprotected block of a file what recomputes it."""
    return {block.info: _today(network, block) for block in network.unprotected_blocks}


def _today(network: Network, block: UnprotectedBlock) -> Today:
    by_branch = {site.owner for site in block.sites if site.checkpointed}
    if not by_branch:
        is_called = leftover(network, (block.info,), ()) is not None or any(
            _calls_checkpoint(base)
            for site in block.sites
            for base in site.owner.mro
            if base.file is not network.file
        )
        return Today(Way.CALL if is_called else Way.NONE, block.sites[0])
    for site in block.sites:
        # Another class may have a stack of its own, and checkpoint nothing.
        if (
            site.owner not in by_branch
            and network.exclusion(block.info, site) is None
            and names_holding(network, site.owner, (block.info,))
            and not any(map(_calls_checkpoint, site.owner.mro))
        ):
            return Today(Way.NONE, site)
    return Today(Way.BRANCH, block.sites[0])


def _calls_checkpoint(info: ClassInfo) -> bool:
    """Return whether the code of a class calls a checkpoint function."""
    return any(True for _ in calls_between(info.module, info.definition.start, info.definition.end))
