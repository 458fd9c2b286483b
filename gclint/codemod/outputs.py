"""What a model takes out of a block's output, and the base class keeps the block from returning."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from gclint.network.binding import bind
from gclint.network.caches import is_off
from gclint.network.evaluation.classes import CHECKPOINTING_BASE, ClassInfo
from gclint.network.runsite import RunSite
from gclint.network.traits import forward_nodes
from gclint.source.walk import dotted_name, is_constant, walk
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
                row = site.scope.module.file.position(site.span(read)[0]).row
                yield (
                    f"`{site.owner.name}` reads on line {row} what `{info.name}` only returns if "
                    f"`{USE_CACHE}` is True, and `{CHECKPOINTING_BASE}` sets it to False while checkpointing"
                )
                break


def _read_with_cache(site: RunSite, info: ClassInfo) -> ast.AST | None:
    """Return what is read of the output only if the flag that the call passes is True, if anything."""
    if info.signature is None or site.scope.body is None or not _returns_more_with_cache(info):
        return None
    bound, output = bind(site.args, info.signature).argument(USE_CACHE), _name_of_output(site)
    if bound is None:
        return None
    if is_constant(bound.arg.value, True):
        return _unpacking(site) or _later_item(site.scope.body.nodes, output)
    flag = None if is_off(site, bound.arg.value) else dotted_name(bound.arg.value)
    if flag is None or output is None:
        return None
    for node in site.scope.body.nodes:
        if isinstance(node, (ast.If, ast.IfExp)) and _asks_for(node.test, flag):
            taken = node.body if isinstance(node, ast.If) else [node.body]
            found = _later_item((each for part in taken for each in walk(part)), output)
            if found is not None:
                return found
    return None


def _later_item(nodes: Iterable[ast.AST], output: str | None) -> ast.AST | None:
    return next((each for each in nodes if output is not None and _is_later_item(each, output)), None)


def _targets(site: RunSite) -> list[ast.expr]:
    """Return what the whole output is assigned to."""
    statement = site.statement
    return statement.targets if isinstance(statement, ast.Assign) and statement.value is site.call else []


def _unpacking(site: RunSite) -> ast.AST | None:
    """Return the names that the output is unpacked into."""
    return next((each for each in _targets(site)[:1] if isinstance(each, (ast.Tuple, ast.List))), None)


def _name_of_output(site: RunSite) -> str | None:
    """Return the variable that the whole output is assigned to."""
    return next((each.id for each in _targets(site) if isinstance(each, ast.Name)), None)


def _returns_more_with_cache(info: ClassInfo) -> bool:
    return any(
        isinstance(node, (ast.If, ast.IfExp)) and _asks_for(node.test, USE_CACHE)
        for node in forward_nodes(info)
    )


def _asks_for(test: ast.expr, flag: str) -> bool:
    """Return whether a test reads a flag, be it the configuration's of that name."""
    return any(
        dotted_name(each) == flag or (isinstance(each, ast.Attribute) and each.attr == flag)
        for each in walk(test)
    )


def _is_later_item(node: ast.AST, output: str) -> bool:
    """Return whether a node reads an item of the output other than its first."""
    return (
        isinstance(node, ast.Subscript)
        and dotted_name(node.value) == output
        and not isinstance(node.slice, (ast.Slice, ast.Tuple))
        and not is_constant(node.slice, 0)
    )
