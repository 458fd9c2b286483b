"""Finds the block that a checkpointed callable runs, directly or through wrapper functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import External, Function, Values
from gclint.network.evaluation.walk import names_in, walk_scope
from gclint.network.search import RUNNING_METHODS


@dataclass(frozen=True)
class Wrapped:
    """A call of a block inside a callable."""

    receiver: cst.BaseExpression
    """The expression for the block."""
    args: tuple[cst.Arg, ...]
    """The arguments that reach it."""
    outcome: tuple[cst.BaseExpression, ...] = ()
    """What the callable does with the block's output, from the outside in: ``tuple(...)``, ``...[0]``."""


def unwrap(scope: Scope, target: cst.BaseExpression, args: Sequence[cst.Arg]) -> Wrapped | None:
    """Return the block that a checkpointed callable runs, and the arguments; None if that is not known.

    Args:
        scope: the scope of the call.
        target: the checkpointed callable.
        args: the arguments that the checkpoint function passes on to it.
    """
    if isinstance(target, cst.Attribute) and target.attr.value in RUNNING_METHODS:
        return Wrapped(target.value, tuple(args))
    if isinstance(target, cst.Lambda):
        wrapped = _handed_on(target.params, target.body, args)
        own = {param.name.value for param in target.params.params}
        return wrapped if wrapped is not None and own.isdisjoint(names_in(wrapped.receiver)) else None
    if isinstance(target, cst.Call):
        functions = scope.evaluate(target.func)
        if any(isinstance(value, External) and value.name == "functools.partial" for value in functions):
            bound = target.args[1:]
            if all(arg.keyword is not None or arg.star == "**" for arg in bound):
                return unwrap(scope, target.args[0].value, (*args, *bound))
            return None
        return _custom_forward(functions, target, args)
    if isinstance(target, (cst.Name, cst.Attribute, cst.Subscript)):
        return Wrapped(target, tuple(args))
    return None


def _custom_forward(functions: Values, target: cst.Call, args: Sequence[cst.Arg]) -> Wrapped | None:
    """Unwrap ``create_custom_forward(layer)``, a function that returns a function.

    The inner function calls the module with ``*inputs``, and often with further arguments.
    """
    if len(target.args) != 1 or len(functions) != 1:
        return None
    (function,) = functions
    if not isinstance(function, Function) or not isinstance(function.node, cst.FunctionDef):
        return None
    outer = function.node
    if len(outer.params.params) != 1:
        return None
    inner = _inner(outer)
    if inner is None:
        return None
    wrapped = _handed_on(*inner, args)
    if wrapped is None or not isinstance(wrapped.receiver, cst.Name):
        return None
    if wrapped.receiver.value != outer.params.params[0].name.value:
        return None
    return replace(wrapped, receiver=target.args[0].value)


def _inner(outer: cst.FunctionDef) -> tuple[cst.Parameters, cst.BaseExpression] | None:
    """Return the parameters and result of the inner function, if the outer one does nothing but return it."""
    made = [node for node in walk_scope(outer.body) if isinstance(node, (cst.FunctionDef, cst.Lambda))]
    if len(made) != 1:
        return None
    if isinstance(made[0], cst.Lambda):
        return made[0].params, made[0].body
    returns = [node for node in walk_scope(made[0].body) if isinstance(node, cst.Return)]
    if len(returns) != 1 or returns[0].value is None or len(made[0].body.body) != 1:
        return None
    return made[0].params, returns[0].value


def _handed_on(params: cst.Parameters, body: cst.BaseExpression, args: Sequence[cst.Arg]) -> Wrapped | None:
    """Return the call of a block, if a function only calls one and perhaps selects an item of the output."""
    outcome: list[cst.BaseExpression] = []
    while True:
        if isinstance(body, cst.Subscript):
            outcome.append(body)
            body = body.value
        elif _is_tuple(body):
            outcome.append(body)
            body = cst.ensure_type(body, cst.Call).args[0].value
        else:
            break
    if not isinstance(body, cst.Call):
        return None
    forwarded = _forwarded(params, body.args, args)
    if forwarded is None:
        return None
    receiver = body.func
    if isinstance(receiver, cst.Attribute) and receiver.attr.value in RUNNING_METHODS:
        receiver = receiver.value
    return Wrapped(receiver, forwarded, tuple(outcome))


def _is_tuple(node: cst.BaseExpression) -> bool:
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value == "tuple"
        and len(node.args) == 1
    )


def _forwarded(
    params: cst.Parameters, inner: Sequence[cst.Arg], given: Sequence[cst.Arg]
) -> tuple[cst.Arg, ...] | None:
    """Return the arguments of an inner call, with parameters replaced by the arguments of the outer call."""
    if params.kwonly_params or params.posonly_params:
        return None
    names = [param.name.value for param in params.params]
    star = params.star_arg.name.value if isinstance(params.star_arg, cst.Param) else None
    double = None if params.star_kwarg is None else params.star_kwarg.name.value
    positional = [arg for arg in given if arg.keyword is None and not arg.star]
    if names and (len(positional) < len(names) or len(positional) != len(given)):
        return None
    by_name = dict(zip(names, positional, strict=False))
    rest = [arg for arg in given if arg not in by_name.values()]
    keywords = [arg for arg in rest if arg.keyword is not None]
    if (rest and star is None and double is None) or (keywords and star is not None and double is None):
        return None
    found: list[cst.Arg] = []
    for arg in inner:
        name = arg.value.value if isinstance(arg.value, cst.Name) else None
        if name is not None and name == star and arg.star == "*":
            found += [each for each in rest if each.keyword is None or double is None]
        elif name is not None and name == double and arg.star == "**":
            found += keywords
        elif name in by_name and not arg.star:
            found.append(arg.with_changes(value=by_name[name].value))
        elif {*names, star, double}.isdisjoint(names_in(arg.value)):
            found.append(arg)
        else:
            return None
    return tuple(found)
