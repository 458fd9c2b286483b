"""Finds out whether a block's ``forward`` returns a tensor, a tuple or another container."""

from __future__ import annotations

import ast
import re

from gclint.model import known
from gclint.network.evaluation.body import unstarred
from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import ClassValue, External
from gclint.network.evaluation.walk import dotted_name
from gclint.network.words import words_in

_BUILT = {"dict": "a dict", "OrderedDict": "a dict", "collections.OrderedDict": "a dict", "list": "a list"}
_OUTPUT = re.compile(r"(?:Output\w*|SimpleNamespace|UserDict|TensorDict)$")


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
    containers = (_container(scope, value, seen) for value in scope.returns())
    return next(filter(None, containers), None)


def _container(scope: Scope, value: ast.expr, seen: set[object]) -> str | None:
    """Describe an expression that is neither a tensor nor a tuple of them; None if it may be one.

    What was ``seen`` before, on whatever way, is none: the first one that is found is the answer.
    """
    if isinstance(value, (ast.Dict, ast.DictComp)):
        return "a dict"
    if isinstance(value, (ast.List, ast.ListComp)):
        return "a list"
    if isinstance(value, ast.IfExp):
        return _container(scope, value.body, seen) or _container(scope, value.orelse, seen)
    if isinstance(value, ast.Tuple):
        return _container_in_tuple(scope, value, seen)
    if isinstance(value, ast.Name):
        return _container_of_name(scope, value.id, seen)
    return _container_of_call(scope, value, seen) if isinstance(value, ast.Call) else None


def _container_in_tuple(scope: Scope, value: ast.Tuple, seen: set[object]) -> str | None:
    first, *others = map(unstarred, value.elts) if value.elts else (None,)
    if isinstance(first, (ast.Tuple, ast.List, ast.Dict)):
        return "a nested tuple"
    for other in others:
        # After the first item there may be caches, which need no gradient.
        if not any(map(known.CACHED.search, words_in(other))):
            inner = (
                "a tuple" if isinstance(other, ast.Tuple) and other.elts else _container(scope, other, seen)
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


def _container_of_call(scope: Scope, call: ast.Call, seen: set[object]) -> str | None:
    name = dotted_name(call.func)
    if name in _BUILT:
        return _BUILT[name]
    if isinstance(call.func, ast.Attribute) and scope.owner is not None:
        holder = call.func.value
        is_super = isinstance(holder, ast.Call) and dotted_name(holder.func) == "super"
        if is_super:
            bases = scope.owner.mro[1:]
            found = (_container_of_method(each, call.func.attr, seen) for each in bases)
            return next(filter(None, found), None)
        if dotted_name(holder) == scope.self_name:
            return _container_of_method(scope.owner, call.func.attr, seen)
    for made in scope.evaluate(call.func):
        if isinstance(made, ClassValue) and not made.info.is_module:
            return f"a `{made.info.name}`"
        if isinstance(made, External) and _OUTPUT.search(made.name) is not None:
            return f"a `{made.name.rpartition('.')[2]}`"
    return None


def _makes_tuple(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and dotted_name(value.func) == "tuple"
