"""Finds the local names of a method that may refer to blocks, or to functions that run them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gclint.code.names import names
from gclint.code.walk import FunctionNode, arguments, dotted_name, walk
from gclint.network.evaluation.body import unstarred
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.signature import listed_parameters

CHECKPOINT_METHODS = {"_gradient_checkpointing_func", "gradient_checkpointing_func"}
_CHECKPOINT_WORDS = CHECKPOINT_METHODS | {"checkpoint"}
_COMPUTING = "getattr"
_DENOTING_CALLS = names(
    "enumerate zip islice chain list tuple reversed iter next deepcopy partial ModuleList Sequential"
)
_VIEWS = names("values items children pop popleft")
RUNNING_METHODS = {"__call__", "forward"}


@dataclass(frozen=True)
class Holders:
    """The names through which the classes of a file reach their blocks."""

    attributes: frozenset[str]
    """The attributes that hold blocks or stacks of them."""
    accessors: frozenset[str]
    """The methods that return the value of such an attribute."""

    @property
    def names(self) -> frozenset[str]:
        """The names of both."""
        return self.attributes | self.accessors


@dataclass(frozen=True)
class Search:
    """The names through which a method reaches blocks."""

    holders: Holders
    aliases: frozenset[str]
    """The local names that refer to such an attribute or its items, and the functions that use one."""


def search_blocks(scope: Scope, holders: Holders, outer: frozenset[str] = frozenset()) -> Search:
    """Find the local names that may refer to blocks, or to functions that run them; ``outer`` are known."""
    aliases = outer.union(scope.parameters.names if scope.depth else ())
    known: frozenset[str] | None = None
    while scope.body is not None and aliases != known:
        known = aliases
        aliases |= {
            name
            for name, bindings in scope.body.bindings.items()
            if "." not in name and any(_denotes(binding.value, holders, aliases) for binding in bindings)
        }
        aliases |= {
            name
            for name, functions in scope.body.functions.items()
            if name not in aliases and any(_uses(each, holders, aliases) for each in functions)
        }
    return Search(holders, aliases)


def _uses(function: FunctionNode, holders: Holders, aliases: Collection[str]) -> bool:
    """Return whether a function may get blocks, or names a holder, an alias or a checkpoint function."""
    if any(listed_parameters(function.args)):
        return True
    for node in walk(function):
        if isinstance(node, ast.Attribute):
            if node.attr in holders.names or node.attr in _CHECKPOINT_WORDS:
                return True
        elif isinstance(node, ast.Name) and (
            node.id in aliases or node.id in _CHECKPOINT_WORDS or node.id == _COMPUTING
        ):
            return True
    return False


def _denotes(value: ast.expr, holders: Holders, aliases: Collection[str]) -> bool:
    """Return whether an expression refers to the content of a holder, rather than to its output."""
    parts: Iterable[ast.expr] = ()
    if isinstance(value, ast.Name):
        return value.id in aliases
    if isinstance(value, ast.Attribute):
        if value.attr not in RUNNING_METHODS:
            return value.attr in holders.names
        parts = (value.value,)
    elif isinstance(value, ast.Call):
        name = dotted_name(value.func)
        if name == _COMPUTING:
            return True
        if isinstance(value.func, ast.Attribute) and value.func.attr in holders.accessors:
            return True
        if name is not None and name.rpartition(".")[2] in _DENOTING_CALLS:
            parts = (arg.value for arg in arguments(value))
        elif isinstance(value.func, ast.Attribute) and value.func.attr in _VIEWS:
            parts = (value.func.value,)
    elif isinstance(value, (ast.Subscript, ast.NamedExpr)):
        parts = (value.value,)
    elif isinstance(value, ast.IfExp):
        parts = (value.body, value.orelse)
    elif isinstance(value, ast.BinOp):
        parts = (value.left, value.right)
    elif isinstance(value, ast.BoolOp):
        parts = value.values
    elif isinstance(value, (ast.List, ast.Tuple)):
        parts = map(unstarred, value.elts)
    elif isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        parts = (value.generators[0].iter, value.elt)
    return any(_denotes(part, holders, aliases) for part in parts)
