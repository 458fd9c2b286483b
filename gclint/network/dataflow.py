"""Finds the names through which a loop passes the result of a call on to its next iteration."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gclint.code.walk import LOOPS, WITHS, Loop, arguments, children, names_in, walk
from gclint.network.evaluation.body import unstarred

CUTTING_METHODS = {"detach", "item", "tolist", "size", "numel", "dim", "cpu"}
CUTTING_ATTRIBUTES = {"shape", "device", "dtype", "ndim", "is_cuda", "data", "requires_grad"}
_GROWING_METHODS = {"append", "extend", "insert", "add", "update"}


def carried_names(loop: Loop, calls: frozenset[ast.Call]) -> frozenset[str]:
    """Return the names that hold the result of an earlier iteration when one of ``calls`` is reached.

    A name that is assigned again before the call does not count, nor does the shape of a tensor or a
    detached tensor.
    """
    flow = _Flow(calls)
    after_one_step = flow.block(loop.body, frozenset())
    flow.at_call = frozenset()
    flow.block(loop.body, after_one_step)
    return flow.at_call


class _Flow:
    """Follows statements with the set of names that hold a result of the calls."""

    def __init__(self, calls: frozenset[ast.Call]) -> None:
        self._calls = calls
        self.at_call: frozenset[str] = frozenset()

    def block(self, block: Sequence[ast.stmt], held: frozenset[str]) -> frozenset[str]:
        for statement in block:
            held = self._statement(statement, held)
        return held

    def _statement(self, statement: ast.stmt, held: frozenset[str]) -> frozenset[str]:
        if isinstance(statement, ast.If):
            held = self._note(statement.test, held)
            return self.block(statement.body, held) | self.block(statement.orelse, held)
        if isinstance(statement, ast.Match):
            held = self._note(statement.subject, held)
            return held.union(*(self.block(case.body, held) for case in statement.cases))
        if isinstance(statement, LOOPS):
            return self._loop(statement, held)
        if isinstance(statement, ast.Try):
            held = self.block(statement.body, held)
            for handler in statement.handlers:
                held |= self.block(handler.body, held)
            held |= self.block(statement.orelse, held)
            return self.block(statement.finalbody, held)
        if isinstance(statement, WITHS):
            return self.block(statement.body, held)
        return self._simple(statement, held)

    def _loop(self, loop: Loop, held: frozenset[str]) -> frozenset[str]:
        if not isinstance(loop, ast.While):
            held = self._note(loop.iter, held)
            targets = frozenset(_target_names(loop.target))
            held = held | targets if self._holds(loop.iter, held) else held - targets
        inner = self.block(loop.body, held)
        inner = self.block(loop.body, held | inner)
        return held | inner | self.block(loop.orelse, held | inner)

    def _simple(self, statement: ast.stmt, held: frozenset[str]) -> frozenset[str]:
        if isinstance(statement, ast.Assign):
            held = self._note(statement.value, held)
            holds = self._holds(statement.value, held)
            for target in statement.targets:
                held = _assign(target, holds, held)
            return held
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            held = self._note(statement.value, held)
            return _assign(statement.target, self._holds(statement.value, held), held)
        if isinstance(statement, ast.AugAssign):
            held = self._note(statement.value, held)
            if self._holds(statement.value, held):
                return held | frozenset(_target_names(statement.target))
            return held
        if isinstance(statement, ast.Expr):
            held = self._note(statement.value, held)
            call = statement.value
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in _GROWING_METHODS
                and any(self._holds(arg.value, held) for arg in arguments(call))
            ):
                return held | frozenset(names_in(call.func.value))
        return held

    def _note(self, expression: ast.expr, held: frozenset[str]) -> frozenset[str]:
        """Record the names held at the calls in ``expression``; return the names held after it."""
        named: list[ast.NamedExpr] = []
        for node in walk(expression):
            if isinstance(node, ast.Call) and node in self._calls:
                self.at_call |= held
            elif isinstance(node, ast.NamedExpr):
                named.append(node)
        for node in named:
            held = _assign(node.target, self._holds(node.value, held), held)
        return held

    def _holds(self, expression: ast.expr, held: frozenset[str]) -> bool:
        return any(
            (isinstance(node, ast.Name) and node.id in held) or node in self._calls
            for node in flowing(expression)
        )


def flowing(expression: ast.expr) -> list[ast.Name | ast.Call]:
    """Return the names and calls in an expression from whose tensors the result is computed."""
    found: list[ast.Name | ast.Call] = []
    waiting: list[ast.AST] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Compare, ast.Lambda)):
            continue
        if isinstance(node, ast.Name):
            found.append(node)
        elif isinstance(node, ast.Attribute):
            if node.attr not in CUTTING_ATTRIBUTES:
                waiting.append(node.value)
        elif isinstance(node, ast.Call):
            found.append(node)
            if isinstance(node.func, ast.Attribute):
                if node.func.attr in CUTTING_METHODS:
                    continue
                waiting.append(node.func.value)
            waiting.extend(arg.value for arg in arguments(node))
        elif isinstance(node, ast.IfExp):
            waiting += [node.body, node.orelse]
        elif isinstance(node, ast.Subscript):
            waiting.append(node.value)
        else:
            waiting.extend(children(node))
    return found


def _target_names(target: ast.expr) -> list[str]:
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for each in target.elts for name in _target_names(unstarred(each))]
    if isinstance(target, ast.Subscript):
        return list(names_in(target.value))
    return []


def _assign(target: ast.expr, holds: bool, held: frozenset[str]) -> frozenset[str]:
    names = frozenset(_target_names(target))
    if holds:
        return held | names
    return held if isinstance(target, ast.Subscript) else held - names
