"""Finds the block that a checkpointed callable runs, through wrappers, and the arguments that reach it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gclint.code.file import SourceFile
from gclint.code.walk import (
    FUNCTIONS,
    Arg,
    FunctionNode,
    arguments,
    dotted_name,
    is_docstring,
    names_in,
    text_of,
    walk,
    walk_scope,
)
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import EvaluatedExternal, EvaluatedFunction, Values
from gclint.network.search import RUNNING_METHODS

_TUPLE = "tuple"


@dataclass(frozen=True)
class Wrapped:
    """A call of a block inside a callable."""

    receiver: ast.expr
    """The expression for the block."""
    args: tuple[Arg, ...]
    """The arguments that reach it."""
    is_exact: bool = True
    """Whether the callable surely does nothing else, and is the only one that it may be."""
    outcome: tuple[ast.expr, ...] = ()
    """What the callable does with the block's output, from the outside in: ``tuple(...)``, ``...[0]``."""


def unwrap(scope: Scope, target: ast.expr, args: Sequence[Arg]) -> Wrapped | None:
    """Return the block that a checkpointed callable runs, and the arguments; None if that is not known.

    The checkpoint function passes ``args`` on to the callable, the ``target``.
    """
    if isinstance(target, ast.Attribute) and target.attr in RUNNING_METHODS:
        return Wrapped(target.value, tuple(args))
    if isinstance(target, ast.Lambda):
        return _closed(scope, _handed_on(target.args, target.body, args), args)
    if isinstance(target, ast.Call):
        functions, made = scope.evaluate(target.func), arguments(target)
        if any(
            isinstance(value, EvaluatedExternal) and value.name == "functools.partial" for value in functions
        ):
            if made and all(arg.keyword is not None or arg.star == "**" for arg in made[1:]):
                return unwrap(scope, made[0].value, (*args, *made[1:]))
            return None
        return _custom_forward(scope, target.func, functions, made, args)
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        return Wrapped(target, tuple(args))
    return None


def _custom_forward(
    scope: Scope, func: ast.expr, functions: Values, made: Sequence[Arg], args: Sequence[Arg]
) -> Wrapped | None:
    """Unwrap ``create_custom_forward(layer)``, a function that returns a function.

    The inner function calls the module with ``*inputs``, and often with further arguments.
    """
    if len(made) != 1 or len(functions) != 1:
        return None
    (function,) = functions
    if not isinstance(function, EvaluatedFunction) or not isinstance(function.node, FUNCTIONS):
        return None
    outer, inner = function.node, _inner(function.node)
    if inner is None or len(outer.args.args) != 1:
        return None
    params, body = inner
    wrapped, own = _handed_on(params, body, args), outer.args.args[0].arg
    if wrapped is None or dotted_name(wrapped.receiver) != own:
        return None
    read = [each for each in names_in(body) if each not in _parameters(params)]
    # Other names may stand for something else where it is called.
    is_closed = read.count(own) == 1 and (function.scope is scope or not {*read} - {own, _TUPLE})
    is_exact = (
        wrapped.is_exact and is_closed and _only_hands_on(outer) and _is_the_only(scope, func, function)
    )
    return _closed(scope, replace(wrapped, receiver=made[0].value, is_exact=is_exact), args)


def _inner(outer: FunctionNode) -> tuple[ast.arguments, ast.expr] | None:
    """Return the parameters and result of the inner function that another one makes, and may return."""
    made = [node for node in walk_scope(outer) if isinstance(node, (*FUNCTIONS, ast.Lambda))]
    if len(made) != 1:
        return None
    (inner,) = made
    if isinstance(inner, ast.Lambda):
        return inner.args, inner.body
    body = _without_docstring(inner)
    if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        return None
    return inner.args, body[0].value


def _only_hands_on(outer: FunctionNode) -> bool:
    """Tell whether a function does nothing but return its inner function, as it is written."""
    body = [each for each in _without_docstring(outer) if not isinstance(each, (ast.Import, ast.ImportFrom))]
    returned = body[-1].value if body and isinstance(body[-1], ast.Return) else None
    if outer.decorator_list or isinstance(outer, ast.AsyncFunctionDef):
        return False
    if isinstance(returned, ast.Lambda):
        return len(body) == 1
    inner = body[0]
    is_plain = isinstance(inner, ast.FunctionDef) and not inner.decorator_list and len(body) == 2
    return is_plain and isinstance(returned, ast.Name) and returned.id == getattr(inner, "name", "")


def _without_docstring(function: FunctionNode) -> list[ast.stmt]:
    return [statement for statement in function.body if not is_docstring(statement)]


def _is_the_only(scope: Scope, func: ast.expr, function: EvaluatedFunction) -> bool:
    """Tell whether what is called is surely a function, and no other one by its name."""
    node, around, name = function.node, scope, getattr(func, "id", None)
    assert isinstance(node, FUNCTIONS)
    if name is not None:
        while around.parent is not None and not (around.binds(name) or around.parameters.has(name)):
            around = around.parent
        if around.binds(name) or around.parameters.has(name):
            ways = (*around.bindings(name), *around.body.functions.get(name, ()))
            reaching = around.reaching(name, func) if around is scope else frozenset()
            return (reaching or {*ways}) == {node} and not around.parameters.has(name)
    homes = {(function.scope.module.file, node.name), *(() if name is None else ((scope.module.file, name),))}
    return all(_times_bound(file, each) < 2 for file, each in homes)


def _times_bound(file: SourceFile, name: str) -> int:
    """Return how often the code of a module binds a name, also from within functions."""
    tree = file.tree
    own = () if tree is None else walk_scope(tree.module)
    inner = () if tree is None else (each for each in walk(tree.module) if isinstance(each, ast.Global))
    return sum(name in _bound(each) for each in own) + sum(name in each.names for each in inner)


def _bound(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return (node.name,)
    if isinstance(node, ast.alias):
        return ((node.asname or node.name).partition(".")[0],)
    return (node.id,) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else ()


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
    if not _parameters(params).isdisjoint(names_in(receiver)):
        return None
    return Wrapped(receiver, forwarded, outcome=tuple(outcome))


def _parameters(params: ast.arguments) -> set[str]:
    return {each.arg for each in walk(params) if isinstance(each, ast.arg)}


def _in_tuple(node: ast.expr) -> ast.expr | None:
    """Return the argument of ``tuple(…)``; None for any other expression."""
    given = arguments(node) if isinstance(node, ast.Call) and dotted_name(node.func) == _TUPLE else ()
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


def _closed(scope: Scope, wrapped: Wrapped | None, given: Sequence[Arg]) -> Wrapped | None:
    """Take a callable for inexact that computes some of the block's arguments, which is then done anew."""
    inside = [] if wrapped is None else [each.value for each in wrapped.args if each not in given]
    is_computing = any(_computes(scope, each) for value in inside for each in walk(value))
    return replace(wrapped, is_exact=False) if wrapped is not None and is_computing else wrapped


def _computes(scope: Scope, node: ast.AST) -> bool:
    """Tell whether a node calls a part of the model, or a function, and not a method of some tensor."""
    root = node.func if isinstance(node, ast.Call) else None
    while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name):
        return root is not None
    return root.id == scope.self_name or bool(scope.module.lookup(root.id))


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
