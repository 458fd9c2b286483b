"""Which of several classes an object may have at a place, by the tests for its class around it."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from gclint.code.tree import blocks_of
from gclint.code.walk import structure, walk
from gclint.network.assignments import contains
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.scope import Scope
from gclint.network.evaluation.values import ClassValue
from gclint.network.index import subclasses

_LEAVING = (ast.Continue, ast.Break, ast.Return, ast.Raise)


class _Asked(NamedTuple):
    """A question for the class of an object, and the answer that leads to a place."""

    kinds: ast.expr
    is_exact: bool
    """Whether a subclass is another class."""
    holds: bool


def narrowed(
    scope: Scope, place: ast.expr, receiver: ast.expr, infos: Iterable[ClassInfo]
) -> tuple[ClassInfo, ...]:
    """Return those of some classes that an object may have at a place of a method.

    Args:
        scope: the method.
        place: an expression in it.
        receiver: the expression of the object there.
        infos: the classes that it has by what it is.
    """
    found, wanted = tuple(infos), structure(receiver)
    names = {each.id for each in walk(receiver) if isinstance(each, ast.Name)}
    for test, holds in _tests_around(scope.body.roots, place):
        for asked in _questions(test, wanted, holds=holds):
            if not _is_bound_between(scope, names, test, place):
                found = tuple(each for each in found if _may_have(scope, each, asked))
    return found


def _tests_around(roots: Iterable[ast.AST], place: ast.expr) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the tests that are passed on the way to a place, and whether they hold there."""
    block: Sequence[ast.stmt] = [each for each in roots if isinstance(each, ast.stmt)]
    while block:
        index = next((number for number, each in enumerate(block) if contains(each, place)), None)
        if index is None:
            return
        for each in block[:index]:
            if isinstance(each, ast.If) and not each.orelse and isinstance(each.body[-1], _LEAVING):
                yield each.test, False
        statement = block[index]
        inner = (each for each in blocks_of(statement) if any(contains(one, place) for one in each))
        block = next(inner, ())
        if isinstance(statement, ast.If) and block:
            yield statement.test, block is statement.body
        elif not block:
            for node in walk(statement):
                if isinstance(node, ast.IfExp) and place not in walk(node.test) and place in walk(node):
                    yield node.test, place in walk(node.body)


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
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and _calls(test.left, "type"):
        is_same = isinstance(test.ops[0], (ast.Is, ast.Eq))
        given = test.left.args if isinstance(test.left, ast.Call) else []
        if [structure(each) for each in given] == [wanted] and (is_same or _differs(test.ops[0])):
            yield _Asked(test.comparators[0], is_exact=True, holds=holds is is_same)


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def _differs(operator: ast.cmpop) -> bool:
    return isinstance(operator, (ast.IsNot, ast.NotEq))


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
