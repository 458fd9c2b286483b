"""The arguments of a call that unpacks a list or dict, where that is written down in the same function."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gclint.network.evaluation.body import nodes_in
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.walk import dotted_name


def written_arguments(scope: Scope, args: Sequence[cst.Arg]) -> tuple[cst.Arg, ...]:
    """Return the arguments of a call with the items of what it unpacks; what is not known stays as it is."""
    if not any(arg.star for arg in args):
        return tuple(args)
    found: list[cst.Arg] = []
    for arg in args:
        written = _written(scope, arg.value) if arg.star else None
        items = None if written is None else (_named if arg.star == "**" else _listed)(written)
        found += items or [arg]
    return tuple(found)


def _written(scope: Scope, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the expression that makes an unpacked value; None where it may change before the call."""
    if not isinstance(value, cst.Name):
        return value
    name = value.value
    bindings = list(scope.bindings(name))
    if len(bindings) != 1 or scope.parameters.has(name) or scope.body is None:
        return None
    (only,) = bindings
    if only.added or only.iterated or only.path:
        return None
    # It is made once, and behind that only unpacked; the keyword of an argument is a name as well.
    nodes = list(nodes_in(scope.body.pieces_naming((name,))))
    passed = [arg for node in nodes if isinstance(node, cst.Call) for arg in node.args]
    harmless = {arg.value for arg in passed if arg.star} | {arg.keyword for arg in passed}
    uses = [node for node in nodes if isinstance(node, cst.Name) and node.value == name]
    return only.value if len([node for node in uses if node not in harmless]) == 1 else None


def _named(value: cst.BaseExpression) -> list[cst.Arg] | None:
    """Return the items of a dict as arguments; None if not all names are written down."""
    if isinstance(value, cst.Call):
        is_plain = dotted_name(value.func) == "dict" and all(arg.keyword is not None for arg in value.args)
        return list(value.args) if is_plain else None
    found: list[cst.Arg] = []
    for element in value.elements if isinstance(value, cst.Dict) else (None,):
        if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
            return None
        found.append(cst.Arg(element.value, cst.Name(str(element.key.evaluated_value))))
    return found


def _listed(value: cst.BaseExpression) -> list[cst.Arg] | None:
    """Return the items of a list or tuple as arguments; None if not all are written down."""
    if not isinstance(value, (cst.List, cst.Tuple)):
        return None
    if not all(isinstance(element, cst.Element) for element in value.elements):
        return None
    return [cst.Arg(element.value) for element in value.elements]
