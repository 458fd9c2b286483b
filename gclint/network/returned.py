"""Finds out whether a block's ``forward`` always returns a tuple."""

from __future__ import annotations

import ast

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.source.remembered import remembered


@remembered
def returns_tuples(info: ClassInfo) -> bool:
    """Return whether ``forward`` always returns a tuple."""
    scope = info.method_scope("forward")
    if scope is None or scope.body is None:
        return False
    returned = [node.value for node in scope.body.own_nodes if isinstance(node, ast.Return)]
    return bool(returned) and all(value is not None and _is_tuple(scope, value) for value in returned)


def _is_tuple(scope: Scope, value: ast.expr, known: dict[str, bool] | None = None) -> bool:
    """Return whether an expression is a tuple; ``known`` says it of names, to which many ways may lead."""
    known = {} if known is None else known
    if isinstance(value, ast.Tuple):
        return True
    if isinstance(value, ast.IfExp):
        return _is_tuple(scope, value.body, known) and _is_tuple(scope, value.orelse, known)
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
