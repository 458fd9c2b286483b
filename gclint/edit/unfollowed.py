"""The parts of an expression that the evaluation does not follow, where it follows others."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.code.walk import alternatives, arguments
from gclint.network.evaluation.body import NameBinding
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import ClassValue, EvaluatedExternal

_PARTIAL = "functools.partial"
_LISTS = (ast.List, ast.Tuple)


def unfollowed(
    scope: Scope, node: ast.expr, seen: frozenset[NameBinding] = frozenset()
) -> Iterator[ast.expr]:
    """Yield what an expression may be of which nothing is known, or which gets arguments of its own.

    The items of what a loop runs over are not asked for: who puts them there is.
    """
    parts = _parts(scope, node)
    if isinstance(node, ast.Call) and not scope.evaluate(node):
        yield node
    elif parts is not None:
        for each in parts:
            yield from unfollowed(scope, each, seen)
        return
    home = _home(scope, node)
    ways = home.reaching(node.id, node) or home.bindings(node.id) if isinstance(node, ast.Name) else ()
    bindings = [each for each in ways if isinstance(each, NameBinding) and not each.added]
    if not bindings and not isinstance(node, ast.Constant) and not scope.evaluate(node):
        yield node
    for binding in bindings:
        value, path = binding.unpacked
        if not (binding.iterated or path or binding in seen):
            yield from unfollowed(home, value, seen | {binding})
    if isinstance(node, ast.Call) and _binds_more(scope, node):
        yield node


def _parts(scope: Scope, node: ast.expr) -> list[ast.expr] | None:
    """Return the expressions one of which an expression is, or is made by; None for any other."""
    ways = alternatives(node)
    if ways:
        return ways
    if isinstance(node, _LISTS):
        return [*node.elts]
    if isinstance(node, ast.BinOp) and any(isinstance(each, _LISTS) for each in (node.left, node.right)):
        return [each for each in (node.left, node.right) if isinstance(each, _LISTS)]
    # The class of an object may be one of several.
    func = node.func if isinstance(node, ast.Call) else None
    is_local = isinstance(func, ast.Name) and _home(scope, func).binds(func.id)
    return [func] if func is not None and is_local and scope.evaluate(func) else None


def _home(scope: Scope, node: ast.expr) -> Scope:
    """Return the function around a place that binds a name; for any other expression, the scope."""
    while isinstance(node, ast.Name) and scope.parent is not None and not scope.binds(node.id):
        scope = scope.parent
    return scope


def _binds_more(scope: Scope, call: ast.Call) -> bool:
    """Return whether a ``partial`` of something else than a class passes arguments by position."""
    values, given = scope.evaluate(call.func), arguments(call)
    is_partial = any(isinstance(each, EvaluatedExternal) and each.name == _PARTIAL for each in values)
    if not is_partial or len(given) < 2 or given[1].keyword is not None:
        return False
    return not all(isinstance(each, ClassValue) for each in scope.evaluate(given[0].value))
