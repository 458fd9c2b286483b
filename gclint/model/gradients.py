"""Which values require no grad, as far as that can be shown."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import Enum

from gclint.code.names import names
from gclint.model import known
from gclint.model.values import (
    PLAIN,
    Box,
    Call,
    Class,
    Constant,
    External,
    Fixed,
    Function,
    Made,
    Method,
    ModelSetting,
    Module,
    Object,
    Plain,
    Tensor,
    Thing,
    Unknown,
    Value,
    of,
)

UNRECORDED = frozenset(("torch.no_grad", "torch.inference_mode"))
_RECORDED = frozenset(("torch.enable_grad",))
_SWITCHING = frozenset(("torch.set_grad_enabled", "torch.autograd.grad_mode.set_grad_enabled"))
_INTEGERS = names(
    """
    torch.bool torch.uint8 torch.uint16 torch.uint32 torch.uint64 torch.int8 torch.int16 torch.int32
    torch.int64 torch.short torch.int torch.long torch.BoolTensor torch.ByteTensor torch.CharTensor
    torch.ShortTensor torch.IntTensor torch.LongTensor
    """
)
"""The types of tensors that cannot require grad."""
_ANY_TYPE = of(Plain(), External("torch.int64"))
_LIKE = frozenset(("to", "type_as"))
"""The methods that convert a tensor to the type of another one."""
_CONSTANT = (Plain, Constant, ModelSetting, Class, External, Module, Made, Function)


class Recording(Enum):
    """Whether gradients are recorded in a context."""

    ON = 1
    OFF = 2
    AS_AROUND = 3
    UNKNOWN = 4


def records(made: Value, node: ast.expr) -> Recording:
    """Return whether gradients are recorded in a context.

    Args:
        made: what makes the context.
        node: the code that does so.
    """
    passed = [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
    given = passed[0] if passed else None
    found = {_records(each.name, given) if isinstance(each, External) else None for each in made.things}
    return found.pop() or Recording.UNKNOWN if len(found) == 1 else Recording.UNKNOWN


def switches_gradients(made: Value, node: ast.expr) -> bool:
    """Tell whether a context does nothing but turn the recording of gradients on or off, as is written."""
    is_known = all(isinstance(each, External) and each.name in _SWITCHING for each in made.things)
    return is_known and records(made, node) in (Recording.ON, Recording.OFF)


def _records(name: str, given: ast.expr | None) -> Recording:
    if name in UNRECORDED:
        return Recording.OFF
    if name in _RECORDED:
        return Recording.ON
    if name in _SWITCHING and isinstance(given, ast.Constant):
        return Recording.ON if given.value else Recording.OFF
    return Recording.AS_AROUND if name in known.RESTORED else Recording.UNKNOWN


def gives_integers(name: str, call: Call) -> bool:
    """Tell whether an operation is given a type of integers, or may be given a tensor of one."""
    like = call.argument(0, "other") if name in _LIKE else None
    if like is not None and any(isinstance(each, (Tensor, Unknown)) for each in like.things):
        return is_constant(like)
    given = (each for value in call.all() for each in value.things)
    return any(
        (isinstance(each, External) and each.name in _INTEGERS)
        or (isinstance(each, Constant) and each.value in _INTEGERS)
        for each in given
    )


def type_of(thing: Thing) -> Value:
    """Return the type of what a tensor has: perhaps one of integers if that is an argument of indices."""
    return _ANY_TYPE if isinstance(thing, Unknown) and thing.is_argument and thing.is_constant else PLAIN


def is_false(value: Value | None) -> bool:
    """Tell whether a value is ``False``."""
    return value is not None and value.things == {Constant(False)}


def without_gradient(value: Value) -> Value:
    """Return a value with tensors that require no grad in place of all others."""
    things = (Tensor(is_constant=True) if isinstance(each, Tensor) else each for each in value.things)
    return Value(frozenset(things), value.roots)


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
