"""Which of several classes an object may have at a place, by the tests for its class around it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from gclint.code.tree import blocks_of
from gclint.code.walk import COMPREHENSIONS, LEAVING, LOOPS, structure, walk
from gclint.network.assignments import contains
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import ClassValue
from gclint.network.index import subclasses


class _Asked(NamedTuple):
    """A question for the class of an object, and the answer that leads to a place."""

    kinds: ast.expr
    is_exact: bool
    """Whether a subclass is another class."""
    holds: bool


def narrowed(
    scope: Scope, place: ast.expr, receiver: ast.expr, infos: Iterable[ClassInfo]
) -> frozenset[ClassInfo]:
    """Return those of some classes that an object has at a place of a method, as far as tests tell.

    That may be too few: what wraps an object may have another class, and of what a test asks for, not all
    need be known. It is enough to keep silent about a call, and not to call a repair safe.

    Args:
        scope: the method.
        place: an expression in it.
        receiver: the expression of the object there.
        infos: the classes that it has by what it is.
    """
    found, wanted = tuple(infos), structure(receiver)
    names = {each.id for each in walk(receiver) if isinstance(each, ast.Name)}
    for test, holds in _tests_around(scope.body.roots, place, names):
        for asked in _questions(test, wanted, holds=holds):
            if not _is_bound_between(scope, names, test, place):
                found = tuple(each for each in found if _may_have(scope, each, asked))
    return frozenset(found)


def _tests_around(
    roots: Iterable[ast.AST], place: ast.expr, names: Collection[str]
) -> list[tuple[ast.expr, bool]]:
    """Return the tests that are passed on the way to a place, and whether they hold there.

    What was asked outside of a loop that binds one of some names says nothing of its further turns.
    """
    found: list[tuple[ast.expr, bool]] = []
    block: Sequence[ast.stmt] = [each for each in roots if isinstance(each, ast.stmt)]
    while block:
        index = next((number for number, each in enumerate(block) if contains(each, place)), None)
        if index is None:
            break
        found += (known for each in block[:index] for known in _left_behind(each))
        statement = block[index]
        inner = (each for each in blocks_of(statement) if any(contains(one, place) for one in each))
        block = next(inner, ())
        if isinstance(statement, LOOPS) and _binds(statement, names):
            found.clear()
        if isinstance(statement, ast.If) and block:
            found.append((statement.test, block is statement.body))
        for node in () if block else walk(statement):
            if isinstance(node, COMPREHENSIONS) and place in walk(node) and _binds(node, names):
                found.clear()
            elif isinstance(node, ast.IfExp) and place not in walk(node.test) and place in walk(node):
                found.append((node.test, place in walk(node.body)))
    return found


def _left_behind(statement: ast.stmt) -> Iterator[tuple[ast.expr, bool]]:
    """Yield what is known behind a statement, since the other side of a condition leaves."""
    if isinstance(statement, ast.If):
        is_one_left = _leaves(statement.body)
        if is_one_left or _leaves(statement.orelse):
            yield statement.test, not is_one_left
            for each in statement.orelse if is_one_left else statement.body:
                yield from _left_behind(each)


def _leaves(block: Sequence[ast.stmt]) -> bool:
    last = block[-1] if block else None
    both = isinstance(last, ast.If) and _leaves(last.body) and _leaves(last.orelse)
    return both or isinstance(last, LEAVING)


def _binds(node: ast.AST, names: Collection[str]) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id in names and not isinstance(each.ctx, ast.Load)
        for each in walk(node)
    )


def _questions(test: ast.expr, wanted: Hashable, *, holds: bool) -> Iterator[_Asked]:
    """Yield what a test has asked about the class of an object, where it is known which answer it got."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _questions(test.operand, wanted, holds=not holds)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for each in test.values:
            yield from _questions(each, wanted, holds=holds)
    elif isinstance(test, ast.Call) and len(test.args) == 2 and _calls(test, "isinstance"):
        if structure(test.args[0]) == wanted:
            yield _Asked(test.args[1], is_exact=False, holds=holds)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        is_same = isinstance(test.ops[0], (ast.Is, ast.Eq))
        if _whose_class(test.left) == wanted and (is_same or isinstance(test.ops[0], (ast.IsNot, ast.NotEq))):
            yield _Asked(test.comparators[0], is_exact=True, holds=holds is is_same)


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _whose_class(node: ast.expr) -> Hashable:
    """Return the structure of what an expression is the class of; None for any other."""
    if isinstance(node, ast.Attribute):
        return structure(node.value) if node.attr == "__class__" else None
    given = node.args if isinstance(node, ast.Call) and _calls(node, "type") else ()
    return structure(given[0]) if len(given) == 1 else None


def _is_bound_between(scope: Scope, names: set[str], test: ast.expr, place: ast.expr) -> bool:
    """Return whether one of some names may become something else between a test and a place behind it."""
    start, end = scope.span(test)[1], scope.span(place)[0]
    return any(
        isinstance(node, ast.Name)
        and node.id in names
        and not isinstance(node.ctx, ast.Load)
        and start <= scope.span(node)[0] < end
        for node in scope.body.nodes
    )


def _may_have(scope: Scope, info: ClassInfo, asked: _Asked) -> bool:
    """Return whether an object of a class, or of one that inherits it, may get an answer.

    Of a class that is not known, it may get any.
    """
    kinds = asked.kinds.elts if isinstance(asked.kinds, ast.Tuple) else [asked.kinds]
    known = set[ClassInfo]()
    for each in kinds:
        values = scope.evaluate(each)
        known |= {value.info for value in values if isinstance(value, ClassValue)}
        if len(values) != 1 or not all(isinstance(value, ClassValue) for value in values):
            return True

    def may_get_it(kin: ClassInfo) -> bool:
        is_one = not known.isdisjoint((kin,) if asked.is_exact else kin.mro)
        return is_one is asked.holds

    return may_get_it(info) or any(map(may_get_it, subclasses(scope.module.library.project, info)))
