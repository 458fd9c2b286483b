"""Where gradients begin, and where none are recorded: parameters, buffers, modules that learn, decorators."""

from __future__ import annotations

import re

import libcst as cst

from gclint.network.assignments import stops_gradients
from gclint.network.differentiable import is_learned_module
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import Bound, ExternalInstance, Function, Instance, Value
from gclint.network.evaluation.walk import dotted_name
from gclint.network.traits import is_learned
from gclint.source.tokens import code_tokens

_UNRECORDED = re.compile(r"@[ \t]*(?:torch\.)?(?:no_grad|inference_mode)\b")
"""A decorator of a function in which no gradients are recorded."""


def is_learned_value(value: Value) -> bool:
    """Tell whether a value is a module with parameters of its own, or of its parts."""
    if isinstance(value, Instance):
        return value.info.is_module and is_learned(value.info)
    return isinstance(value, ExternalInstance) and is_learned_module(value.name)


def is_frozen(scope: Scope, node: cst.Attribute) -> bool:
    """Tell whether an own parameter is made with ``requires_grad=False``."""
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
    """Tell whether no gradients are recorded in a function, by a decorator."""
    if isinstance(called, Function):
        return isinstance(called.node, cst.FunctionDef) and any(
            stops_gradients(each.decorator) for each in called.node.decorators
        )
    found = called.instance.info.find_method(called.method)
    if found is None:
        return False
    definition = found[1]
    return _UNRECORDED.search(definition.outline.code, definition.start, definition.header) is not None


def _forbids_gradient(arg: cst.Arg) -> bool:
    return (
        arg.keyword is not None and arg.keyword.value == "requires_grad" and dotted_name(arg.value) == "False"
    )


def is_buffer(scope: Scope, node: cst.Attribute) -> bool:
    """Tell whether an own attribute is registered as a buffer, and is nowhere given another value."""
    if scope.owner is None or dotted_name(node.value) != scope.self_name:
        return False
    texts = [base.text for base in scope.owner.mro if node.attr.value in base.text]
    if not any("register_buffer" in text for text in texts):
        return False  # The rule, and reading tokens takes its time.
    name = re.escape(node.attr.value)
    registered = re.compile(rf"\bregister_buffer \( (?:name = )?([\"']){name}\1")
    changed = re.compile(rf"\. {name} (?:\[[^\]]*\] )*(?:[-+*/@]?= |\. \w+_ \()")
    codes = [" ".join(code_tokens(text)) for text in texts]
    return any(map(registered.search, codes)) and not any(map(changed.search, codes))
