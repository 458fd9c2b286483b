"""Finds the block that a checkpointed callable runs, through wrappers, and the arguments that reach it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gclint.code.walk import (
    FUNCTIONS,
    Arg,
    FunctionNode,
    arguments,
    dotted_name,
    is_docstring,
    names_in,
    text_of,
    walk_scope,
)
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import EvaluatedExternal, EvaluatedFunction, Values
from gclint.network.search import RUNNING_METHODS


@dataclass(frozen=True)
class Wrapped:
    """A call of a block inside a callable."""

    receiver: ast.expr
    """The expression for the block."""
    args: tuple[Arg, ...]
    """The arguments that reach it."""
    outcome: tuple[ast.expr, ...] = ()
    """What the callable does with the block's output, from the outside in: ``tuple(...)``, ``...[0]``."""


def unwrap(scope: Scope, target: ast.expr, args: Sequence[Arg]) -> Wrapped | None:
    """Return the block that a checkpointed callable runs, and the arguments; None if that is not known.

    The checkpoint function passes ``args`` on to the callable, the ``target``.
    """
    if isinstance(target, ast.Attribute) and target.attr in RUNNING_METHODS:
        return Wrapped(target.value, tuple(args))
    if isinstance(target, ast.Lambda):
        wrapped = _handed_on(target.args, target.body, args)
        own = {parameter.arg for parameter in target.args.args}
        return wrapped if wrapped is not None and own.isdisjoint(names_in(wrapped.receiver)) else None
    if isinstance(target, ast.Call):
        functions, made = scope.evaluate(target.func), arguments(target)
        if any(
            isinstance(value, EvaluatedExternal) and value.name == "functools.partial" for value in functions
        ):
            if made and all(arg.keyword is not None or arg.star == "**" for arg in made[1:]):
                return unwrap(scope, made[0].value, (*args, *made[1:]))
            return None
        return _custom_forward(functions, made, args)
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return Wrapped(target, tuple(args))
    return None


def _custom_forward(functions: Values, made: Sequence[Arg], args: Sequence[Arg]) -> Wrapped | None:
    """Unwrap ``create_custom_forward(layer)``, a function that returns a function.

    The inner function calls the module with ``*inputs``, and often with further arguments.
    """
    if len(made) != 1 or len(functions) != 1:
        return None
    (function,) = functions
    if not isinstance(function, EvaluatedFunction) or not isinstance(function.node, FUNCTIONS):
        return None
    outer = function.node
    if len(outer.args.args) != 1:
        return None
    inner = _inner(outer)
    if inner is None:
        return None
    wrapped = _handed_on(*inner, args)
    if wrapped is None or not isinstance(wrapped.receiver, ast.Name):
        return None
    if wrapped.receiver.id != outer.args.args[0].arg:
        return None
    return replace(wrapped, receiver=made[0].value)


def _inner(outer: FunctionNode) -> tuple[ast.arguments, ast.expr] | None:
    """Return the parameters and result of the inner function, if the outer one does nothing but return it."""
    made = [node for node in walk_scope(outer) if isinstance(node, (*FUNCTIONS, ast.Lambda))]
    if len(made) != 1:
        return None
    (inner,) = made
    if isinstance(inner, ast.Lambda):
        return inner.args, inner.body
    body = [statement for statement in inner.body if not is_docstring(statement)]
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return None
    return inner.args, body[0].value


def _handed_on(params: ast.arguments, body: ast.expr, args: Sequence[Arg]) -> Wrapped | None:
    """Return the call of a block, if a function only calls one and perhaps selects an item of the output."""
    outcome: list[ast.expr] = []
    while True:
        inner = body.value if isinstance(body, ast.Subscript) else _in_tuple(body)
        if inner is None:
            break
        outcome.append(body)
        body = inner
    if not isinstance(body, ast.Call):
        return None
    forwarded = _forwarded(params, arguments(body), args)
    if forwarded is None:
        return None
    receiver = body.func
    if isinstance(receiver, ast.Attribute) and receiver.attr in RUNNING_METHODS:
        receiver = receiver.value
    return Wrapped(receiver, forwarded, tuple(outcome))


def _in_tuple(node: ast.expr) -> ast.expr | None:
    """Return the argument of ``tuple(…)``; None for any other expression."""
    given = arguments(node) if isinstance(node, ast.Call) and dotted_name(node.func) == "tuple" else ()
    return given[0].value if len(given) == 1 else None


def _forwarded(params: ast.arguments, inner: Sequence[Arg], given: Sequence[Arg]) -> tuple[Arg, ...] | None:
    """Return the arguments of an inner call, with parameters replaced by the arguments of the outer call."""
    if params.kwonlyargs or params.posonlyargs:
        return None
    names = [parameter.arg for parameter in params.args]
    star = None if params.vararg is None else params.vararg.arg
    double = None if params.kwarg is None else params.kwarg.arg
    positional = [arg for arg in given if arg.keyword is None and not arg.star]
    if names and (len(positional) < len(names) or len(positional) != len(given)):
        return None
    by_name = dict(zip(names, positional, strict=False))
    rest = [arg for arg in given if arg not in by_name.values()]
    keywords = [arg for arg in rest if arg.keyword is not None]
    if (rest and star is None and double is None) or (keywords and star is not None and double is None):
        return None
    found: list[Arg] = []
    for arg in inner:
        name = arg.value.id if isinstance(arg.value, ast.Name) else None
        if name is not None and name == star and arg.star == "*":
            found += [each for each in rest if each.keyword is None or double is None]
        elif name is not None and name == double and arg.star == "**":
            found += keywords
        elif name in by_name and not arg.star:
            found.append(replace(arg, value=by_name[name].value))
        elif {*names, star, double}.isdisjoint(names_in(arg.value)):
            found.append(arg)
        else:
            return None
    return tuple(found)


def written_arguments(scope: Scope, args: Sequence[Arg]) -> tuple[Arg, ...]:
    """Return the arguments of a call with the items of what it unpacks; what is not known stays as it is."""
    if not any(arg.star for arg in args):
        return tuple(args)
    found: list[Arg] = []
    for arg in args:
        written = _written(scope, arg.value) if arg.star else None
        items = None if written is None else (_named if arg.star == "**" else _listed)(written)
        found += items or [arg]
    return tuple(found)


def _written(scope: Scope, value: ast.expr) -> ast.expr | None:
    """Return the expression that makes an unpacked value; None where it may change before the call."""
    if not isinstance(value, ast.Name):
        return value
    name = value.id
    bindings = list(scope.bindings(name))
    if len(bindings) != 1 or scope.parameters.has(name):
        return None
    (only,) = bindings
    if only.added or only.iterated or only.path:
        return None
    # It is made once, and behind that only unpacked.
    unpacked = {arg.value for call in scope.body.calls() for arg in arguments(call) if arg.star}
    uses = (node for node in scope.body.nodes if isinstance(node, ast.Name) and node.id == name)
    return only.value if sum(node not in unpacked for node in uses) == 1 else None


def _named(value: ast.expr) -> list[Arg] | None:
    """Return the items of a dict as arguments; None if not all names are written down."""
    if isinstance(value, ast.Call):
        given = list(arguments(value))
        is_plain = dotted_name(value.func) == "dict" and all(arg.keyword is not None for arg in given)
        return given if is_plain else None
    if not isinstance(value, ast.Dict):
        return None
    names = [None if key is None else text_of(key) for key in value.keys]
    found = [Arg(each, name) for name, each in zip(names, value.values, strict=True) if name is not None]
    return found if len(found) == len(names) else None


def _listed(value: ast.expr) -> list[Arg] | None:
    """Return the items of a list or tuple as arguments; None if not all are written down."""
    if not isinstance(value, (ast.List, ast.Tuple)):
        return None
    if any(isinstance(element, ast.Starred) for element in value.elts):
        return None
    return [Arg(element) for element in value.elts]
