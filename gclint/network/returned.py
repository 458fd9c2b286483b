"""Finds out whether a block's ``forward`` returns a tensor, a tuple or another container."""

from __future__ import annotations

import re

import libcst as cst

from gclint.model import known
from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import ClassValue, External
from gclint.network.evaluation.walk import code, dotted_name, walk_scope

_BUILT = {"dict": "a dict", "OrderedDict": "a dict", "collections.OrderedDict": "a dict", "list": "a list"}
_OUTPUT = re.compile(r"(?:Output\w*|SimpleNamespace|UserDict|TensorDict)$")


@remembered
def returns_tuples(info: ClassInfo) -> bool:
    """Return whether ``forward`` always returns a tuple."""
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


def _is_tuple(scope: Scope, value: cst.BaseExpression, known: dict[str, bool] | None = None) -> bool:
    """Return whether an expression is a tuple; ``known`` says it of names, to which many ways may lead."""
    known = {} if known is None else known
    if isinstance(value, cst.Tuple):
        return True
    if isinstance(value, cst.IfExp):
        return _is_tuple(scope, value.body, known) and _is_tuple(scope, value.orelse, known)
    if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        # Only a tuple can be added to a tuple.
        return _is_tuple(scope, value.left, known) or _is_tuple(scope, value.right, known)
    if isinstance(value, cst.Name) and not scope.parameters.has(value.value):
        if value.value not in known:
            known[value.value] = True  # Its other bindings show whether this is added to a tuple.
            bindings = list(scope.bindings(value.value))
            known[value.value] = bool(bindings) and all(
                not (binding.iterated or binding.added or binding.path)
                and _is_tuple(scope, binding.value, known)
                for binding in bindings
            )
        return known[value.value]
    return False


@remembered
def returned_container(info: ClassInfo) -> str | None:
    """Describe the container that ``forward`` returns, if reentrant checkpointing does not look inside it."""
    return _container_of_method(info, "forward", set())


def _container_of_method(info: ClassInfo, name: str, seen: set[object]) -> str | None:
    found = info.find_method(name)
    if found is None or found[1] in seen:
        return None
    scope = info.scope(found[1], found[0].module)
    seen.add(found[1])
    containers = (_container(scope, value, seen) for _, value in scope.returns())
    return next(filter(None, containers), None)


def _container(scope: Scope, value: cst.BaseExpression, seen: set[object]) -> str | None:
    """Describe an expression that is neither a tensor nor a tuple of them; None if it may be one.

    What was ``seen`` before, on whatever way, is none: the first one that is found is the answer.
    """
    if isinstance(value, (cst.Dict, cst.DictComp)):
        return "a dict"
    if isinstance(value, (cst.List, cst.ListComp)):
        return "a list"
    if isinstance(value, cst.IfExp):
        return _container(scope, value.body, seen) or _container(scope, value.orelse, seen)
    if isinstance(value, cst.Tuple):
        return _container_in_tuple(scope, value, seen)
    if isinstance(value, cst.Name):
        return _container_of_name(scope, value.value, seen)
    return _container_of_call(scope, value, seen) if isinstance(value, cst.Call) else None


def _container_in_tuple(scope: Scope, value: cst.Tuple, seen: set[object]) -> str | None:
    first, *others = (element.value for element in value.elements) if value.elements else (None,)
    if isinstance(first, (cst.Tuple, cst.List, cst.Dict)):
        return "a nested tuple"
    for other in others:
        # After the first item there may be caches, which need no gradient.
        if known.CACHED.search(code(other)) is None:
            inner = (
                "a tuple"
                if isinstance(other, cst.Tuple) and other.elements
                else _container(scope, other, seen)
            )
            if inner is not None:
                return f"{inner} inside a tuple"
    return None


def _container_of_name(scope: Scope, name: str, seen: set[object]) -> str | None:
    if (scope, name) in seen or scope.parameters.has(name):
        return None
    seen.add((scope, name))
    values = [each.value for each in scope.bindings(name) if not (each.added or each.iterated or each.path)]
    # The name may be a list that is converted to a tuple at the end.
    if any(_is_tuple(scope, value) or _makes_tuple(value) for value in values):
        return None
    return next(filter(None, (_container(scope, value, seen) for value in values)), None)


def _container_of_call(scope: Scope, call: cst.Call, seen: set[object]) -> str | None:
    name = dotted_name(call.func)
    if name in _BUILT:
        return _BUILT[name]
    if isinstance(call.func, cst.Attribute) and scope.owner is not None:
        holder = call.func.value
        is_super = isinstance(holder, cst.Call) and dotted_name(holder.func) == "super"
        if is_super:
            bases = scope.owner.mro[1:]
            found = (_container_of_method(each, call.func.attr.value, seen) for each in bases)
            return next(filter(None, found), None)
        if dotted_name(holder) == scope.self_name:
            return _container_of_method(scope.owner, call.func.attr.value, seen)
    for made in scope.evaluate(call.func):
        if isinstance(made, ClassValue) and not made.info.is_module:
            return f"a `{made.info.name}`"
        if isinstance(made, External) and _OUTPUT.search(made.name) is not None:
            return f"a `{made.name.rpartition('.')[2]}`"
    return None


def _makes_tuple(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and dotted_name(value.func) == "tuple"
