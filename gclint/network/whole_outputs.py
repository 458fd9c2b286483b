"""Tuples that a block returns and that the loop passes to the next block without unpacking them."""

from __future__ import annotations

import libcst as cst

from gclint.network.binding import BoundArgument
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.walk import dotted_name, names_in, walk
from gclint.network.returned import returns_tuples
from gclint.network.runsite import RunSite
from gclint.network.traits import forward_nodes


def is_whole_output(site: RunSite, block: ClassInfo, bound: BoundArgument) -> bool:
    """Return whether a block receives the whole tuple of the previous block: ``states = layer(states)``."""
    if bound.parameter is None or not may_be_whole_output(site, bound.arg.value):
        return False
    name = bound.parameter.name
    return returns_tuples(block) and any(_unpacks(node, name) for node in forward_nodes(block))


def may_be_whole_output(site: RunSite, value: cst.BaseExpression) -> bool:
    """Return whether an argument is the whole output of the call in the previous iteration."""
    statement = None if site.statement is None else site.statement.body[-1]
    if not isinstance(statement, cst.Assign) or statement.value is not site.call:
        return False
    if not isinstance(value, cst.Name) or dotted_name(statement.targets[0].target) != value.value:
        return False
    if not any(map(returns_tuples, site.blocks)) or value.value not in site.stream:
        return False
    # The loop may unpack it after the call.
    others = (node for loop in site.loops[-1:] for node in walk(loop.body) if node is not statement)
    return not any(value.value in _assigned_names(node) for node in others)


def _assigned_names(node: cst.CSTNode) -> list[str]:
    """Return the names to which a node assigns."""
    targets: list[cst.CSTNode] = []
    if isinstance(node, cst.Assign):
        targets += (each.target for each in node.targets)
    elif isinstance(node, (cst.AnnAssign, cst.NamedExpr)):
        targets.append(node.target)
    return [name for target in targets for name in names_in(target)]


def _unpacks(node: cst.CSTNode, name: str) -> bool:
    """Return whether a node unpacks the variable ``name``, or reads an item of it."""
    if isinstance(node, cst.Assign):
        return dotted_name(node.value) == name and isinstance(node.targets[0].target, (cst.Tuple, cst.List))
    if not isinstance(node, cst.Subscript) or dotted_name(node.value) != name or len(node.slice) != 1:
        return False
    return isinstance(node.slice[0].slice, cst.Index) and isinstance(node.slice[0].slice.value, cst.Integer)
