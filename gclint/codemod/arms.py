"""What is known on one side of an ``if``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gclint.network.evaluation.walk import dotted_name
from gclint.network.runsite import Arm


def known_off(arm: Arm) -> Iterator[cst.BaseExpression]:
    """Yield the expressions that are False, None or empty where a call stands."""
    yield from _off(arm.branch.test, arm.taken)


def _off(test: cst.BaseExpression, holds: bool) -> Iterator[cst.BaseExpression]:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _off(test.expression, not holds)
    elif isinstance(test, cst.BooleanOperation):
        # All of what `and` joins holds, or none of what `or` joins.
        if isinstance(test.operator, cst.And if holds else cst.Or):
            yield from _off(test.left, holds)
            yield from _off(test.right, holds)
    elif isinstance(test, cst.Comparison):
        asks_for = cst.Is if holds else cst.IsNot
        (first, *others) = test.comparisons
        if not others and isinstance(first.operator, asks_for) and dotted_name(first.comparator) == "None":
            yield test.left
    elif not holds:
        yield test
