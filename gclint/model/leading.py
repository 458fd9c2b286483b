"""Which code may lead to some calls, by its words alone: this only saves to follow what cannot."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from gclint.model.spaces import Space
from gclint.source.names import names
from gclint.source.tree import DEFINITIONS
from gclint.source.walk import walk

_ANY = names(
    """
    getattr vars __dict__ _modules modules children named_modules named_children get_submodule apply super
    globals locals eval exec attrgetter methodcaller
    """
)
"""Words with which code may get at anything that an object holds."""
_UNNAMED = names("forward __call__ __init__ __getattr__ __getitem__ __enter__ __exit__ __iter__ __next__")
"""The names of what is called without them."""
_Functions: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"


class _Read(NamedTuple):
    """What a function has to do with names."""

    node: ast.AST
    mentioned: frozenset[str]
    called: frozenset[str]
    """The words in its calls."""
    given: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """The names that it binds or fills, and the words of what it gives them."""


class Leading:
    """The definitions of modules that may lead to some calls, and the words by which others get at them."""

    def __init__(self, owners: Iterable[str], calls: Collection[ast.Call]) -> None:
        """Begin with the classes whose methods contain the calls."""
        self.names = set(owners)
        """The names of classes, functions and variables of modules."""
        self._calls = calls
        self._words = set(_ANY)
        self._functions: dict[ast.AST, _Read] = {}
        self._own = set[ast.AST]()
        """The functions with the calls."""
        self._spaces = set[Space]()

    def read(self, space: Space) -> None:
        """Read a module, once."""
        if space in self._spaces or space.tree is None:
            return
        self._spaces.add(space)
        for statement in _definitions(space, self.names):
            for node in walk(statement):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self._functions[node] = self._read(node)
        self._close()

    def calls(self, function: ast.AST) -> bool:
        """Tell whether a function may lead to the calls."""
        found = self._functions.get(function)
        if found is None:
            found = self._functions[function] = self._read(function)
            self._close()
        return function in self._own or not self._words.isdisjoint(found.called)

    def _read(self, function: ast.AST) -> _Read:
        called, mentioned = set[str](), set[str]()
        given: list[tuple[frozenset[str], frozenset[str]]] = []
        for node in walk(function):
            mentioned.update(_word(node))
            if isinstance(node, ast.Call):
                called.update(_words(node))
                if node in self._calls:
                    self._own.add(function)
            given += _given(node)
        return _Read(function, frozenset(mentioned), frozenset(called), tuple(given))

    def _close(self) -> None:
        size = -1
        self._words |= self.names
        self._words.update(_name(each) for each in self._own)
        while len(self._words) > size:
            size = len(self._words)
            for each in self._functions.values():
                if not self._words.isdisjoint(each.mentioned):
                    self._words.add(_name(each.node))
                for targets, words in each.given:
                    if not self._words.isdisjoint(words):
                        self._words |= targets
        self._words -= _UNNAMED


def _definitions(space: Space, found: set[str]) -> Iterator[ast.stmt]:
    """Yield the statements of a module that name some others, or lead to one that does; ``found`` grows."""
    statements = [] if space.tree is None else space.tree.body
    rows = [
        min([each.lineno, *(one.lineno for one in getattr(each, "decorator_list", ()))])
        for each in statements
    ]
    met, waiting = set[int](), list(found)
    while waiting:
        name = waiting.pop()
        for match in re.finditer(rf"\b{re.escape(name)}\b", space.file.text):
            place = bisect_right(rows, space.file.position(match.start()).row) - 1
            if place >= 0:
                if place not in met:
                    met.add(place)
                    yield statements[place]
                new = set(_bound(statements[place], name)) - found
                found |= new
                waiting += new


def _bound(statement: ast.stmt, name: str) -> Iterator[str]:
    """Yield the names that a statement of a module binds, which may have to do with another name."""
    for node in [statement] if isinstance(statement, DEFINITIONS) else walk(statement):
        if isinstance(node, DEFINITIONS):
            yield node.name
        elif isinstance(node, ast.alias):
            yield from [node.asname or node.name] if node.name in (name, "*") else []
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _name(function: ast.AST) -> str:
    return getattr(function, "name", "")


def _word(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        yield node.value


def _words(*nodes: ast.AST | None) -> frozenset[str]:
    inside = (node for each in nodes if each is not None for node in walk(each))
    return frozenset(word for node in inside for word in _word(node))


def _given(node: ast.AST) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Yield the names that a node binds or fills, with the words of what it gives them."""
    if isinstance(node, ast.Assign):
        yield _words(*node.targets), _words(node.value)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
        yield _words(node.target), _words(node.value)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield _words(node.target), _words(node.iter)
    elif isinstance(node, ast.withitem):
        yield _words(node.optional_vars), _words(node.context_expr)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield _words(node.value), _words(node.value)
