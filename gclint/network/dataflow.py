"""Finds the names through which a loop passes the result of a call on to its next iteration."""

from __future__ import annotations

import libcst as cst

from gclint.network.evaluation.walk import children, names_in, walk

CUTTING_METHODS = {"detach", "item", "tolist", "size", "numel", "dim", "cpu"}
CUTTING_ATTRIBUTES = {"shape", "device", "dtype", "ndim", "is_cuda", "data", "requires_grad"}
_GROWING_METHODS = {"append", "extend", "insert", "add", "update"}


def carried_names(loop: cst.For | cst.While, calls: frozenset[cst.Call]) -> frozenset[str]:
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

    def __init__(self, calls: frozenset[cst.Call]) -> None:
        self._calls = calls
        self.at_call: frozenset[str] = frozenset()

    def block(self, block: cst.BaseSuite, held: frozenset[str]) -> frozenset[str]:
        for statement in block.body:
            held = self._statement(statement, held)
        return held

    def _statement(self, statement: cst.CSTNode, held: frozenset[str]) -> frozenset[str]:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                held = self._simple(small, held)
            return held
        if isinstance(statement, cst.If):
            held = self._note(statement.test, held)
            return self.block(statement.body, held) | self._orelse(statement.orelse, held)
        if isinstance(statement, cst.Match):
            held = self._note(statement.subject, held)
            return held.union(*(self.block(case.body, held) for case in statement.cases))
        if isinstance(statement, (cst.For, cst.While)):
            return self._loop(statement, held)
        if isinstance(statement, cst.Try):
            held = self.block(statement.body, held)
            for handler in statement.handlers:
                held |= self.block(handler.body, held)
            held |= self._orelse(statement.orelse, held)
            return self._orelse(statement.finalbody, held)
        if isinstance(statement, cst.With):
            return self.block(statement.body, held)
        return held

    def _loop(self, loop: cst.For | cst.While, held: frozenset[str]) -> frozenset[str]:
        if isinstance(loop, cst.For):
            held = self._note(loop.iter, held)
            targets = frozenset(_target_names(loop.target))
            held = held | targets if self._holds(loop.iter, held) else held - targets
        inner = self.block(loop.body, held)
        inner = self.block(loop.body, held | inner)
        return held | inner | self._orelse(loop.orelse, held | inner)

    def _orelse(self, orelse: cst.If | cst.Else | cst.Finally | None, held: frozenset[str]) -> frozenset[str]:
        if orelse is None:
            return held
        if isinstance(orelse, cst.If):
            return self._statement(orelse, held)
        return self.block(orelse.body, held)

    def _simple(self, statement: cst.CSTNode, held: frozenset[str]) -> frozenset[str]:
        if isinstance(statement, cst.Assign):
            held = self._note(statement.value, held)
            holds = self._holds(statement.value, held)
            for target in statement.targets:
                held = _assign(target.target, holds, held)
            return held
        if isinstance(statement, cst.AnnAssign) and statement.value is not None:
            held = self._note(statement.value, held)
            return _assign(statement.target, self._holds(statement.value, held), held)
        if isinstance(statement, cst.AugAssign):
            held = self._note(statement.value, held)
            if self._holds(statement.value, held):
                return held | frozenset(_target_names(statement.target))
            return held
        if isinstance(statement, cst.Expr):
            held = self._note(statement.value, held)
            call = statement.value
            if (
                isinstance(call, cst.Call)
                and isinstance(call.func, cst.Attribute)
                and call.func.attr.value in _GROWING_METHODS
                and any(self._holds(arg.value, held) for arg in call.args)
            ):
                return held | frozenset(names_in(call.func.value))
        return held

    def _note(self, expression: cst.CSTNode, held: frozenset[str]) -> frozenset[str]:
        """Record the names held at the calls in ``expression``; return the names held after it."""
        named: list[cst.NamedExpr] = []
        for node in walk(expression):
            if isinstance(node, cst.Call) and node in self._calls:
                self.at_call |= held
            elif isinstance(node, cst.NamedExpr):
                named.append(node)
        for node in named:
            held = _assign(node.target, self._holds(node.value, held), held)
        return held

    def _holds(self, expression: cst.CSTNode, held: frozenset[str]) -> bool:
        return any(
            (isinstance(node, cst.Name) and node.value in held) or node in self._calls
            for node in flowing(expression)
        )


def flowing(expression: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the names and calls in an expression from whose tensors the result is computed."""
    found: list[cst.CSTNode] = []
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (cst.Comparison, cst.Lambda)):
            continue
        if isinstance(node, cst.Name):
            found.append(node)
        elif isinstance(node, cst.Attribute):
            if node.attr.value not in CUTTING_ATTRIBUTES:
                waiting.append(node.value)
        elif isinstance(node, cst.Call):
            found.append(node)
            if isinstance(node.func, cst.Attribute):
                if node.func.attr.value in CUTTING_METHODS:
                    continue
                waiting.append(node.func.value)
            waiting.extend(arg.value for arg in node.args)
        elif isinstance(node, cst.IfExp):
            waiting += [node.body, node.orelse]
        elif isinstance(node, cst.Subscript):
            waiting.append(node.value)
        else:
            waiting.extend(children(node))
    return found


def _target_names(target: cst.CSTNode) -> list[str]:
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, (cst.Tuple, cst.List)):
        return [name for element in target.elements for name in _target_names(element.value)]
    if isinstance(target, cst.Subscript):
        return list(names_in(target.value))
    return []


def _assign(target: cst.CSTNode, holds: bool, held: frozenset[str]) -> frozenset[str]:
    names = frozenset(_target_names(target))
    if holds:
        return held | names
    return held if isinstance(target, cst.Subscript) else held - names
