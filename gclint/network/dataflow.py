"""Finds the names through which a loop passes the result of a call on to its next iteration."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.code.project import reachable
from gclint.code.walk import Loop, arguments, children
from gclint.network.evaluation.body import NameBinding
from gclint.network.evaluation.reaching import Reaching

CUTTING_METHODS = {"detach", "item", "tolist", "size", "numel", "dim", "cpu"}
CUTTING_ATTRIBUTES = {"shape", "device", "dtype", "ndim", "is_cuda", "data", "requires_grad"}


class Peers:
    """Calls of the same blocks in a method; not the sites themselves, which would leak memory."""

    def __init__(self) -> None:
        self._calls: list[tuple[ast.Call, tuple[Loop, ...]]] = []
        self._reaching: dict[tuple[Loop, str], Reaching] = {}

    def add(self, call: ast.Call, loops: tuple[Loop, ...]) -> None:
        """Add a call with the loops around it; this comes before any question."""
        self._calls.append((call, loops))

    def fed_back(self, loop: Loop, values: Iterable[ast.expr]) -> frozenset[str]:
        """Return the names in some expressions of a loop that hold what its calls returned before.

        A name that is assigned again before the expression does not count, nor does the shape of a tensor or
        a detached tensor.
        """
        calls = {call for call, loops in self._calls if loop in loops}

        def sources(node: ast.Name | ast.Call) -> Iterator[ast.Name | ast.Call]:
            if isinstance(node, ast.Name):
                key = loop, node.id
                if key not in self._reaching:
                    self._reaching[key] = Reaching(node.id, [loop])
                for entry in self._reaching[key].at(node):
                    if isinstance(entry, NameBinding):
                        yield from flowing(entry.value)

        passed = {node for value in values for node in flowing(value) if isinstance(node, ast.Name)}
        behind = ((node.id, reachable(sources(node), sources)) for node in passed)
        return frozenset(name for name, found in behind if not calls.isdisjoint(found))


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
