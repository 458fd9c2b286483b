"""Where gradients originate (parameters, modules with parameters), and what hands them on or records none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gclint.code.names import names
from gclint.code.outline import Definition
from gclint.code.walk import (
    FUNCTIONS,
    FunctionNode,
    arguments,
    dotted_name,
    is_constant,
    text_of,
)
from gclint.model.tensors import UNDIFFERENTIABLE
from gclint.network.assignments import stops_gradients
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

PARAMETER = "torch.nn.Parameter"
"""The class of parameters."""
PARAMETERS = frozenset(("torch.nn.ParameterList", "torch.nn.ParameterDict"))
"""The containers of parameters."""
_MAKING = UNDIFFERENTIABLE | {"Generator", "Size", "device", "dtype", "finfo", "iinfo"}
"""Functions of torch whose results require no grad, whatever they get."""
_LEARNED = re.compile(
    r"^torch\.nn\.(?:Linear|Bilinear|Conv\w+|Embedding\w*|LSTM|GRU|RNN|LayerNorm|RMSNorm|GroupNorm|BatchNorm\w+"
    r"|MultiheadAttention)$"
)
_CONSTANT_BUILTINS = names("len range int float bool max min isinstance str hasattr any all type")
KEEPING_BUILTINS = names("tuple list reversed sorted iter")
"""Functions that return the items of their arguments."""
KEEPING_METHODS = names(
    """
    abs bfloat16 chunk clamp clone contiguous cos cuda double exp expand expand_as flatten flip
    float gather half index_select log masked_fill mean moveaxis movedim narrow neg norm permute pow
    relu repeat repeat_interleave reshape roll select sigmoid sin softmax sqrt squeeze sum swapaxes
    t tanh to transpose type type_as unbind unflatten unsqueeze view view_as
    """
)
"""Methods of tensors whose result requires grad if the tensor does."""
MIXING_METHODS = names("add add_ bmm div masked_scatter matmul mul mul_ sub where")
"""Methods of tensors whose result requires grad if the tensor or an argument does."""
SAME_ATTRIBUTES = names("T mT H mH real")
"""Attributes of a tensor that are the same tensor in another shape."""


def is_learned_module(name: str) -> bool:
    """Return whether a class of torch has parameters."""
    return _LEARNED.match(name) is not None


def makes_constants(name: str) -> bool:
    """Return whether the result of a function from outside the project never requires grad."""
    first, _, last = name.partition(".")
    if first == "torch":
        return name.rpartition(".")[2] in _MAKING
    return first in ("math", "numpy") or (not last and name in _CONSTANT_BUILTINS)


def hands_on(name: str) -> bool:
    """Return whether the result of a function or module from outside the project depends on its arguments."""
    return name.startswith("torch.")


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


def is_constant_buffer(scope: Scope, node: ast.Attribute) -> bool:
    """Return whether an attribute of the object is a buffer that is never changed."""
    if scope.owner is None or dotted_name(node.value) != scope.self_name:
        return False
    nodes = list(_nodes_with(scope.owner, node.attr))
    is_registered = any(_registers(each, node.attr) for each in nodes)
    return is_registered and not any(_changes(each, node.attr) for each in nodes)


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
