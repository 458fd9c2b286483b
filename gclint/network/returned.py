"""Blocks that return a tuple, and loops that pass all of it on to the next block without unpacking it."""

from __future__ import annotations

import ast

from gclint.code.remembered import remembered
from gclint.code.walk import alternatives, dotted_name, names_in, walk
from gclint.network.binding import BoundArgument
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.runsite import RunSite


@remembered
def returns_tuples(info: ClassInfo) -> bool:
    """Return whether ``forward`` always returns a tuple."""
    scope = info.method_scope("forward")
    if scope is None:
        return False
    returned = [node.value for node in scope.body.own_nodes if isinstance(node, ast.Return)]
    return bool(returned) and all(value is not None and _is_tuple(scope, value) for value in returned)


def _is_tuple(scope: Scope, value: ast.expr, known: dict[str, bool] | None = None) -> bool:
    """Return whether an expression is a tuple; ``known`` says it of names, to which many ways may lead."""
    known = {} if known is None else known
    if isinstance(value, ast.Tuple):
        return True
    ways = alternatives(value)
    if ways:
        return all(_is_tuple(scope, each, known) for each in ways)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        # Only a tuple can be added to a tuple.
        return _is_tuple(scope, value.left, known) or _is_tuple(scope, value.right, known)
    if isinstance(value, ast.Name) and not scope.parameters.has(value.id):
        if value.id not in known:
            known[value.id] = True  # Its other bindings show whether this is added to a tuple.
            bindings = scope.bindings(value.id)
            known[value.id] = bool(bindings) and all(
                not (binding.iterated or binding.added or binding.path)
                and _is_tuple(scope, binding.value, known)
                for binding in bindings
            )
        return known[value.id]
    return False


def is_whole_output(site: RunSite, block: ClassInfo, bound: BoundArgument) -> bool:
    """Return whether a block receives the whole tuple of the previous block: ``states = layer(states)``."""
    if not bound.name or not may_be_whole_output(site, bound.arg.value):
        return False
    return returns_tuples(block) and any(
        _unpacks(node, bound.name) for base in block.mro for node in base.nodes
    )


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
