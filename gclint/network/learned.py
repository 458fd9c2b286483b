"""Finds where gradients originate (parameters, modules with parameters) and where none are recorded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.code.outline import Definition
from gclint.code.walk import (
    FUNCTIONS,
    FunctionNode,
    arguments,
    dotted_name,
    is_constant,
    text_of,
)
from gclint.network.assignments import stops_gradients
from gclint.network.differentiable import is_learned_module
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import (
    EvaluatedFunction,
    EvaluatedMethod,
    ExternalInstance,
    Instance,
    Value,
)
from gclint.network.traits import is_learned


def is_learned_value(value: Value) -> bool:
    """Return whether a value is a module that has parameters, itself or in its parts."""
    if isinstance(value, Instance):
        return value.info.is_module and is_learned(value.info)
    return isinstance(value, ExternalInstance) and is_learned_module(value.name)


def is_frozen(scope: Scope, node: ast.Attribute) -> bool:
    """Return whether a parameter of the object is created with ``requires_grad=False``."""
    owner = scope.owner
    if owner is None or dotted_name(node.value) != scope.self_name:
        return False
    for base in owner.mro:
        method = base.definition.method("__init__")
        if method is not None:
            init = owner.scope(method, base.module)
            for binding in init.bindings(f"{init.self_name}.{node.attr}"):
                given = arguments(binding.value) if isinstance(binding.value, ast.Call) else ()
                if any(arg.keyword == "requires_grad" and is_constant(arg.value, False) for arg in given):
                    return True
    return False


def is_unrecorded(called: EvaluatedMethod | EvaluatedFunction) -> bool:
    """Return whether a decorator keeps a function from recording gradients."""
    if isinstance(called, EvaluatedFunction):
        return isinstance(called.node, FUNCTIONS) and _is_decorated(called.node)
    found = called.instance.info.find_method(called.method)
    return found is not None and is_decorated_unrecorded(found[1])


def is_decorated_unrecorded(definition: Definition) -> bool:
    """Return whether a decorator in the source keeps a function from recording gradients."""
    return _is_decorated(definition.function)


def _is_decorated(function: FunctionNode) -> bool:
    return any(map(stops_gradients, function.decorator_list))


def is_buffer(scope: Scope, node: ast.AST) -> bool:
    """Return whether an expression is an attribute of the object that is registered as a buffer."""
    if scope.owner is None or not isinstance(node, ast.Attribute):
        return False
    if dotted_name(node.value) != scope.self_name:
        return False
    return any(_registers(each, node.attr) for each in _nodes_with(scope.owner, node.attr))


def is_constant_buffer(scope: Scope, node: ast.Attribute) -> bool:
    """Return whether an attribute of the object is a buffer that is never changed."""
    if scope.owner is None or not is_buffer(scope, node):
        return False
    return not any(_changes(each, node.attr) for each in _nodes_with(scope.owner, node.attr))


def _nodes_with(owner: ClassInfo, attribute: str) -> Iterator[ast.AST]:
    """Yield the nodes of a class and its bases, of those whose code has an attribute, if any has buffers."""
    bases = [base for base in owner.mro if attribute in base.definition.text]
    # Most register none, and a walk takes time.
    if any("register_buffer" in base.definition.text for base in bases):
        for base in bases:
            yield from base.nodes


def _registers(node: ast.AST, name: str) -> bool:
    """Return whether a node registers a buffer under a name."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    given = (arg.value for arg in arguments(node) if arg.keyword in (None, "name"))
    return node.func.attr == "register_buffer" and any(text_of(each) == name for each in given)


def _changes(node: ast.AST, name: str) -> bool:
    """Return whether a node assigns to an attribute, or to items of it, or changes it in place."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr.endswith("_") and _is_of(node.func.value, name)
    is_target = isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)
    return is_target and _is_of(node, name)


def _is_of(node: ast.AST, name: str) -> bool:
    """Return whether an expression is an attribute of this name, or an item of it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute) and node.attr == name
