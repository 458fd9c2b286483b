"""Walks LibCST trees without the cost of a visitor.

A visitor looks up a method for every node and builds lists of children. Here only the fields that may contain
code are followed, never white space and punctuation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any

import libcst as cst

from gclint.source.tokens import same_code

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
_NEW_SCOPES = frozenset((cst.FunctionDef, cst.ClassDef, cst.Lambda))


@cache
def _code_fields(kind: Hashable) -> tuple[str, ...] | None:
    """Return the fields of a type of nodes that may contain code; None if it is not a type of nodes.

    Looked up by exact type, since LibCST's nodes are abstract base classes, for which ``isinstance`` takes
    longer than the rest of a walk.
    """
    if not (isinstance(kind, type) and issubclass(kind, cst.CSTNode)):
        return None
    return tuple(field.name for field in fields(kind) if not field.name.startswith(_PUNCTUATION))


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the child nodes of ``node`` that contain code, in text order."""
    found: list[cst.CSTNode] = []
    for value in _code_in(type(node))(node):
        kind = value.__class__
        if kind is tuple or kind is list:
            found += value
        elif _code_fields(kind) is not None:
            found.append(value)
    return found


@cache
def _code_in(kind: Hashable) -> Callable[[cst.CSTNode], tuple[Any, ...]]:
    """Return a function that returns those fields of a node; sequences among them contain only nodes."""
    names = _code_fields(kind) or ()
    if kind is cst.Name or not names:
        return lambda _node: ()
    getter = attrgetter(*names)
    # For a single name, `attrgetter` does not return a tuple.
    return getter if len(names) > 1 else lambda node: (getter(node),)


def is_alike(one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Return whether two nodes are the same code, apart from their children and redundant brackets."""
    if type(one) is not type(other):
        return False
    # White space in a formatted string may be part of its value.
    if isinstance(one, cst.BaseString) and not isinstance(one, cst.ConcatenatedString):
        bare = [code(each.with_changes(lpar=(), rpar=())) for each in (one, other)]
        return same_code(*bare)
    return all(
        _shape(getattr(one, name)) == _shape(getattr(other, name))
        for name in _code_fields(type(one)) or ()
        if name != "indent"
    )


def _shape(value: object) -> object:
    """Return the value of a node's field, with nodes in it replaced by placeholders."""
    if isinstance(value, (tuple, list)):
        return len(value)
    return True if isinstance(value, cst.CSTNode) else value


def structure(node: cst.CSTNode) -> Hashable:
    """Return a value that is equal for nodes with the same code, apart from layout and brackets."""
    return dotted_name(node) or (
        type(node),
        *(_structure(getattr(node, name)) for name in _code_fields(type(node)) or () if name != "indent"),
    )


def _structure(value: object) -> Hashable:
    if isinstance(value, (tuple, list)):
        return tuple(map(_structure, value))
    return structure(value) if isinstance(value, cst.CSTNode) else value


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield ``node`` and all nodes below it, in preorder."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(children(node))


def walk_scope(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the nodes below ``node``, without the bodies of nested functions and classes."""
    waiting = children(node)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        if type(node) not in _NEW_SCOPES:
            waiting += reversed(children(node))


def names_in(node: cst.CSTNode) -> Iterator[str]:
    """Yield the names that an expression reads, without names of attributes and keywords."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, (cst.Attribute, cst.Arg)):
        yield from names_in(node.value)
    else:
        for child in children(node):
            yield from names_in(child)


def dotted_name(node: cst.CSTNode) -> str | None:
    """Return the dotted name ``a.b.c`` that an expression spells; None for any other expression."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        base = dotted_name(node.value)
        return None if base is None else f"{base}.{node.attr.value}"
    return None


def conjuncts(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield the operands of ``and`` in a test, or the test itself."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        yield from conjuncts(test.left)
        yield from conjuncts(test.right)
    else:
        yield test


def is_docstring(statement: cst.CSTNode) -> bool:
    """Return whether a statement consists of a string only."""
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(each, cst.Expr) and isinstance(each.value, (cst.SimpleString, cst.ConcatenatedString))
        for each in statement.body
    )


def code(node: cst.CSTNode) -> str:
    """Return the code of a node, with a fast path for names, which are the most frequent."""
    return dotted_name(node) or cst.Module([]).code_for_node(node)
