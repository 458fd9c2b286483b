"""What a repair rests on that a run has seen and the text does not say."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gclint.finding import Applicability
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.runsite import RunSite


def seen_blocks(site: RunSite, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield what a run says of the blocks that a call runs, where the text does not."""
    for info in sorted(site.only_seen.intersection(blocks), key=lambda each: each.name):
        row, _ = site.rows
        yield f"a run showed that the call on line {row} runs `{info.name}`"


def applicability(doubts: Collection[str], evidence: Collection[str]) -> Applicability:
    """Return that of a fix which is doubtful for these reasons, and rests on this evidence."""
    if doubts:
        return Applicability.UNSAFE
    return Applicability.PROVABLE if evidence else Applicability.SAFE
