"""Finds the names through which a loop passes the result of a call on to its next iteration."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

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
        self._of_loop: dict[Loop, tuple[set[ast.Call], set[ast.Name]]] = {}
        """The calls in a loop, and the names that are known to hold nothing that these have returned."""

    def add(self, call: ast.Call, loops: tuple[Loop, ...]) -> None:
        """Add a call with the loops around it; this comes before any question."""
        self._calls.append((call, loops))

    def fed_back(self, loop: Loop, values: Iterable[ast.expr]) -> frozenset[str]:
        """Return the names in some expressions of a loop that hold what its calls returned before.

        A name that is assigned again before the expression does not count, nor does the shape of a tensor or
        a detached tensor.
        """
        passed = {node for value in values for node in flowing(value) if isinstance(node, ast.Name)}
        return frozenset(node.id for node in passed if self._leads_to_call(node, loop))

    def _leads_to_call(self, name: ast.Name, loop: Loop) -> bool:
        """Tell whether a name in a loop may hold what a call of the blocks in it has returned."""
        if loop not in self._of_loop:
            self._of_loop[loop] = {call for call, loops in self._calls if loop in loops}, set()
        calls, without = self._of_loop[loop]
        waiting, met = [name], set[ast.Name]()
        while waiting:
            node = waiting.pop()
            if node in met or node in without:
                continue
            met.add(node)
            sources = [*self._sources(node, loop)]
            if not calls.isdisjoint(sources):
                return True
            waiting += [each for each in sources if isinstance(each, ast.Name)]
        without |= met
        return False

    def _sources(self, node: ast.Name, loop: Loop) -> Iterator[ast.Name | ast.Call]:
        """Yield the names and calls from which a name is computed that is used in a loop."""
        key = loop, node.id
        if key not in self._reaching:
            self._reaching[key] = Reaching(node.id, [loop])
        for entry in self._reaching[key].at(node):
            if isinstance(entry, NameBinding):
                yield from flowing(entry.value)


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
