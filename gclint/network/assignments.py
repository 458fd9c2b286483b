"""The assignments of a method to a name, with the conditions under which they are executed."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from gclint.code.tree import blocks_of
from gclint.code.walk import WITHS, arguments, dotted_name, is_constant
from gclint.network.evaluation.body import NameBinding
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
    start: int = 0
    """The offset of the function's top-level statement that is or contains the assignment."""
    end: int = 0
    """The end of that statement."""
    simple: bool = False
    """Whether the assignment is that statement."""
    replaces: bool = False
    """Whether it replaces the previous value on every path."""

    @property
    def makes_container(self) -> bool:
        """Whether the value is a list, tuple or dict that is created here."""
        value = self.binding.value
        if isinstance(value, ast.Call):
            return dotted_name(value.func) in _MAKING_LISTS
        return isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp))

    def requires(self, name: str) -> bool:
        """Return whether it is executed only if the variable ``name`` is not None."""
        return any(name in names_needed(*condition) for condition in self.conditions)


@dataclass(frozen=True)
class _Place:
    conditions: tuple[Condition, ...] = ()
    records: bool = True


def assignments(scope: Scope, name: str) -> list[Assignment]:
    """Return all assignments of a scope itself to a name, in text order."""
    return [_assignment(scope, binding) for binding in scope.bindings(name)]


def _assignment(scope: Scope, binding: NameBinding) -> Assignment:
    whole = _whole(scope, binding.value)
    if not isinstance(whole, ast.stmt):
        return Assignment(binding)
    place = _placed(whole, binding.value, _Place())
    simple = is_simple(whole)
    # An assignment without recorded gradients makes the name a constant.
    is_known = simple or (isinstance(whole, WITHS) and not place.records)
    return Assignment(
        binding,
        place.conditions,
        place.records,
        *scope.span(whole),
        simple,
        is_known and _replaces(whole, binding),
    )


def statement_start(scope: Scope, node: ast.expr) -> int:
    """Return where the statement of a scope's body begins that is or contains a node's statement."""
    return scope.span(_whole(scope, node) or node)[0]


def is_simple(statement: ast.AST) -> bool:
    """Return whether a node is a statement that contains no others."""
    return isinstance(statement, ast.stmt) and not any(blocks_of(statement))


def _whole(scope: Scope, node: ast.expr) -> ast.AST | None:
    """Return the part of a scope's body, mostly a statement, that contains a node."""
    start = scope.module.file.places.start
    roots = () if scope.body is None else scope.body.roots
    row = bisect_right(roots, start(node), key=start)
    return roots[row - 1] if row else None


def reaching(given: Sequence[Assignment], at: int | None) -> tuple[list[Assignment], bool]:
    """Return the assignments that may be the last before a place, and whether one of them always is executed.

    The statements of a function run in their order; only those inside a loop may run again. The place is an
    offset in the statement that uses the name; None if any assignment may come before it.
    """
    if at is None:
        return list(given), False
    before = [each for each in given if each.start <= at and not (each.simple and at < each.end)]
    last = max((each.start for each in before if each.replaces), default=None)
    return [each for each in before if last is None or each.start >= last], last is not None


def _replaces(statement: ast.stmt, binding: NameBinding) -> bool:
    inside = statement.body if isinstance(statement, WITHS) else [statement]
    return not binding.added and any(
        isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is binding.value for each in inside
    )


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


def names_needed(test: ast.expr, holds: bool) -> frozenset[str]:
    """Return the names that cannot be None if a test is true, or if it is false."""
    if isinstance(test, ast.Name):
        return frozenset((test.id,)) if holds else frozenset()
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return names_needed(test.operand, not holds)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        return frozenset(name for each in test.values for name in names_needed(each, holds))
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
        needed = ast.IsNot if holds else ast.Is
        if is_constant(test.comparators[0], None) and isinstance(test.ops[0], needed):
            return frozenset((test.left.id,))
    return frozenset()
