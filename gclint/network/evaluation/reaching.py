"""Reaching definitions: which of several bindings of a name reach a place where it is used."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from gclint.code.walk import (
    COMPREHENSIONS,
    FUNCTIONS,
    LEAVING,
    LOOPS,
    WITHS,
    Comprehension,
    FunctionNode,
    Loop,
    children,
    walk_scope,
)
from gclint.network.evaluation.body import BINDING_KINDS, NameBinding, collect_bindings

Entry: TypeAlias = "NameBinding | FunctionNode | None"
"""A binding or function that may reach a place; None stands for the value before the code runs."""
_Live: TypeAlias = "frozenset[Entry]"
_DEAD: _Live = frozenset()
# Most nodes are of other types.
_NOT_PLAIN = frozenset(
    (*COMPREHENSIONS, *FUNCTIONS, ast.Name, ast.Lambda, ast.ClassDef, ast.Call, ast.NamedExpr)
)


class Reaching:
    """The bindings of one name that reach each place of a body.

    In a loop, bindings of earlier iterations reach the next one unless they are replaced. An addition to a
    container reaches every place that the container reaches.
    """

    def __init__(self, name: str, nodes: Sequence[ast.AST]) -> None:
        """Follow ``name`` through the nodes of a body, which are in the order of the text."""
        self._name = name
        self._places: defaultdict[ast.AST, _Live] = defaultdict(frozenset)
        self._additions: list[tuple[NameBinding, _Live]] = []
        self._loops = 0
        live: _Live = frozenset((None,))
        for node in nodes:
            live = self._any(node, live)

    def at(self, place: ast.AST) -> frozenset[Entry]:
        """Return what reaches ``place``, a use of the name or an inner scope; empty if that is not known."""
        live = self._places.get(place, _DEAD)
        return live | {binding for binding, seen in self._additions if live & seen}

    # -- statements

    def _any(self, node: ast.AST, live: _Live) -> _Live:
        """Follow a statement, or the code of a comprehension."""
        if isinstance(node, LOOPS):
            return self._loop(node, live)
        if isinstance(node, ast.If):
            live = self._expression(node.test, live)
            return self._suite(node.body, live) | self._suite(node.orelse, live)
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            return self._try(node, live)  # type: ignore[arg-type]
        if isinstance(node, WITHS):
            for item in node.items:
                live = self._expression(item.context_expr, live)
                live = self._bound(item, live)
            return self._suite(node.body, live)
        if isinstance(node, ast.Match):
            live = self._expression(node.subject, live)
            return live.union(*(self._suite(case.body, live) for case in node.cases))
        if isinstance(node, FUNCTIONS):
            return self._function(node, live)
        return self._simple(node, live)

    def _suite(self, suite: Sequence[ast.stmt], live: _Live) -> _Live:
        for statement in suite:
            live = self._any(statement, live)
        return live

    def _loop(self, loop: Loop, live: _Live) -> _Live:
        if not isinstance(loop, ast.While):
            live = self._expression(loop.iter, live)
        entry = live.union(self._made_in(loop))
        inner = (
            self._expression(loop.test, entry) if isinstance(loop, ast.While) else self._bound(loop, entry)
        )
        self._loops += 1
        self._suite(loop.body, inner)
        self._loops -= 1
        return entry | self._suite(loop.orelse, entry)

    def _try(self, node: ast.Try, live: _Live) -> _Live:
        anywhere = live.union(*(self._made_in(each) for each in node.body))
        after = self._suite(node.orelse, self._suite(node.body, live))
        after = after.union(*(self._suite(handler.body, anywhere) for handler in node.handlers))
        return self._suite(node.finalbody, after)

    def _function(self, node: FunctionNode, live: _Live) -> _Live:
        if self._loops:
            # A function that is defined outside of loops may be called in one.
            self._places[node] |= live
        return live if node.name != self._name else frozenset((node,))

    def _simple(self, node: ast.AST, live: _Live) -> _Live:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            live = self._expression(node.value, live)
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, (ast.Subscript, ast.Attribute)):
                    live = self._expression(target, live)
            return self._bound(node, live)
        if isinstance(node, ast.AugAssign):
            live = self._expression(node.value, live)
            live = self._expression(node.target, live)
            self._additions += [(binding, live) for binding in self._own(node)]
            return live
        live = self._expression(node, live)
        return _DEAD if isinstance(node, LEAVING) else live

    # -- expressions

    def _expression(self, node: ast.AST, live: _Live) -> _Live:
        kind = type(node)
        if kind not in _NOT_PLAIN:
            for child in children(node):
                live = self._expression(child, live)
            return live
        if isinstance(node, ast.Name):
            if node.id == self._name:
                self._places[node] |= live
            return live
        if isinstance(node, COMPREHENSIONS):
            self._comprehension(node, live)
            return live.union(self._made_in(node))
        if isinstance(node, (ast.Lambda, *FUNCTIONS, ast.ClassDef)):
            if self._loops:
                self._places[node] |= live
            return live
        for child in children(node):
            live = self._expression(child, live)
        if isinstance(node, ast.Call):
            self._additions += [(binding, live) for binding in self._own(node)]
        elif isinstance(node, ast.NamedExpr):
            live = live.union(self._own(node))
        return live

    def _comprehension(self, node: Comprehension, live: _Live) -> None:
        """Follow a comprehension, whose targets are not visible after it."""
        self._places[node] |= live
        for clause in node.generators:
            self._expression(clause.iter, live)
            live = self._bound(clause, live)
            for test in clause.ifs:
                self._expression(test, live)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self._expression(part, live)

    # -- bindings

    def _own(self, node: ast.AST) -> list[NameBinding]:
        """Return the bindings of the name that this node itself makes."""
        collected: defaultdict[str, list[NameBinding]] = defaultdict(list)
        collect_bindings(collected, node)
        return collected.get(self._name, [])

    def _bound(self, node: ast.AST, live: _Live) -> _Live:
        """Return what reaches the place after a node that may bind the name."""
        own = self._own(node)
        self._additions += [(binding, live) for binding in own if binding.added]
        anew = frozenset(binding for binding in own if not binding.added)
        return anew or live

    def _made_in(self, node: ast.AST) -> Iterator[Entry]:
        """Yield all bindings of the name in a statement, except additions to its value."""
        for inner in (node, *walk_scope(node)):
            if isinstance(inner, FUNCTIONS):
                if inner.name == self._name:
                    yield inner
            elif type(inner) in BINDING_KINDS and not isinstance(
                inner, (ast.Call, ast.AugAssign, ast.comprehension)
            ):
                yield from (binding for binding in self._own(inner) if not binding.added)
