"""The assignments of a method to a name, with the conditions under which they are executed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from gclint.network.evaluation.body import Binding, Piece
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.walk import children, dotted_name, walk

_WITHOUT_GRADIENT = frozenset(("no_grad", "inference_mode"))
_SWITCHING = "set_grad_enabled"
GRADIENT_SWITCHES = _WITHOUT_GRADIENT | {_SWITCHING}
"""Contexts and decorators that may keep gradients from being recorded."""
_MAKING_LISTS = frozenset(("list", "dict", "tuple"))

Condition = tuple[cst.BaseExpression, bool]
"""A test, and whether it has to be true."""


@dataclass(frozen=True)
class Assignment:
    """One way in which a name gets a value."""

    binding: Binding
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
        if isinstance(value, cst.Call):
            return dotted_name(value.func) in _MAKING_LISTS
        return isinstance(value, (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.DictComp))

    def requires(self, name: str) -> bool:
        """Return whether it is executed only if the variable ``name`` is not None."""
        return any(name in names_needed(*condition) for condition in self.conditions)


@dataclass(frozen=True)
class _Place:
    conditions: tuple[Condition, ...] = ()
    records: bool = True


def assignments(scope: Scope, name: str) -> list[Assignment]:
    """Return all assignments of a scope itself to a name, in text order."""
    found: list[Assignment] = []
    for piece in () if scope.body is None else scope.body.pieces(name):
        bindings = piece.bindings.get(name, ())
        if bindings:
            statements = list(_statements(piece))
            only = statements[0] if len(statements) == 1 else None
            wholes = {} if only else {node: whole for whole in statements for node in walk(whole)}
            roots = () if isinstance(only, cst.SimpleStatementLine) else piece.nodes or ()
            places = {node: place for root in roots for node, place in _placed(root, _Place())}
            for binding in bindings:
                place = places.get(binding.value, _Place())
                whole = only or wholes.get(binding.value)
                if whole is None or piece.fragment is None:
                    start, end = 0, 0
                else:
                    start, end = scope.range_of(piece.fragment, whole)
                simple = isinstance(whole, cst.SimpleStatementLine)
                # An assignment without recorded gradients makes the name a constant.
                is_known = simple or (isinstance(whole, cst.With) and not place.records)
                found.append(
                    Assignment(
                        binding,
                        place.conditions,
                        place.records,
                        start,
                        end,
                        simple,
                        is_known and whole is not None and _replaces(whole, binding),
                    )
                )
    return found


def reaching(given: Sequence[Assignment], at: int | None) -> tuple[list[Assignment], bool]:
    """Return the assignments that may be the last before a place, and whether one of them always is executed.

    The statements of a function run in their order; only those inside a loop may run again.

    Args:
        given: all assignments of one name.
        at: an offset in the statement that uses the name; None if any assignment may come before it.
    """
    if at is None:
        return list(given), False
    before = [each for each in given if each.start <= at and not (each.simple and at < each.end)]
    last = max((each.start for each in before if each.replaces), default=None)
    return [each for each in before if last is None or each.start >= last], last is not None


def _statements(piece: Piece) -> Iterator[cst.CSTNode]:
    for root in piece.nodes or ():
        if isinstance(root, cst.BaseSuite):
            yield from root.body
        else:
            yield root


def _replaces(statement: cst.CSTNode, binding: Binding) -> bool:
    lines = statement.body.body if isinstance(statement, cst.With) else [statement]
    return not binding.added and any(
        isinstance(node, (cst.Assign, cst.AnnAssign)) and node.value is binding.value
        for line in lines
        for node in children(line)
    )


def _placed(node: cst.CSTNode, place: _Place) -> Iterator[tuple[cst.CSTNode, _Place]]:
    """Yield the nodes that are under a condition, or where no gradients are recorded, with their places."""
    kind = type(node)
    if kind is cst.If:
        node = cst.ensure_type(node, cst.If)
        yield from _placed(node.test, place)
        yield from _placed(node.body, _Place((*place.conditions, (node.test, True)), place.records))
        if node.orelse is not None:
            yield from _placed(node.orelse, _Place((*place.conditions, (node.test, False)), place.records))
        return
    if kind is cst.With and any(stops_gradients(item.item) for item in cst.ensure_type(node, cst.With).items):
        place = _Place(place.conditions, False)
    if place.conditions or not place.records:
        yield node, place
    for child in children(node):
        yield from _placed(child, place)


def stops_gradients(context: cst.BaseExpression) -> bool:
    """Return whether a context manager, or a decorator, keeps gradients from being recorded."""
    called = context.func if isinstance(context, cst.Call) else context
    name = (dotted_name(called) or "").rpartition(".")[2]
    if name == _SWITCHING and isinstance(context, cst.Call) and context.args:
        return dotted_name(context.args[0].value) == "False"
    return name in _WITHOUT_GRADIENT


def names_needed(test: cst.BaseExpression, holds: bool) -> frozenset[str]:
    """Return the names that cannot be None if a test is true, or if it is false."""
    if isinstance(test, cst.Name):
        return frozenset((test.value,)) if holds else frozenset()
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return names_needed(test.expression, not holds)
    if isinstance(test, cst.BooleanOperation):
        if isinstance(test.operator, cst.And) is holds:
            return names_needed(test.left, holds) | names_needed(test.right, holds)
        return frozenset()
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1 and isinstance(test.left, cst.Name):
        (only,) = test.comparisons
        if dotted_name(only.comparator) == "None":
            needed = cst.IsNot if holds else cst.Is
            return frozenset((test.left.value,)) if isinstance(only.operator, needed) else frozenset()
    return frozenset()
