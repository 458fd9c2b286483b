"""Syntax trees of LibCST's nodes that have their layout only where somebody asks for it.

LibCST takes thirteen times as long as Python's own parser, nearly all of it for white space, commas and
brackets, which nobody looks at who only wants to know what code means. So a tree is first read by Python's
parser, and made of the nodes that LibCST would have made, with the fields for layout left empty. When one
of those is asked for, LibCST parses the same text, and all nodes of the tree get what they lack.
What is rare is left to LibCST at once, and so is what it might read in another way: see ``bare``.
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
            is_block: whether the statements are those under its first line, which is a header.

        Raises:
            libcst.ParserSyntaxError: the text is not Python.
        """
        self._text = text
        self._is_block = is_block
        self.places: dict[cst.CSTNode, Span] = {}
        """Where statements and calls stand in the text, as far as that is known without their layout."""
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
    """Return a field that is empty, once the node's tree has its layout."""
    if name in _fields(type(node)):
        for tree in list(_bare):
            if node in tree.nodes:
                _ = tree.module
                return object.__getattribute__(node, name)
    raise AttributeError(f"{type(node).__name__!r} object has no attribute {name!r}", name=name, obj=node)


def _lay_out(pairs: Iterable[tuple[cst.CSTNode, cst.CSTNode]]) -> None:
    """Give each first node, and those in it, the fields that only the second one of its pair has."""
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
    """Return a field of a node; None where it is empty."""
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
    """Check a new node, unless a parser makes it: what that makes is right, and checks take a seventh."""
    if not _is_parsing:
        node._validate()


# A type checker takes an assignment for a mistake.
setattr(cst.CSTNode, "__post_init__", _check)  # noqa: B010
setattr(cst.CSTNode, "__getattr__", _missing)  # noqa: B010
