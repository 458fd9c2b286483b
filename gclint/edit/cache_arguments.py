"""What calls of blocks pass as caches, and whether that may be something else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from gclint.code.file import SourceFile
from gclint.code.remembered import remembered
from gclint.code.walk import Arg
from gclint.edit.users import users
from gclint.model.cache_values import DROPPED
from gclint.model.caches import Doubt, doubts
from gclint.network.activation import is_constant
from gclint.network.binding import BoundArgument, bind
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.importers import importers, words_in
from gclint.network.index import subclasses
from gclint.network.model import Network
from gclint.network.runsite import RunSite

_LONGEST = 60


def no_cache(network: Network, site: RunSite, args: Iterable[Arg]) -> str | None:
    """Return what a call passes as a cache although it may be something else; None if there is nothing.

    Args:
        network: the file.
        site: the call site.
        args: the arguments that the base class would drop, or that may hold one.
    """
    for arg in args:
        if not is_constant(arg.value):
            doubt = _doubts(network).get(arg.value, Doubt(site.scope.module.file, arg.value))
            if doubt is not None:
                return _described(site, arg, doubt)
    return None


def dropped(bindings: Iterable[BoundArgument]) -> Iterator[Arg]:
    """Yield the arguments that a checkpointing layer drops once they are passed by their names."""
    for bound in bindings:
        if bound.arg.star == "**" or (bound.name or bound.arg.keyword) in DROPPED:
            yield bound.arg


def arguments(site: RunSite) -> Iterator[BoundArgument]:
    """Yield the arguments of a call as each of the blocks that it may run gets them."""
    for info in site.blocks:
        if info.signature is not None:
            yield from bind(site.written_args, info.signature).arguments


@remembered
def _doubts(network: Network) -> Mapping[ast.expr, Doubt | None]:
    """Return why the arguments of all calls of blocks may be something else than caches, if they may."""
    passed = [(site, arg) for site in network.run_sites for arg in _may_be_dropped(site)]
    owners = {site.owner: None for site, _ in passed}
    files = {each: None for info in owners for each in _users(network, info)} if passed else {}
    files.pop(network.file, None)
    return doubts(
        network.project,
        network.file,
        tuple(files),
        [arg.value for _, arg in passed],
        {
            site.call: [info.name for info in site.blocks]
            for site in network.run_sites
            if site.function is None
        },
        [info.name for info in owners],
    )


def _may_be_dropped(site: RunSite) -> Iterator[Arg]:
    named = (arg for arg in site.args if arg.keyword in DROPPED)
    yield from (arg for arg in (*dropped(arguments(site)), *named) if not is_constant(arg.value))


def _users(network: Network, info: ClassInfo) -> Iterator[SourceFile]:
    """Yield the files that may run methods of a class, in whatever way they import it."""
    yield from (each.file for each in importers(network.project, info))
    yield from (each.file for each in users(network) if info.name in words_in(each.file))
    yield from (each.file for each in subclasses(network.project, info))


def _described(site: RunSite, arg: Arg, doubt: Doubt) -> str:
    passed = f"`{arg.star}{_code(site.source(arg.value))}`"
    held = f"the caches in {passed}" if arg.star else passed
    what = (
        f"the base class sets {held} to None while checkpointing, and that may be something else than a cache"
    )
    if doubt.node is arg.value:
        return what
    row = doubt.node.lineno
    where = f"line {row}" if doubt.file is site.scope.module.file else f"line {row} of {doubt.file.path.name}"
    return f"{what}: it is not known what `{_code(doubt.file.source(doubt.node))}` on {where} is"


def _code(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
