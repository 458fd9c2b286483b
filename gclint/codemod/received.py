"""What blocks get from the code that runs them, as far as it is not known to be right."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gclint.model.received import Received, Records, records
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.model import Network
from gclint.source.remembered import remembered
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS


def container_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where tensors go into blocks or come out of them in containers, where they get no gradient."""
    found = _records(network)
    yield from _incomplete(found, network)
    for each, info in _of(found, blocks):
        if each.parameter not in CACHE_ARGUMENTS and each.holds_gradients:
            yield (
                f"`{each.parameter}` of `{info.name}` may get tensors that require grad inside of something "
                f"on line {each.row}, where reentrant checkpointing gives no gradient to them"
            )
        elif each.parameter not in CACHE_ARGUMENTS and each.is_mixed and each.is_pile:
            yield (
                f"`{each.parameter}` of `{info.name}` gets tensors inside of something on line "
                f"{each.row}, and what requires grad is put into others in place"
            )
    if found.computes:
        yield (
            f"`{network.file.path.name}` computes with what a block returns inside of a tuple, which gets no "
            "gradient under reentrant checkpointing"
        )


def around_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield."""
    for each in _records(network).around:
        if not each.blocks or any(one.name == info.name for one in each.blocks for info in blocks):
            yield f"{each.matter.value}: {each.what} on line {each.row} of {each.file.path.name}"


def _incomplete(found: Records, network: Network) -> Iterator[str]:
    if not found.is_complete:
        yield f"`{network.file.path.name}` is too long to follow all that its blocks get"


def _of(found: Records, blocks: Collection[ClassInfo]) -> Iterator[tuple[Received, ClassInfo]]:
    for info in blocks:
        family = {(each.file, each.name) for each in info.mro}
        for each in found.received:
            if each.block in family:
                yield each, info


@remembered
def _records(network: Network) -> Records:
    blocks = {
        (info.file, info.name): None
        for site in (*network.run_sites, *network.foreign_sites)
        for info in site.blocks
    }
    return records(network.project, [network.file], tuple(blocks))
