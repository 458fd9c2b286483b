"""What is known on one side of an ``if``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gclint.network.runsite import Arm
from gclint.source.walk import is_constant


def known_off(arm: Arm) -> Iterator[ast.expr]:
    """Yield the expressions that are False, None or empty where a call stands."""
    yield from _off(arm.node.test, arm.taken)


def _off(test: ast.expr, holds: bool) -> Iterator[ast.expr]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _off(test.operand, not holds)
    elif isinstance(test, ast.BoolOp):
        # All of what `and` joins holds, or none of what `or` joins.
        if isinstance(test.op, ast.And if holds else ast.Or):
            for each in test.values:
                yield from _off(each, holds)
    elif isinstance(test, ast.Compare):
        is_none = isinstance(test.ops[0], ast.Is if holds else ast.IsNot)
        if is_none and len(test.ops) == 1 and is_constant(test.comparators[0], None):
            yield test.left
    elif not holds:
        yield test
