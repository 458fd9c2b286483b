"""Reaching definitions: which of several bindings of a name reach a place where it is used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import libcst as cst

from gclint.network.evaluation.body import BINDING_KINDS, Binding, Piece, collect_bindings
from gclint.network.evaluation.walk import children, walk_scope
from gclint.source.fragment import Fragment

Entry: TypeAlias = "Binding | cst.FunctionDef | None"
"""A binding or function that may reach a place; None stands for the value before the code runs."""
_Live: TypeAlias = "frozenset[Entry]"
_DEAD: _Live = frozenset()
_LEAVING = (cst.Return, cst.Raise, cst.Break, cst.Continue)
_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.GeneratorExp, cst.DictComp)
# Most nodes are of other types, and ``isinstance`` is slow for LibCST's nodes.
_NOT_PLAIN = frozenset(
    (*_COMPREHENSIONS, cst.Name, cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.Call, cst.NamedExpr)
)


class Reaching:
    """The bindings of one name that reach each place of a body.

    In a loop, bindings of earlier iterations reach the next one unless they are replaced. An addition to a
    container reaches every place that the container reaches.
    """

    def __init__(self, name: str, pieces: Sequence[Piece]) -> None:
        """Follow ``name`` through ``pieces``, which are in the order of the text."""
        self.pieces = pieces
        self._name = name
        self._places: defaultdict[cst.CSTNode, _Live] = defaultdict(frozenset)
        self._additions: list[tuple[Binding, _Live]] = []
        self._loops = 0
        self._fragment: Fragment | None = None
        self.fragments: dict[cst.FunctionDef, Fragment | None] = {}
        """The parsed text that each function of this name is part of."""
        live: _Live = frozenset((None,))
        for piece in pieces:
            self._fragment = piece.fragment
            for node in piece.nodes or ():
                live = self._any(node, live)

    def has(self, place: cst.CSTNode) -> bool:
        """Return whether it is known what reaches ``place``."""
        return place in self._places

    def at(self, place: cst.CSTNode) -> frozenset[Entry]:
        """Return what reaches ``place``, a use of the name or an inner scope; empty if that is not known."""
        live = self._places.get(place, _DEAD)
        return live | {binding for binding, seen in self._additions if live & seen}

    # -- statements

    def _any(self, node: cst.CSTNode, live: _Live) -> _Live:
        """Follow a statement, or the code of a comprehension."""
        if isinstance(node, (cst.For, cst.While)):
            return self._loop(node, live)
        if isinstance(node, cst.If):
            live = self._expression(node.test, live)
            other = live if node.orelse is None else self._any(node.orelse, live)
            return self._suite(node.body, live) | other
        if isinstance(node, (cst.Else, cst.Finally)):
            return self._suite(node.body, live)
        if isinstance(node, (cst.Try, cst.TryStar)):
            return self._try(node, live)
        if isinstance(node, cst.With):
            for item in node.items:
                live = self._expression(item.item, live)
                live = self._bound(item, live)
            return self._suite(node.body, live)
        if isinstance(node, cst.Match):
            live = self._expression(node.subject, live)
            return live.union(*(self._suite(case.body, live) for case in node.cases))
        if isinstance(node, cst.FunctionDef):
            return self._function(node, live)
        if isinstance(node, cst.SimpleStatementLine):
            return self._simple(node.body, live)
        return self._expression(node, live)

    def _suite(self, suite: cst.BaseSuite, live: _Live) -> _Live:
        if isinstance(suite, cst.SimpleStatementSuite):
            return self._simple(suite.body, live)
        for statement in suite.body:
            live = self._any(statement, live)
        return live

    def _loop(self, loop: cst.For | cst.While, live: _Live) -> _Live:
        if isinstance(loop, cst.For):
            live = self._expression(loop.iter, live)
        entry = live.union(self._made_in(loop))
        inner = self._bound(loop, entry) if isinstance(loop, cst.For) else self._expression(loop.test, entry)
        self._loops += 1
        self._suite(loop.body, inner)
        self._loops -= 1
        return entry if loop.orelse is None else entry | self._any(loop.orelse, entry)

    def _try(self, node: cst.Try | cst.TryStar, live: _Live) -> _Live:
        anywhere = live.union(self._made_in(node.body))
        after = self._suite(node.body, live)
        if node.orelse is not None:
            after = self._any(node.orelse, after)
        after = after.union(*(self._suite(handler.body, anywhere) for handler in node.handlers))
        return after if node.finalbody is None else self._any(node.finalbody, after)

    def _function(self, node: cst.FunctionDef, live: _Live) -> _Live:
        if self._loops:
            # A function that is defined outside of loops may be called in one.
            self._places[node] |= live
        if node.name.value != self._name:
            return live
        self.fragments[node] = self._fragment
        return frozenset((node,))

    def _simple(self, body: Sequence[cst.CSTNode], live: _Live) -> _Live:
        for small in body:
            if isinstance(small, (cst.Assign, cst.AnnAssign)) and small.value is not None:
                live = self._expression(small.value, live)
                for target in small.targets if isinstance(small, cst.Assign) else ():
                    if isinstance(target.target, (cst.Subscript, cst.Attribute)):
                        live = self._expression(target.target, live)
                live = self._bound(small, live)
            elif isinstance(small, cst.AugAssign):
                live = self._expression(small.value, live)
                live = self._expression(small.target, live)
                self._additions += [(binding, live) for binding in self._own(small)]
            else:
                live = self._expression(small, live)
                if isinstance(small, _LEAVING):
                    return _DEAD
        return live

    # -- expressions

    def _expression(self, node: cst.CSTNode, live: _Live) -> _Live:
        kind = type(node)
        if kind not in _NOT_PLAIN:
            for child in children(node):
                live = self._expression(child, live)
            return live
        if isinstance(node, cst.Name):
            if node.value == self._name:
                self._places[node] |= live
            return live
        if isinstance(node, _COMPREHENSIONS):
            self._comprehension(node, live)
            return live
        if isinstance(node, (cst.Lambda, cst.FunctionDef, cst.ClassDef)):
            if self._loops:
                self._places[node] |= live
            return live
        for child in children(node):
            live = self._expression(child, live)
        if isinstance(node, cst.Call):
            self._additions += [(binding, live) for binding in self._own(node)]
        elif isinstance(node, cst.NamedExpr):
            live = live.union(self._own(node))
        return live

    def _comprehension(self, node: cst.CSTNode, live: _Live) -> None:
        """Follow a comprehension, whose targets are not visible after it."""
        self._places[node] |= live
        clause: cst.CompFor | None = cst.ensure_type(getattr(node, "for_in"), cst.CompFor)  # noqa: B009
        while clause is not None:
            self._expression(clause.iter, live)
            live = self._bound(clause, live)
            for test in clause.ifs:
                self._expression(test, live)
            clause = clause.inner_for_in
        for part in (getattr(node, name, None) for name in ("key", "value", "elt")):
            if isinstance(part, cst.CSTNode):
                self._expression(part, live)

    # -- bindings

    def _own(self, node: cst.CSTNode) -> list[Binding]:
        """Return the bindings of the name that this node itself makes."""
        collected: defaultdict[str, list[Binding]] = defaultdict(list)
        collect_bindings(collected, node)
        return collected.get(self._name, [])

    def _bound(self, node: cst.CSTNode, live: _Live) -> _Live:
        """Return what reaches the place after a node that may bind the name."""
        own = self._own(node)
        self._additions += [(binding, live) for binding in own if binding.added]
        anew = frozenset(binding for binding in own if not binding.added)
        return anew or live

    def _made_in(self, node: cst.CSTNode) -> Iterator[Entry]:
        """Yield all bindings of the name in a statement, except additions to its value."""
        for inner in (node, *walk_scope(node)):
            if isinstance(inner, cst.FunctionDef):
                if inner.name.value == self._name:
                    yield inner
            elif type(inner) in BINDING_KINDS and not isinstance(
                inner, (cst.Call, cst.AugAssign, cst.CompFor)
            ):
                yield from (binding for binding in self._own(inner) if not binding.added)
