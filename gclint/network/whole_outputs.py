"""Tuples that a block returns and that the loop passes to the next block without unpacking them."""

from __future__ import annotations

import ast

from gclint.network.binding import BoundArgument
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.returned import returns_tuples
from gclint.network.runsite import RunSite
from gclint.network.traits import forward_nodes
from gclint.source.walk import dotted_name, names_in, walk


def is_whole_output(site: RunSite, block: ClassInfo, bound: BoundArgument) -> bool:
    """Return whether a block receives the whole tuple of the previous block: ``states = layer(states)``."""
    if bound.parameter is None or not may_be_whole_output(site, bound.arg.value):
        return False
    name = bound.parameter.name
    return returns_tuples(block) and any(_unpacks(node, name) for node in forward_nodes(block))


def may_be_whole_output(site: RunSite, value: ast.expr) -> bool:
    """Return whether an argument is the whole output of the call in the previous iteration."""
    statement = site.statement
    if not isinstance(statement, ast.Assign) or statement.value is not site.call:
        return False
    if not isinstance(value, ast.Name) or dotted_name(statement.targets[0]) != value.id:
        return False
    if not any(map(returns_tuples, site.blocks)) or value.id not in site.stream:
        return False
    # The loop may unpack it after the call.
    inside = (node for loop in site.loops[-1:] for each in loop.body for node in walk(each))
    return not any(value.id in _assigned_names(node) for node in inside if node is not statement)


def _assigned_names(node: ast.AST) -> list[str]:
    """Return the names to which a node assigns."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets += node.targets
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        targets.append(node.target)
    return [name for target in targets for name in names_in(target)]


def _unpacks(node: ast.AST, name: str) -> bool:
    """Return whether a node unpacks the variable ``name``, or reads an item of it."""
    if isinstance(node, ast.Assign):
        return dotted_name(node.value) == name and isinstance(node.targets[0], (ast.Tuple, ast.List))
    if not isinstance(node, ast.Subscript) or dotted_name(node.value) != name:
        return False
    return isinstance(node.slice, ast.Constant) and type(node.slice.value) is int
