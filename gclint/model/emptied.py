"""Where code reads a cache after blocks have run, which as checkpointing layers put nothing into it.

The methods that run blocks themselves are held against what they do without caches. This is about what calls
those: it may read from a cache how much was processed, or run the model once more with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gclint.code.walk import last_name, walk
from gclint.model import known
from gclint.model.cache_values import FIGURES
from gclint.model.compiled import Compiled
from gclint.model.frames import Frame
from gclint.model.notes import Kind, Root, quoted
from gclint.model.spaces import Spaces
from gclint.model.surroundings import Block, Matter
from gclint.model.values import Call, Class, Function, Value, with_roots
from gclint.releases import EVER_NEUTRALISED
from gclint.verify.worker.vocabulary import PLAIN_CACHES, USE_CACHE

_CACHE = Root(Kind.MADE, "what may be a cache")
_PARTS = PLAIN_CACHES | known.CACHE_PARTS
"""Attributes that are caches."""
_WITHOUT_LOOKING = _PARTS | FIGURES
"""Attributes that tell nothing of what is in a cache."""
_LOOKING = frozenset(("isinstance", "type", "id", "hasattr", "getattr", "print"))
"""Functions that see nothing of what is in a cache."""


class Emptied(Compiled):
    """Follows the code around blocks, and takes note of what reads caches that they have filled."""

    def __init__(self, spaces: Spaces, *, is_quiet: bool = False, most_steps: int) -> None:
        """Start without having seen anything."""
        super().__init__(spaces, is_quiet=is_quiet, most_steps=most_steps)
        self._runners: set[ast.AST] = set()
        """The functions that run blocks themselves."""
        self._caching: set[Block] = set()
        """The blocks that get a cache."""
        self._before: frozenset[Block] = frozenset()
        """What has filled a cache that the function gets which is followed."""

    # -- what is a cache, which no block is said to hold for that

    def _value_name(self, node: ast.Name, frame: Frame) -> Value:
        found = super()._value_name(node, frame)
        if self._inside or node.id not in PLAIN_CACHES:
            return found
        return Value(found.things, found.roots | {_CACHE})  # Also if it is None here, as in training.

    def _hold(self, roots: Iterable[Root], blocks: frozenset[Block], frame: Frame) -> None:
        super()._hold({each for each in roots if each != _CACHE}, blocks, frame)

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        parent = name.rpartition(".")[0]
        if name not in _LOOKING and known.OUTPUTS.isdisjoint((name, parent)):
            self._see_reading(call.all(), node, frame)
        found = super()._call_external(name, call, node, frame)
        return with_roots(found, (_CACHE,)) if name in known.CACHES and not self._inside else found

    # -- what blocks have filled

    def _run_block(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None
    ) -> Value:
        arguments = function.node.args
        names = {each.arg for each in (*arguments.args, *arguments.kwonlyargs)} | dict(call.named).keys()
        if not (EVER_NEUTRALISED - {USE_CACHE}).isdisjoint(names):
            self._caching |= self._classes(call.positional[0])
        self._runners.update(self.stack[-1:])
        return super()._run_block(function, call, node, frame, owner)

    def _filled_by(self, values: Iterable[Value], frame: Frame) -> frozenset[Block]:
        """Return what has filled values in this function, or in those that it has called."""
        if not (self._before or self._caching):
            return frozenset()
        return self._filling(frame) if any(_CACHE in each.roots for each in values) else frozenset()

    def _filling(self, frame: Frame) -> frozenset[Block]:
        """Return what has filled caches in this function, or in those that it has called."""
        if self._inside or not self.stack or self.stack[-1] in self._runners:
            return frozenset()
        return self._before.union(each for blocks, _ in self._held(frame) for each in blocks & self._caching)

    def _see_reading(self, values: Iterable[Value], node: ast.AST, frame: Frame) -> None:
        blocks = self._filled_by(values, frame)
        if blocks:
            self.see(Matter.EMPTIED, quoted(node), node, frame, blocks)

    def entry(self, function: Function, call: Call, owner: Class | None) -> object:
        """Return what is the same for calls of which following one is enough."""
        return super().entry(function, call, owner), self._before

    def enter(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None = None
    ) -> Value:
        """Follow a function, which may run the blocks once more with what they have filled."""
        filled = self._filled_by(call.all(), frame)
        outer, self._before = self._before, filled
        try:
            found = super().enter(function, call, node, frame, owner)
            # Of a block itself there is no summary.
            summary = self._summaries.get(self.entry(function, call, owner)) if filled else None
        finally:
            self._before = outer
        again = filled if summary is None else summary.runs & self._caching
        if again:
            self.see(Matter.EMPTIED, quoted(node), node, frame, filled.union(again))
        return found

    def attribute(
        self, value: Value, name: str, node: ast.AST, frame: Frame, *, is_optional: bool = False
    ) -> Value:
        """Return an attribute, which is a cache, or something of one."""
        # No cache has those of tensors, and what takes a tensor out of one is seen by itself.
        if name not in _WITHOUT_LOOKING:
            self._see_reading((value,), node, frame)
        found = super().attribute(value, name, node, frame, is_optional=is_optional)
        return with_roots(found, (_CACHE,)) if name in _PARTS and not self._inside else found

    def _value_subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        if not self._inside and self._caching:
            self._see_reading((self.quietly(node.value, frame),), node, frame)
        return super()._value_subscript(node, frame)

    def decide(self, test: ast.expr, frame: Frame) -> bool | None:
        """Return whether a test holds: one for a cache that blocks have filled may, as users pass one."""
        decided = super().decide(test, frame)
        is_whole = isinstance(test, (ast.BoolOp, ast.UnaryOp))  # Its parts are decided by themselves.
        if decided is None or is_whole or not self._filling(frame):
            return decided
        asked = [each for each in walk(test) if isinstance(each, ast.expr)]
        is_cache = any(_CACHE in self.quietly(each, frame).roots for each in asked)
        return None if is_cache or USE_CACHE in map(last_name, asked) else decided

    def iterate(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """Return what a loop over a value goes over."""
        self._see_reading((value,), getattr(node, "iter", node), frame)
        return super().iterate(value, node, frame)

    def test(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression that is asked whether it is true, as a cache is if something is in it."""
        value = super().test(node, frame)
        self._see_reading((value,), node, frame)
        return value
