"""Which code may lead to some calls, by its words alone: this only saves to follow what cannot."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from gclint.code.names import names
from gclint.code.tree import DEFINITIONS, blocks_of
from gclint.code.walk import children, walk
from gclint.model import known
from gclint.model.spaces import Space

_ANY = names(
    """
    getattr vars __dict__ _modules modules children named_modules named_children get_submodule apply
    globals locals eval exec attrgetter methodcaller
    """
)
"""Words with which code may get at anything that an object holds."""
_HANDING_ON = _ANY | known.READING_METHODS | known.TAKING_METHODS | known.MODULE_SETTINGS
"""Methods that may give what their object holds, or the object."""
_UNNAMED = names("forward __call__ __init__ __getattr__ __getitem__ __enter__ __exit__ __iter__ __next__")
"""The names of what is called without them."""


class _Gift(NamedTuple):
    """A statement that gives something to names."""

    names: frozenset[str]
    """Those that it binds or fills."""
    words: frozenset[str]
    """What it gives them, as far as that is not what a call gives."""
    called: frozenset[str]
    """What it calls to that end."""


class _Read(NamedTuple):
    """What a function has to do with names."""

    node: ast.AST
    mentioned: frozenset[str]
    called: frozenset[str]
    """The words in its calls."""
    gifts: tuple[_Gift, ...]


class Leading:
    """The definitions of modules that may lead to some calls, and the words by which others get at them."""

    def __init__(self, owners: Iterable[str], calls: Collection[ast.Call]) -> None:
        """Begin with the classes whose methods contain the calls."""
        self.names = set(owners)
        """The names of classes, functions and variables of modules."""
        self._calls = calls
        self._words = set(_ANY)
        self._giving = set(_ANY)
        """The words for classes and functions of which a call may give what leads to the calls."""
        self._functions: dict[ast.AST, _Read] = {}
        self._statements: dict[ast.stmt, tuple[bool, frozenset[str]]] = {}
        """Whether a statement contains one of the calls, and the words in its calls."""
        self.own = set[ast.AST]()
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
        return function in self.own or self._lead(found.called)

    def last(self, function: ast.AST) -> ast.stmt | None:
        """Return the statement of a function behind which nothing may lead to the calls; None for all."""
        body = getattr(function, "body", None)
        if not isinstance(body, list):
            return None
        return self._last_of(body) or body[0]

    def _last_of(self, body: list[ast.stmt]) -> ast.stmt | None:
        return next((each for each in reversed(body) if self._is_own(each)), None)

    def last_calls(self, statement: ast.stmt) -> Iterator[ast.Call]:
        """Yield the calls of a statement behind which it does not lead to the calls any more."""
        if isinstance(statement, ast.If):
            for body in (statement.body, statement.orelse):
                last = self._last_of(body)
                yield from () if last is None else self.last_calls(last)
        else:
            value = getattr(statement, "value", None)
            yield from [value] if isinstance(value, ast.Call) else []

    def _is_own(self, statement: ast.stmt) -> bool:
        found = self._statements.get(statement)
        if found is None:
            inside = [each for each in walk(statement) if isinstance(each, ast.Call)]
            is_own = any(each in self._calls for each in inside)
            found = self._statements[statement] = is_own, _words(*inside)
        return found[0] or self._lead(found[1])

    def _lead(self, words: frozenset[str]) -> bool:
        """Tell whether calls with these words may lead to the calls."""
        is_inherited = "super" in words and not words.isdisjoint(("forward", "__call__"))
        return is_inherited or not self._words.isdisjoint(words)

    def _read(self, function: ast.AST) -> _Read:
        called = set[str]()
        gifts: list[_Gift] = []
        for node in walk(function):
            if isinstance(node, ast.Call):
                called |= _words(node)
                if node in self._calls:
                    self.own.add(function)
            gifts += _gifts(node)
        return _Read(function, _words(function), frozenset(called), tuple(gifts))

    def _close(self) -> None:
        size = -1
        self._words |= self.names
        self._giving |= self.names
        self._words.update(_name(each) for each in self.own)
        while len(self._words) > size:
            size = len(self._words)
            for each in self._functions.values():
                if not self._words.isdisjoint(each.mentioned):
                    self._words.add(_name(each.node))
                    self._giving.add(_name(each.node))
                for gift in each.gifts:
                    # What a module gives that leads to the calls, leads there no more.
                    if not (self._words.isdisjoint(gift.words) and self._giving.isdisjoint(gift.called)):
                        self._words |= gift.names
        self._words -= _UNNAMED


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, and those in branches in place of what contains them."""
    for statement in body:
        inner = [] if isinstance(statement, DEFINITIONS) else list(blocks_of(statement))
        yield from (each for block in inner for each in _flat(block)) if inner else (statement,)


def _definitions(space: Space, found: set[str]) -> Iterator[ast.stmt]:
    """Yield the statements of a module that name some others, or lead to one that does; ``found`` grows."""
    statements = [] if space.tree is None else list(_flat(space.tree.body))
    rows = [
        min([each.lineno, *(one.lineno for one in getattr(each, "decorator_list", ()))])
        for each in statements
    ]
    met, waiting = set[int](), list(found)

    @cache
    def words_at(place: int) -> frozenset[str]:
        statement = statements[place]
        own = [statement.name] if isinstance(statement, DEFINITIONS) else []
        return _words(statement).union(own)

    def places(name: str) -> Iterable[int]:
        if not space.file.text.isascii():
            return range(len(statements))  # Python takes names that are written in several ways for one.
        found_at = (each.start() for each in re.finditer(rf"\b{re.escape(name)}\b", space.file.text))
        rows_of = (space.file.position(each).row for each in found_at)
        return {place for row in rows_of if (place := bisect_right(rows, row) - 1) >= 0}

    while waiting:
        name = waiting.pop()
        for place in sorted(places(name)):
            if name in words_at(place):
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
        elif isinstance(node, ast.ImportFrom):
            yield from (each.asname or each.name for each in node.names if each.name in (name, "*"))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _name(function: ast.AST) -> str:
    return getattr(function, "name", "")


def _word(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.ImportFrom):
        yield from (each.name for each in node.names)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        yield node.value


def _words(*nodes: ast.AST) -> frozenset[str]:
    """Return what nodes name: of ``self.model.decoder`` its last word, since what it is has that name."""
    found, waiting = set[str](), [*nodes]
    while waiting:
        node = waiting.pop()
        found.update(_word(node))
        waiting += _inside(node)
    return frozenset(found)


def _inside(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node that have to do with what it is."""
    if _gets_named(node):
        return [*node.args]  # type: ignore[attr-defined]
    is_part = isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Attribute, ast.Name))
    return [] if is_part and node.attr not in _UNNAMED else children(node)  # type: ignore[attr-defined]


def _gets_named(node: ast.AST) -> bool:
    """Tell whether a node gets an attribute by a name that is written there."""
    is_getting = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr"
    return is_getting and len(node.args) > 1 and isinstance(node.args[1], ast.Constant)  # type: ignore[attr-defined]


def _gifts(node: ast.AST) -> Iterator[_Gift]:
    """Yield what a node gives to names, if it does."""
    if isinstance(node, ast.Assign):
        yield _gift(node.targets, [node.value])
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
        yield _gift([node.target], [node.value])
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield _gift([node.target], [node.iter])
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield _gift([node.optional_vars], [node.context_expr])
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        # Such as `self.layers.append(…)` and `setattr(self, "layers", …)`.
        given = [*node.value.args, *(each.value for each in node.value.keywords)]
        holder = [node.value.func.value] if isinstance(node.value.func, ast.Attribute) else []
        yield _gift([*holder, *(each for each in given if isinstance(each, ast.Constant))], given)


def _gift(targets: Iterable[ast.expr], values: Iterable[ast.expr]) -> _Gift:
    words, called = set[str](), set[str]()
    waiting: list[ast.AST] = [*values]
    while waiting:
        node = waiting.pop()
        words.update(_word(node))
        if isinstance(node, ast.Call) and not _gets_named(node):
            called.update(_word(node.func))
            waiting += [*node.args, *(each.value for each in node.keywords)]
            if not isinstance(node.func, (ast.Name, ast.Attribute)):
                waiting.append(node.func)
            if isinstance(node.func, ast.Attribute) and node.func.attr in _HANDING_ON:
                waiting.append(node.func.value)
        elif isinstance(node, ast.Lambda):
            words |= _words(node)
        else:
            waiting += _inside(node)
    names = frozenset(name for each in targets for name in _held(each)) - {"self"}
    return _Gift(names, frozenset(words), frozenset(called))


def _held(target: ast.expr) -> Iterator[str]:
    """Yield the names by which code gets at what a target is given."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _held(each)
    elif isinstance(target, (ast.Subscript, ast.Starred)):
        yield from _held(target.value)
    else:
        yield from _word(target)
