"""Where code stands in a method: the loops and conditions around a call or an assignment."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from gclint.code.tree import blocks_of
from gclint.code.walk import LOOPS, WITHS, Loop, arguments, dotted_name, is_constant
from gclint.network.evaluation.body import NameBinding
from gclint.network.evaluation.reaching import Entry
from gclint.network.evaluation.scope import Scope

_WITHOUT_GRADIENT = frozenset(("no_grad", "inference_mode"))
_SWITCHING = "set_grad_enabled"
GRADIENT_SWITCHES = _WITHOUT_GRADIENT | {_SWITCHING}
"""Contexts and decorators that may keep gradients from being recorded."""
_MAKING_LISTS = frozenset(("list", "dict", "tuple"))


@dataclass(frozen=True)
class Arm:
    """One side of an ``if`` around an expression."""

    node: ast.If
    taken: bool
    """Whether the expression is in the body, not under ``else``."""


@dataclass(frozen=True)
class CodePlace:
    """What is around an expression in a method."""

    loops: tuple[Loop, ...] = ()
    """The innermost last."""
    arms: tuple[Arm, ...] = ()
    """The innermost last."""
    statement: ast.stmt | None = None
    """The simple statement that holds it; None in a header."""
    records: bool = True
    """Whether gradients are recorded, as no context manager around it prevents it."""


def place_in(statement: ast.AST, node: ast.expr) -> CodePlace:
    """Return where an expression stands in a statement."""
    loops: tuple[Loop, ...] = ()
    arms: tuple[Arm, ...] = ()
    records = True
    while isinstance(statement, ast.stmt) and any(blocks_of(statement)):
        blocks = (block for block in blocks_of(statement) if any(contains(each, node) for each in block))
        block = next(blocks, None)
        if block is None:
            return CodePlace(loops, arms, None, records)
        if isinstance(statement, ast.If):
            arms = (*arms, Arm(statement, block is statement.body))
        elif isinstance(statement, LOOPS) and block is statement.body:
            loops = (*loops, statement)
        elif isinstance(statement, WITHS):
            records = records and not any(stops_gradients(each.context_expr) for each in statement.items)
        statement = next(each for each in block if contains(each, node))
    return CodePlace(loops, arms, statement if isinstance(statement, ast.stmt) else None, records)


def contains(statement: ast.stmt, node: ast.expr) -> bool:
    """Tell whether an expression of a file is in a statement of it."""
    start, end = (statement.lineno, statement.col_offset), (statement.end_lineno, statement.end_col_offset)
    return start <= (node.lineno, node.col_offset) < end


@dataclass(frozen=True)
class Assignment:
    """One way in which a name gets a value."""

    binding: NameBinding
    place: CodePlace

    @property
    def makes_container(self) -> bool:
        """Whether the value is a list, tuple or dict that is created here."""
        value = self.binding.value
        if isinstance(value, ast.Call):
            return dotted_name(value.func) in _MAKING_LISTS
        return isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp))

    def requires(self, name: str) -> bool:
        """Return whether it is executed only if the variable ``name`` is not None."""
        needed = (names_needed(arm.node.test, arm.taken) for arm in self.place.arms)
        return any(each.id == name for names in needed for each in names)


def entries_at(scope: Scope, name: str, at: ast.AST | None) -> frozenset[Entry]:
    """Return which bindings of a name reach a node, without what a later statement adds; empty if all may."""
    start = scope.module.file.places.start
    return frozenset(
        each
        for each in scope.reaching(name, at)
        if not isinstance(each, NameBinding) or at is None or start(_whole(scope, each.value)) <= start(at)
    )


def assignments(scope: Scope, name: str, entries: frozenset[Entry]) -> list[Assignment]:
    """Return the assignments of a scope itself to a name, in text order; only some if ``entries`` say so."""
    bindings = scope.bindings(name)
    return [
        Assignment(each, place_in(_whole(scope, each.value), each.value))
        for each in bindings
        if not entries or each in entries
    ]


def is_simple(statement: ast.AST) -> bool:
    """Return whether a node is a statement that contains no others."""
    return isinstance(statement, ast.stmt) and not any(blocks_of(statement))


def _whole(scope: Scope, node: ast.expr) -> ast.AST:
    """Return the part of a scope's body, mostly a statement, that contains a node."""
    start = scope.module.file.places.start
    roots = scope.body.roots
    row = bisect_right(roots, start(node), key=start)
    return roots[row - 1] if row else node


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
