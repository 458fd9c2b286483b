"""Finds where gradients originate (parameters, modules with parameters) and where none are recorded."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from gclint.network.assignments import stops_gradients
from gclint.network.differentiable import is_learned_module
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Bound, ExternalInstance, Function, Instance, Value
from gclint.network.evaluation.walk import dotted_name
from gclint.network.traits import is_learned
from gclint.source.outline import Definition
from gclint.source.tokens import code_tokens

_UNRECORDED = re.compile(r"@[ \t]*(?:torch\.)?(?:no_grad|inference_mode)\b")
"""Matches a decorator with which a function records no gradients."""


def is_learned_value(value: Value) -> bool:
    """Return whether a value is a module that has parameters, itself or in its parts."""
    if isinstance(value, Instance):
        return value.info.is_module and is_learned(value.info)
    return isinstance(value, ExternalInstance) and is_learned_module(value.name)


def is_frozen(scope: Scope, node: cst.Attribute) -> bool:
    """Return whether a parameter of the object is created with ``requires_grad=False``."""
    owner = scope.owner
    if owner is None or dotted_name(node.value) != scope.self_name:
        return False
    for base in owner.mro:
        method = base.definition.method("__init__")
        if method is not None:
            init = owner.scope(method, base.module)
            for binding in init.bindings(f"{init.self_name}.{node.attr.value}"):
                if isinstance(binding.value, cst.Call) and any(map(_forbids_gradient, binding.value.args)):
                    return True
    return False


def is_unrecorded(called: Bound | Function) -> bool:
    """Return whether a decorator keeps a function from recording gradients."""
    if isinstance(called, Function):
        return isinstance(called.node, cst.FunctionDef) and any(
            stops_gradients(each.decorator) for each in called.node.decorators
        )
    found = called.instance.info.find_method(called.method)
    if found is None:
        return False
    return is_decorated_unrecorded(found[1])


def is_decorated_unrecorded(definition: Definition) -> bool:
    """Return whether a decorator in the source keeps a function from recording gradients."""
    return _UNRECORDED.search(definition.outline.code, definition.start, definition.header) is not None


def _forbids_gradient(arg: cst.Arg) -> bool:
    return (
        arg.keyword is not None and arg.keyword.value == "requires_grad" and dotted_name(arg.value) == "False"
    )


def is_buffer(scope: Scope, node: cst.CSTNode) -> bool:
    """Return whether an expression is an attribute of the object that is registered as a buffer."""
    if scope.owner is None or not isinstance(node, cst.Attribute):
        return False
    if dotted_name(node.value) != scope.self_name:
        return False
    name = re.escape(node.attr.value)
    registered = re.compile(rf"\bregister_buffer \( (?:name = )?([\"']){name}\1")
    return any(map(registered.search, _codes_with_buffers(scope.owner, node.attr.value)))


def is_constant_buffer(scope: Scope, node: cst.Attribute) -> bool:
    """Return whether an attribute of the object is a buffer that is never changed."""
    if scope.owner is None or not is_buffer(scope, node):
        return False
    name = re.escape(node.attr.value)
    changed = re.compile(rf"\. {name} (?:\[[^\]]*\] )*(?:[-+*/@]?= |\. \w+_ \()")
    return not any(map(changed.search, _codes_with_buffers(scope.owner, node.attr.value)))


def _codes_with_buffers(owner: ClassInfo, attribute: str) -> Iterator[str]:
    """Yield the code, on one line, of a class and its bases that use an attribute, if any have buffers."""
    texts = [base.text for base in owner.mro if attribute in base.text]
    # Most register none, and tokenizing takes time.
    if any("register_buffer" in text for text in texts):
        yield from (" ".join(code_tokens(text)) for text in texts)
