"""Finds the code that ``forward`` runs, apart from its parts: own methods, functions, methods of objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gclint.network.evaluation.classes import ClassInfo, remembered
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Bound, ClassValue, Function, Instance
from gclint.network.evaluation.walk import FUNCTIONS, arguments, dotted_name

_MOST = 60
"""How many functions are followed at most; real blocks run fewer."""


@dataclass(frozen=True, eq=False)
class Code:
    """The body of a function that ``forward`` runs."""

    scope: Scope

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the body."""
        return () if self.scope.body is None else self.scope.body.nodes

    @property
    def calls(self) -> Iterator[ast.Call]:
        """The calls in the body."""
        return (node for node in self.nodes if isinstance(node, ast.Call))


@remembered
def reached(info: ClassInfo) -> tuple[Code, ...]:
    """Return the code that the ``forward`` of a class runs, without the ``forward`` of its parts."""
    forward = info.method_scope("forward")
    found: list[Code] = []
    waiting = [] if forward is None else [forward]
    seen: set[object] = {_identity(each) for each in waiting}
    while waiting and len(found) < _MOST:
        code = Code(waiting.pop())
        found.append(code)
        for call in code.calls:
            for scope in _entered(info, code.scope, call):
                if _identity(scope) not in seen:
                    seen.add(_identity(scope))
                    waiting.append(scope)
    return tuple(found)


def _identity(scope: Scope) -> object:
    """Return a value that is equal for two scopes of the same code."""
    body = scope.body
    if body is None:
        return scope
    if body.definition is not None:
        return body.definition
    return next(iter(body.roots), scope)


def _entered(info: ClassInfo, scope: Scope, call: ast.Call) -> Iterator[Scope]:
    """Yield the scopes of the functions that a call may enter, except the ``forward`` of modules."""
    func = call.func
    if isinstance(func, ast.Name):
        for value in scope.evaluate(func):
            if isinstance(value, Function) and isinstance(value.node, FUNCTIONS):
                yield scope.enter(value, arguments(call))
    elif isinstance(func, ast.Attribute):
        name = func.attr
        if scope.owner is info and name != "forward" and _is_super(func.value):
            yield from _inherited(info, scope, name)
            return
        if scope.owner is info and name != "forward" and _is_self(scope, func.value):
            method = info.method_scope(name)
            if method is not None:
                yield method
            return
        for value in scope.evaluate(func.value):
            if isinstance(value, ClassValue | Instance) and name not in ("forward", "__call__"):
                method = value.info.method_scope(name)
                if method is not None:
                    yield method


def _is_super(holder: ast.expr) -> bool:
    return isinstance(holder, ast.Call) and dotted_name(holder.func) == "super"


def _is_self(scope: Scope, holder: ast.expr) -> bool:
    return scope.self_name is not None and dotted_name(holder) == scope.self_name


def _inherited(info: ClassInfo, scope: Scope, name: str) -> Iterator[Scope]:
    """Yield the scope of the method that ``super()`` finds behind the class whose code it stands in."""
    definition = None if scope.body is None else scope.body.definition
    inside = [each for each in info.mro if any(method is definition for method in each.methods())]
    behind = info.mro[info.mro.index(inside[0]) + 1 :] if inside else info.mro
    for each in behind:
        method = each.definition.method(name)
        if method is not None:
            yield info.scope(method, each.module)
            return


def is_known_method(scope: Scope, func: ast.expr) -> bool:
    """Return whether a call enters a method whose code is available."""
    return any(isinstance(value, (Bound, Function)) for value in scope.evaluate(func))
