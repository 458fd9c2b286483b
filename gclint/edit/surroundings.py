"""What blocks get from the code that runs them, and what that does, as far as it is not known to be right."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from gclint.code.paths import behind_line
from gclint.code.remembered import remembered
from gclint.edit.users import users
from gclint.model.received import Received, Records, records
from gclint.model.surroundings import Around, Block, Matter
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.model import Network
from gclint.network.runsite import RunSite
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

_WORDS: Mapping[Matter, str] = {
    Matter.CHANGED: (
        "`{what}` on {where} changes in place what blocks were given or hold, and recomputation sees what it "
        "has become"
    ),
    Matter.HANDED: (
        "`{what}` on {where} gets what blocks were given, and may change it before they are recomputed, since"
        " nothing is known of it"
    ),
    Matter.REMADE: "`{what}` on {where} may change what blocks do, since nothing is known of it",
    Matter.WITHIN: "the call on {where} is made in {what}, which recomputation is not in",
    Matter.CONSTANT: (
        "`{what}` on {where} may get nothing that requires grad, and reentrant checkpointing then gives the "
        "block no gradients"
    ),
    Matter.USED_UP: "`{what}` on {where} gets an iterator, of which recomputation finds nothing left",
    Matter.CAPTURED: (
        "`{what}` on {where} gets a function around values that require grad, which receive no gradient "
        "under reentrant checkpointing"
    ),
    Matter.DIFFERENTIATED: (
        "`{what}` on {where} runs a backward pass inside of the model, which reentrant checkpointing does "
        "not support"
    ),
    Matter.EMPTIED: (
        "`{what}` on {where} reads a cache after the blocks have run, and they put nothing into it while "
        "checkpointing"
    ),
    Matter.ONE_GRAPH: (
        "`{what}` on {where} compiles a block, or runs one that is compiled, as one graph (`fullgraph`), and "
        "reentrant checkpointing breaks that"
    ),
    Matter.FREED: (
        "`{what}` on {where} gets a tensor that requires no grad from a block, and reentrant checkpointing "
        "makes it require one"
    ),
    Matter.AMBIENT: (
        "`{what}` on {where} may change settings that blocks are run with, and they are recomputed later"
    ),
    Matter.ASKED: "`{what}` on {where} asks for what becomes different in a checkpointing layer",
}


def container_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where tensors go into blocks or come out of them in containers, where they get no gradient."""
    found = _records(network)
    yield from _incomplete(found, network)
    for each, info in _of(found, blocks):
        yield from _inside(each, info)
    if found.computes:
        yield (
            f"`{network.file.path.name}` computes with what a block returns inside of a tuple, which gets no "
            "gradient under reentrant checkpointing"
        )


def call_doubts(network: Network, site: RunSite, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where a call passes tensors inside of something, where they get no gradient.

    Args:
        network: the file.
        site: the call.
        blocks: what it runs.
    """
    found = _records(network)
    yield from _incomplete(found, network)
    place = site.scope.module.file, site.rows[0]
    for each, info in _of(found, blocks):
        if (each.file, each.row) == place:
            yield from _inside(each, info)
    for around in doubted_around(network, blocks):
        if around.matter is Matter.CAPTURED and (around.file, around.row) == place:
            yield _said(around, network)


def emptied_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where the code around blocks reads caches that they put nothing into while checkpointing."""
    yield from _incomplete(_records(network), network)
    for around in doubted_around(network, blocks):
        if around.matter is Matter.EMPTIED:
            yield _said(around, network)


def _argument(each: Received) -> str:
    return f"`{each.parameter}`" if each.parameter else "an argument of an unknown name"


def _inside(each: Received, info: ClassInfo) -> Iterator[str]:
    """Yield what is in doubt about a container that a block gets."""
    if each.parameter in CACHE_ARGUMENTS:
        return
    if each.holds_gradients:
        yield (
            f"{_argument(each)} of `{info.name}` may get tensors that require grad inside of something "
            f"on line {each.row}, where reentrant checkpointing gives no gradient to them"
        )
    elif each.is_mixed and each.is_pile:
        yield (
            f"{_argument(each)} of `{info.name}` gets tensors inside of something on line "
            f"{each.row}, and what requires grad is put into others in place"
        )


def losing_gradients(network: Network, blocks: Collection[ClassInfo]) -> dict[int, set[str]]:
    """Return what may get something that requires grad by keyword in a file, by the line of the call."""
    found: dict[int, set[str]] = {}
    for each in _requiring_grad(network, blocks):
        if each.is_by_keyword:
            found.setdefault(each.row, set()).add(each.parameter)
    return found


def requiring_grad(network: Network, site: RunSite, blocks: Collection[ClassInfo]) -> set[str]:
    """Return what may get something that requires grad from a call, by position or by keyword."""
    return {each.parameter for each in _requiring_grad(network, blocks) if each.row == site.rows[0]}


def _requiring_grad(network: Network, blocks: Collection[ClassInfo]) -> Iterator[Received]:
    for each, _ in _of(_records(network), blocks):
        if each.may_require_grad and each.file is network.file and each.parameter not in CACHE_ARGUMENTS:
            yield each


def passing_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield what files that are not looked at pass to blocks by keyword, and may require grad."""
    for each, info in _of(_records(network), blocks):
        is_seen = each.file is network.file or each.file.path in network.project.given
        if each.may_lose_gradient and not is_seen and each.parameter not in CACHE_ARGUMENTS:
            yield (
                f"{_argument(each)} is passed to `{info.name}` by keyword on line {each.row}"
                f"{behind_line(each.file.path, network.file.path)}, where reentrant checkpointing gives no "
                "gradient to it"
            )


def surrounding_doubts(network: Network, blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield what the code around blocks does that is not the same if they are recomputed."""
    about = doubted_around(network, blocks)
    # Where more is known to be the matter, that is said.
    known = {(each.file, each.row) for each in about if each.matter is not Matter.AMBIENT}
    about = [
        each for each in about if each.matter is not Matter.AMBIENT or (each.file, each.row) not in known
    ]
    about.sort(key=lambda each: (each.file is not network.file, str(each.file.path), each.row, each.what))
    # A statement may do the same in several ways.
    for each in {(one.matter, one.file, one.row): one for one in about}.values():
        yield _said(each, network)


def _said(each: Around, network: Network) -> str:
    where = f"line {each.row}{behind_line(each.file.path, network.file.path)}"
    return _WORDS[each.matter].format(what=each.what, where=where)


def is_followed(network: Network) -> bool:
    """Return whether all that the blocks of a file get was followed."""
    return _records(network).is_complete


def doubted_around(network: Network, blocks: Collection[ClassInfo]) -> list[Around]:
    """Return what the code around blocks does that is not known to be the same if they are recomputed."""
    found = _records(network).around
    return [
        each for each in found if not each.blocks or any(is_of(one, blocks, network) for one in each.blocks)
    ]


def is_of(block: Block, infos: Collection[ClassInfo], network: Network) -> bool:
    """Tell whether a class is one of some others, or a base or heir of one."""
    file, name = block
    info = network.library.module(file).classes.get(name)
    return info is None or any(each in info.mro or info in each.mro for each in infos)


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
    around = [each.file for each in users(network)]
    return records(network.project, [network.file, *around], tuple(blocks))
