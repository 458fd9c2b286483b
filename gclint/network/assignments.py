"""The assignments of a method to a name, with the conditions under which they are executed."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from gclint.code.tree import blocks_of
from gclint.code.walk import WITHS, arguments, dotted_name, is_constant
from gclint.network.evaluation.body import NameBinding
from gclint.network.evaluation.reaching import Entry
from gclint.network.evaluation.scope import Scope

_WITHOUT_GRADIENT = frozenset(("no_grad", "inference_mode"))
_SWITCHING = "set_grad_enabled"
GRADIENT_SWITCHES = _WITHOUT_GRADIENT | {_SWITCHING}
"""Contexts and decorators that may keep gradients from being recorded."""
_MAKING_LISTS = frozenset(("list", "dict", "tuple"))

Condition = tuple[ast.expr, bool]
"""A test, and whether it has to be true."""


@dataclass(frozen=True)
class Assignment:
    """One way in which a name gets a value."""

    binding: NameBinding
    conditions: tuple[Condition, ...] = ()
    """The tests of the ``if`` statements around it."""
    records: bool = True
    """Whether gradients are recorded there."""

    @property
    def makes_container(self) -> bool:
        """Whether the value is a list, tuple or dict that is created here."""
        value = self.binding.value
        if isinstance(value, ast.Call):
            return dotted_name(value.func) in _MAKING_LISTS
        return isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp))

    def requires(self, name: str) -> bool:
        """Return whether it is executed only if the variable ``name`` is not None."""
        return any(each.id == name for condition in self.conditions for each in names_needed(*condition))


@dataclass(frozen=True)
class _Place:
    conditions: tuple[Condition, ...] = ()
    records: bool = True


def assignments(scope: Scope, name: str, entries: frozenset[Entry]) -> list[Assignment]:
    """Return the assignments of a scope itself to a name, in text order; only some if ``entries`` say so."""
    bindings = scope.bindings(name)
    return [_assignment(scope, each) for each in bindings if not entries or each in entries]


def _assignment(scope: Scope, binding: NameBinding) -> Assignment:
    whole = _whole(scope, binding.value)
    place = _placed(whole, binding.value, _Place()) if isinstance(whole, ast.stmt) else _Place()
    return Assignment(binding, place.conditions, place.records)


def is_simple(statement: ast.AST) -> bool:
    """Return whether a node is a statement that contains no others."""
    return isinstance(statement, ast.stmt) and not any(blocks_of(statement))


def _whole(scope: Scope, node: ast.expr) -> ast.AST | None:
    """Return the part of a scope's body, mostly a statement, that contains a node."""
    start = scope.module.file.places.start
    roots = () if scope.body is None else scope.body.roots
    row = bisect_right(roots, start(node), key=start)
    return roots[row - 1] if row else None


def _placed(statement: ast.stmt, value: ast.expr, place: _Place) -> _Place:
    """Return the place of an expression in a statement, which has a place itself."""
    if isinstance(statement, WITHS) and any(stops_gradients(each.context_expr) for each in statement.items):
        place = _Place(place.conditions, False)
    for block in blocks_of(statement):
        inside = next((each for each in block if _contains(each, value)), None)
        if inside is not None:
            if isinstance(statement, ast.If):
                condition = statement.test, block is statement.body
                place = _Place((*place.conditions, condition), place.records)
            return _placed(inside, value, place)
    return place


def _contains(statement: ast.stmt, value: ast.expr) -> bool:
    start, end = (statement.lineno, statement.col_offset), (statement.end_lineno, statement.end_col_offset)
    return start <= (value.lineno, value.col_offset) < end


def stops_gradients(context: ast.expr) -> bool:
    """Return whether a context manager, or a decorator, keeps gradients from being recorded."""
    given = arguments(context) if isinstance(context, ast.Call) else ()
    called = context.func if isinstance(context, ast.Call) else context
    name = (dotted_name(called) or "").rpartition(".")[2]
    if name == _SWITCHING and given:
        return is_constant(given[0].value, False)
    return name in _WITHOUT_GRADIENT


def names_needed(test: ast.expr, holds: bool) -> Iterator[ast.Name]:
    """Yield the names that cannot be None if a test is true, or if it is false."""
    if isinstance(test, ast.Name):
        yield from (test,) if holds else ()
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from names_needed(test.operand, not holds)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for each in test.values:
            yield from names_needed(each, holds)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
        needed = ast.IsNot if holds else ast.Is
        if is_constant(test.comparators[0], None) and isinstance(test.ops[0], needed):
            yield test.left
