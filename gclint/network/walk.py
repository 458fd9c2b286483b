"""Walking LibCST trees without the cost of a visitor.

A visitor looks up a method for every node and builds lists of children; here only the fields that
can hold code are followed, and whitespace and punctuation never.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache

import libcst as cst

_PUNCTUATION = (
    "whitespace",
    "lpar",
    "rpar",
    "comma",
    "semicolon",
    "equal",
    "colon",
    "dot",
    "lbracket",
    "rbracket",
    "lbrace",
    "rbrace",
    "leading_lines",
    "trailing_whitespace",
    "lines_after",
    "header",
    "footer",
)
_NEW_SCOPES = (cst.FunctionDef, cst.ClassDef, cst.Lambda)


@cache
def _code_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if not field.name.startswith(_PUNCTUATION))


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the nodes directly below ``node`` that hold code, in the order of the text."""
    for name in _code_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif isinstance(value, (tuple, list)):
            for item in value:
                if isinstance(item, cst.CSTNode):
                    yield item


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield ``node`` and everything below it, each before what is below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def walk_scope(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what is below ``node``, without the insides of nested functions and classes."""
    for child in children(node):
        yield child
        if not isinstance(child, _NEW_SCOPES):
            yield from walk_scope(child)


def names_in(node: cst.CSTNode) -> Iterator[str]:
    """Yield the names that an expression reads; an attribute's own name and keywords are none."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Attribute):
        yield from names_in(node.value)
    elif isinstance(node, cst.Arg):
        yield from names_in(node.value)
    else:
        for child in children(node):
            yield from names_in(child)


def dotted_name(node: cst.CSTNode) -> str | None:
    """Return ``a.b.c`` for such an expression, None for any other."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted_name(node.value)
        return None if base is None else f"{base}.{node.attr.value}"
    return None
