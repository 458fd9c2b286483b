"""Syntax trees of LibCST's nodes whose layout is read only when it is needed.

LibCST takes thirteen times as long as Python's own parser, nearly all of it for white space, commas and
brackets, which do not matter for what code means. So Python's parser reads the text first, and its result is
converted into the nodes that LibCST would have made, with the fields for layout left empty. When one of these
is accessed, LibCST parses the same text, and all nodes of the tree get their missing fields. Rare syntax, and
what LibCST might read in another way, is left to LibCST from the start: see ``bare``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from typing import Any, cast
from weakref import WeakSet

import libcst as cst

from gclint.source.bare import Span, read_bare


class Tree:
    """The statements of a text."""

    def __init__(self, text: str, *, is_block: bool) -> None:
        """Parse ``text``.

        Args:
            text: the code.
            is_block: whether the statements are those under its first line, a header.

        Raises:
            libcst.ParserSyntaxError: the text is not Python.
        """
        self._text = text
        self._is_block = is_block
        self.places: dict[cst.CSTNode, Span] = {}
        """The places of statements and calls, as far as they are known without layout."""
        read = read_bare(text)
        if read is None:
            self._module: cst.Module | None = _parse(text)
            self.body = self._suite(self._module).body
        else:
            body, self.places = read
            self._module = None
            self.body = cst.ensure_type(body[0], cst.If).body.body if is_block else body
            _bare.add(self)

    @property
    def module(self) -> cst.Module:
        """The whole text with its layout; the nodes in it are those of the tree."""
        if self._module is None:
            module = _parse(self._text)
            suite = self._suite(module)
            _lay_out(zip(self.body, suite.body, strict=True))
            _set(suite, "body", self.body)
            self._module = module
            _bare.discard(self)
        return self._module

    @cached_property
    def nodes(self) -> frozenset[cst.CSTNode]:
        """All nodes of the tree that is read."""
        return frozenset(node for statement in self.body for node in _all_below(statement))

    def _suite(self, module: cst.Module) -> cst.Module | cst.BaseSuite:
        return cst.ensure_type(module.body[0], cst.If).body if self._is_block else module


_bare = WeakSet[Tree]()
"""The trees without layout."""
_set = object.__setattr__
"""Nodes are frozen, so that nothing else fills their fields."""


def _missing(node: cst.CSTNode, name: str) -> object:
    """Return a missing field, after giving the node's tree its layout."""
    if name in _fields(type(node)):
        for tree in list(_bare):
            if node in tree.nodes:
                _ = tree.module
                return object.__getattribute__(node, name)
    raise AttributeError(f"{type(node).__name__!r} object has no attribute {name!r}", name=name, obj=node)


def _lay_out(pairs: Iterable[tuple[cst.CSTNode, cst.CSTNode]]) -> None:
    """Copy to the first node of each pair, and to those in it, the fields that only the second one has."""
    waiting = list(pairs)
    while waiting:
        bare, whole = waiting.pop()
        for name in _fields(type(whole)):
            known = _known(bare, name)
            theirs = getattr(whole, name)
            if isinstance(known, cst.CSTNode):
                waiting.append((known, theirs))
            elif isinstance(known, tuple):
                waiting += zip(known, theirs, strict=True)
            else:
                _set(bare, name, theirs)


def _all_below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        for name in _fields(type(node)):
            known = _known(node, name)
            waiting += [
                each
                for each in (known if isinstance(known, tuple) else (known,))
                if isinstance(each, cst.CSTNode)
            ]


def _known(node: cst.CSTNode, name: str) -> object:
    """Return a field of a node; None if it is missing."""
    try:
        return object.__getattribute__(node, name)
    except AttributeError:
        return None


@cache
def _fields(kind: type[cst.CSTNode]) -> frozenset[str]:
    return frozenset(cast("Any", kind).__dataclass_fields__) - {"__slots__"}


# -- LibCST's part


def _parse(text: str) -> cst.Module:
    global _is_parsing
    _is_parsing = True
    try:
        return cst.parse_module(text)
    finally:
        _is_parsing = False


_is_parsing = False


def _check(node: cst.CSTNode) -> None:
    """Validate a node unless a parser made it: those are valid, and checks take a seventh of the time."""
    if not _is_parsing:
        node._validate()


# A type checker would reject an assignment.
setattr(cst.CSTNode, "__post_init__", _check)  # noqa: B010
setattr(cst.CSTNode, "__getattr__", _missing)  # noqa: B010
