"""Where code compiles blocks, or what runs them, as one graph, in which no reentrant checkpoint can be."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gclint.code.walk import last_name
from gclint.model.frames import Frame
from gclint.model.gradients import is_false
from gclint.model.notes import quoted
from gclint.model.spaces import Spaces
from gclint.model.surroundings import Block, Matter, Surroundings
from gclint.model.values import Call, Class, External, Function, Partial, Thing, Value, of

_COMPILING = "torch.compile"
_METHOD = "compile"
"""The method of a module that does so in place."""
_OPTION = "fullgraph"


class Compiled(Surroundings):
    """Follows the code around blocks, and takes note of what is compiled as one graph with a block in it."""

    def __init__(self, spaces: Spaces, *, is_quiet: bool = False, most_steps: int) -> None:
        """Start without having seen anything."""
        super().__init__(spaces, is_quiet=is_quiet, most_steps=most_steps)
        self._one_graph: set[ast.AST] = set()
        """The functions that are compiled so where they are called by no name of their own."""

    def _call(self, thing: Thing, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        if isinstance(node, ast.Call) and last_name(node.func) == _METHOD:
            self._see_compiling((self._receiver(node, frame),), call, node, frame)
        return super()._call(thing, function, call, node, frame)

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        if name == _COMPILING:
            if not call.positional:
                return of(Partial(of(External(name)), (), call.named))
            self._see_compiling(call.positional[:1], call, node, frame)
        return super()._call_external(name, call, node, frame)

    def _see_compiling(self, compiled: Iterable[Value], call: Call, node: ast.expr, frame: Frame) -> None:
        is_one = dict(call.named).get(_OPTION, call.options)
        if is_one is None or is_false(is_one):
            return
        held = self.within(*compiled)
        self._see(self._classes(of(*(each for each in held if self.is_block([of(each)])))), node, frame)
        things = (thing for each in compiled for thing in each.things)
        self._one_graph |= {each.node for each in things if isinstance(each, Function)}

    def enter(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None = None
    ) -> Value:
        """Follow a function, which may be compiled with the blocks that it runs."""
        found = super().enter(function, call, node, frame, owner)
        if self._is_one_graph(function):
            is_block = owner is not None and self.is_block(call.positional[:1])
            runs = self._classes(call.positional[0]) if is_block else frozenset[Block]()
            summary = self._summaries.get(self.entry(function, call, owner))
            self._see(runs if summary is None else runs.union(summary.runs), node, frame)
        return found

    def _is_one_graph(self, function: Function) -> bool:
        """Tell whether a function is compiled so, by a decorator or where it is given away."""
        given = (
            each
            for decorator in getattr(function.node, "decorator_list", ())
            if isinstance(decorator, ast.Call)  # By whatever name it is imported.
            for each in decorator.keywords
        )
        return function.node in self._one_graph or any(
            each.arg == _OPTION and getattr(each.value, "value", None) is not False for each in given
        )

    def _see(self, blocks: frozenset[Block], node: ast.AST, frame: Frame) -> None:
        if blocks:
            self.see(Matter.ONE_GRAPH, quoted(node), node, frame, blocks)
