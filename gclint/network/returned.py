"""What a block's ``forward`` returns."""

from __future__ import annotations

import libcst as cst

from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.walk import walk_scope


@remembered
def returns_tuples(info: ClassInfo) -> bool:
    """Tell whether ``forward`` returns nothing but tuples."""
    scope = info.method_scope("forward")
    if scope is None or scope.body is None:
        return False
    returned = [
        node.value
        for piece in scope.body.pieces_naming(("return",))
        for root in piece.nodes or ()
        for node in (root, *walk_scope(root))
        if isinstance(node, cst.Return)
    ]
    return bool(returned) and all(value is not None and _is_tuple(scope, value) for value in returned)


def _is_tuple(scope: Scope, value: cst.BaseExpression, seen: frozenset[str] = frozenset()) -> bool:
    if isinstance(value, cst.Tuple):
        return True
    if isinstance(value, cst.IfExp):
        return _is_tuple(scope, value.body, seen) and _is_tuple(scope, value.orelse, seen)
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        # What is no tuple cannot be added to one.
        return _is_tuple(scope, value.left, seen) or _is_tuple(scope, value.right, seen)
    if isinstance(value, cst.Name) and not scope.parameters.has(value.value):
        if value.value in seen:
            return True  # What is added to a tuple, as all else that this name stands for shows.
        bindings = list(scope.bindings(value.value))
        return bool(bindings) and all(
            not (binding.iterated or binding.added or binding.path)
            and _is_tuple(scope, binding.value, seen | {value.value})
            for binding in bindings
        )
    return False
