"""Finds the local names of a method that may refer to blocks, or to functions that run them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from gclint.code.names import names
from gclint.code.walk import alternatives, arguments, dotted_name
from gclint.network.evaluation.body import unstarred
from gclint.network.evaluation.scope import Scope

CHECKPOINT_METHODS = {"_gradient_checkpointing_func", "gradient_checkpointing_func"}
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


def may_be_block(scope: Scope, func: ast.expr, holders: Holders) -> bool:
    """Return whether what is called may come from a holder, or be a function that runs what does."""
    if isinstance(func, ast.Attribute) and func.attr in RUNNING_METHODS:
        func = func.value
    while isinstance(func, ast.Subscript):
        func = func.value
    if isinstance(func, ast.Attribute):
        return func.attr in holders.attributes
    if isinstance(func, ast.Name):
        return _is_alias(scope, func.id, holders, set())
    return isinstance(func, ast.Call) and dotted_name(func.func) == _COMPUTING


def _is_alias(scope: Scope, name: str, holders: Holders, seen: set[tuple[Scope, str]]) -> bool:
    """Return whether a local name may refer to the content of a holder, or to a function."""
    if (scope, name) in seen:
        return False
    seen.add((scope, name))
    # What an inner function gets, or another one, may be a block.
    is_open = name in scope.body.functions or (scope.depth > 0 and scope.parameters.has(name))
    if is_open or any(_denotes(scope, each.value, holders, seen) for each in scope.bindings(name)):
        return True
    return scope.parent is not None and _is_alias(scope.parent, name, holders, seen)


def _denotes(scope: Scope, value: ast.expr, holders: Holders, seen: set[tuple[Scope, str]]) -> bool:
    """Return whether an expression refers to the content of a holder, rather than to its output."""
    parts: Iterable[ast.expr] = alternatives(value)
    if isinstance(value, ast.Name):
        return _is_alias(scope, value.id, holders, seen)
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
    elif isinstance(value, ast.Subscript):
        parts = (value.value,)
    elif isinstance(value, ast.BinOp):
        parts = (value.left, value.right)
    elif isinstance(value, (ast.List, ast.Tuple)):
        parts = map(unstarred, value.elts)
    elif isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        parts = (value.generators[0].iter, value.elt)
    return any(_denotes(scope, part, holders, seen) for part in parts)
