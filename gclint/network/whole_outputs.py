"""Tuples that a block returns, and the loop passes to the next block as they are."""

from __future__ import annotations

import libcst as cst

from gclint.network.binding import BoundArgument
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.walk import dotted_name, names_in, walk
from gclint.network.returned import returns_tuples
from gclint.network.runsite import RunSite
from gclint.network.traits import forward_nodes


def is_whole_output(site: RunSite, block: ClassInfo, bound: BoundArgument) -> bool:
    """Tell whether a block gets the tuple that the block before returns: ``states = layer(states)``."""
    if bound.parameter is None or not may_be_whole_output(site, bound.arg.value):
        return False
    name = bound.parameter.name
    return returns_tuples(block) and any(_takes_apart(node, name) for node in forward_nodes(block))


def may_be_whole_output(site: RunSite, value: cst.BaseExpression) -> bool:
    """Tell whether an argument is all that the call returned in the step of the loop before."""
    statement = None if site.statement is None else site.statement.body[-1]
    if not isinstance(statement, cst.Assign) or statement.value is not site.call:
        return False
    if not isinstance(value, cst.Name) or dotted_name(statement.targets[0].target) != value.value:
        return False
    if not any(map(returns_tuples, site.blocks)) or value.value not in site.stream:
        return False
    # It may be taken apart behind the call.
    others = (node for loop in site.loops[-1:] for node in walk(loop.body) if node is not statement)
    return not any(value.value in _names_made(node) for node in others)


def _names_made(node: cst.CSTNode) -> list[str]:
    """Return the names that an assignment gives a value."""
    targets: list[cst.CSTNode] = []
    if isinstance(node, cst.Assign):
        targets += (each.target for each in node.targets)
    elif isinstance(node, (cst.AnnAssign, cst.NamedExpr)):
        targets.append(node.target)
    return [name for target in targets for name in names_in(target)]


def _takes_apart(node: cst.CSTNode, name: str) -> bool:
    """Tell whether a statement unpacks a name, or takes an item of it."""
    if isinstance(node, cst.Assign):
        return dotted_name(node.value) == name and isinstance(node.targets[0].target, (cst.Tuple, cst.List))
    if not isinstance(node, cst.Subscript) or dotted_name(node.value) != name or len(node.slice) != 1:
        return False
    return isinstance(node.slice[0].slice, cst.Index) and isinstance(node.slice[0].slice.value, cst.Integer)
