"""The arguments of a call that unpacks a list or dict, where that is written down in the same function."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gclint.network.evaluation.scope import Scope
from gclint.source.walk import Arg, arguments, dotted_name, text_of


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
    if len(bindings) != 1 or scope.parameters.has(name) or scope.body is None:
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
