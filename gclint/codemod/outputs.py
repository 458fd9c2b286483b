"""What a model takes out of a block's output, and the base class keeps the block from returning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from gclint.network.binding import bind
from gclint.network.caches import is_off
from gclint.network.evaluation.body import nodes_in
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.evaluation.walk import dotted_name, walk
from gclint.network.runsite import RunSite
from gclint.network.traits import forward_nodes
from gclint.verify.worker.vocabulary import USE_CACHE


def output_doubts(sites: Collection[RunSite], blocks: Collection[ClassInfo]) -> Iterator[str]:
    """Yield where a model reads from a block's output what the block only returns with a cache.

    The base class passes ``use_cache=False`` while checkpointing, whatever the model goes on to ask for.
    """
    for site in sites:
        if site.checkpointed:
            continue
        for info in site.blocks:
            if info in blocks and (read := _read_with_cache(site, info)) is not None:
                row = site.fragment.file.position(site.span(read)[0]).row
                yield (
                    f"`{site.owner.name}` reads on line {row} what `{info.name}` only returns if "
                    f"`{USE_CACHE}` is True, and `{CHECKPOINTING_BASE}` sets it to False while checkpointing"
                )
                break


def _read_with_cache(site: RunSite, info: ClassInfo) -> cst.CSTNode | None:
    """Return what is read of the output only if the flag that the call passes is True, if anything."""
    if not _returns_more_with_cache(info) or site.scope.body is None:
        return None
    flag, output = _passed_flag(site, info), _name_of_output(site)
    if flag == "True":
        return _unpacking(site) or _later_item(nodes_in(site.scope.body.pieces()), output)
    if flag is None or output is None:
        return None
    for node in nodes_in(site.scope.body.pieces_naming((output,))):
        if isinstance(node, (cst.If, cst.IfExp)) and any(
            dotted_name(each) == flag for each in walk(node.test)
        ):
            found = _later_item(walk(node.body), output)
            if found is not None:
                return found
    return None


def _later_item(nodes: Iterable[cst.CSTNode], output: str | None) -> cst.CSTNode | None:
    return next((each for each in nodes if output is not None and _is_later_item(each, output)), None)


def _targets(site: RunSite) -> list[cst.BaseAssignTargetExpression]:
    """Return what the whole output is assigned to."""
    for statement in () if site.statement is None else site.statement.body:
        if isinstance(statement, cst.Assign) and statement.value is site.call:
            return [each.target for each in statement.targets]
    return []


def _unpacking(site: RunSite) -> cst.CSTNode | None:
    """Return the names that the output is unpacked into."""
    return next((each for each in _targets(site)[:1] if isinstance(each, (cst.Tuple, cst.List))), None)


def _passed_flag(site: RunSite, info: ClassInfo) -> str | None:
    """Return the expression that says whether the block uses its cache; None if that is known to be off."""
    bound = None if info.signature is None else bind(site.args, info.signature).argument(USE_CACHE)
    if bound is not None and dotted_name(bound.arg.value) == "True":
        return "True"
    if bound is None or is_off(site, bound.arg.value):
        return None
    return dotted_name(bound.arg.value)


def _name_of_output(site: RunSite) -> str | None:
    """Return the variable that the whole output is assigned to."""
    return next((each.value for each in _targets(site) if isinstance(each, cst.Name)), None)


def _returns_more_with_cache(info: ClassInfo) -> bool:
    return any(
        isinstance(node, (cst.If, cst.IfExp))
        and any(dotted_name(each) == USE_CACHE for each in walk(node.test))
        for node in forward_nodes(info)
    )


def _is_later_item(node: cst.CSTNode, output: str) -> bool:
    """Return whether a node reads an item of the output other than its first."""
    if not isinstance(node, cst.Subscript) or dotted_name(node.value) != output or len(node.slice) != 1:
        return False
    index = node.slice[0].slice
    return isinstance(index, cst.Index) and not (
        isinstance(index.value, cst.Integer) and index.value.evaluated_value == 0
    )
