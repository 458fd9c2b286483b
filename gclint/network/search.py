"""Finds the statements of a method that may run blocks: those that mention what holds them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import libcst as cst

from gclint.network.evaluation.body import Piece
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.walk import dotted_name

CHECKPOINT_METHODS = {"_gradient_checkpointing_func", "gradient_checkpointing_func"}
_CHECKPOINT_WORDS = CHECKPOINT_METHODS | {"checkpoint"}
_DENOTING_CALLS = frozenset(
    [
        "enumerate",
        "zip",
        "islice",
        "chain",
        "list",
        "tuple",
        "reversed",
        "iter",
        "next",
        "deepcopy",
        "partial",
        "ModuleList",
        "Sequential",
    ]
)
_VIEWS = frozenset(("values", "items", "children", "pop", "popleft"))
RUNNING_METHODS = {"__call__", "forward"}


@dataclass(frozen=True)
class Holders:
    """The names through which the classes of a file reach their blocks."""

    attributes: frozenset[str]
    """The attributes that hold blocks or stacks of them."""
    accessors: frozenset[str]
    """The methods that return the value of such an attribute."""


@dataclass(frozen=True)
class Search:
    """The statements of a method that may run blocks."""

    holders: Holders
    aliases: frozenset[str]
    """The local names that refer to such an attribute or its items."""
    pieces: Sequence[Piece]


def search_blocks(scope: Scope, holders: Holders, outer: frozenset[str] = frozenset()) -> Search:
    """Find the statements that mention a holder of blocks, or a local alias; ``outer`` are known aliases."""
    aliases = outer.union(scope.parameters.names if scope.depth else ())
    pieces: Sequence[Piece] = ()
    attributes = (
        {f".{name}" for name in holders.attributes | holders.accessors} | _CHECKPOINT_WORDS | {"getattr"}
    )
    while scope.body is not None:
        words = attributes | aliases
        wanted = scope.body.pieces_naming(words)
        known = aliases
        for piece in wanted:
            aliases |= {
                name
                for name, bindings in piece.bindings.items()
                if "." not in name and any(_denotes(binding.value, holders, aliases) for binding in bindings)
            }
            aliases |= piece.functions.keys()
        if len(wanted) == len(pieces) and aliases == known:
            break
        pieces = wanted
    return Search(holders, aliases, pieces)


def _denotes(value: cst.BaseExpression, holders: Holders, aliases: Collection[str]) -> bool:
    """Return whether an expression refers to the content of a holder, rather than to its output."""
    parts: Sequence[cst.BaseExpression] = ()
    if isinstance(value, cst.Name):
        return value.value in aliases
    if isinstance(value, cst.Attribute):
        if value.attr.value not in RUNNING_METHODS:
            return value.attr.value in holders.attributes | holders.accessors
        parts = (value.value,)
    elif isinstance(value, cst.Call):
        name = dotted_name(value.func)
        if name == "getattr":
            return True
        if isinstance(value.func, cst.Attribute) and value.func.attr.value in holders.accessors:
            return True
        if name is not None and name.rpartition(".")[2] in _DENOTING_CALLS:
            parts = [arg.value for arg in value.args]
        elif isinstance(value.func, cst.Attribute) and value.func.attr.value in _VIEWS:
            parts = (value.func.value,)
    elif isinstance(value, (cst.Subscript, cst.NamedExpr)):
        parts = (value.value,)
    elif isinstance(value, cst.IfExp):
        parts = (value.body, value.orelse)
    elif isinstance(value, (cst.BinaryOperation, cst.BooleanOperation)):
        parts = (value.left, value.right)
    elif isinstance(value, (cst.List, cst.Tuple)):
        parts = [element.value for element in value.elements]
    elif isinstance(value, (cst.ListComp, cst.GeneratorExp)):
        parts = (value.for_in.iter, value.elt)
    return any(_denotes(part, holders, aliases) for part in parts)
