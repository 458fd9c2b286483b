"""Which values require no grad, as far as that can be shown."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gclint.model.values import (
    Box,
    Class,
    Constant,
    External,
    Fixed,
    Function,
    Made,
    Method,
    Module,
    Object,
    Plain,
    Setting,
    Tensor,
    Thing,
    Unknown,
    Value,
)

_UNRECORDED = frozenset(("torch.no_grad", "torch.inference_mode"))
_RECORDED = frozenset(("torch.enable_grad",))
_SWITCHING = frozenset(("torch.set_grad_enabled",))
_CONSTANT = (Plain, Constant, Setting, Class, External, Module, Made, Function)


def records(made: Value, node: ast.expr) -> bool | None:
    """Tell whether gradients are recorded in a context; None if it may leave that as it is.

    Args:
        made: what makes the context.
        node: the code that does so.
    """
    names_of = {each.name if isinstance(each, External) else "" for each in made.things}
    if names_of and names_of <= _UNRECORDED:
        return False
    if names_of and names_of <= _RECORDED:
        return True
    given = node.args[0] if isinstance(node, ast.Call) and node.args else None
    is_switch = bool(names_of) and names_of <= _SWITCHING and isinstance(given, ast.Constant)
    return bool(given.value) if is_switch and isinstance(given, ast.Constant) else None


def is_constant(*values: Value) -> bool:
    """Tell whether no gradient flows through any of these, nor through anything that they hold."""
    return _are_constant(values, set())


def _are_constant(values: Iterable[Value], met: set[int]) -> bool:
    return all(_is_constant(each, met) for value in values for each in value.things)


def _is_constant(thing: Thing, met: set[int]) -> bool:
    if isinstance(thing, (Tensor, Unknown)):
        return thing.is_constant
    if isinstance(thing, Fixed):
        return _are_constant(thing.items, met)
    if isinstance(thing, Method):
        return _are_constant((thing.receiver,), met)
    if isinstance(thing, (Box, Object)):
        if id(thing) in met:
            return True
        met.add(id(thing))
        return _are_constant([thing.item] if isinstance(thing, Box) else thing.attributes.values(), met)
    return isinstance(thing, _CONSTANT)
