"""Whether a name is used in a text: what its syntax tree says, not what looks like the name.

Comments and strings use nothing, but for formatted strings, quoted annotations, and what ``__all__`` lists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from gclint.source.tree import DEFINITIONS, Tree, Unparsable
from gclint.source.walk import dotted_name

_GENERIC = frozenset(("dict", "frozenset", "list", "set", "tuple", "type"))
# What is handed over to these may be a type in quotes.
_TYPING_CALLS = frozenset(("ForwardRef", "NamedTuple", "NewType", "TypeVar", "TypedDict", "cast"))
_EXPORTS = "__all__"


def is_used(text: str, name: str) -> bool:
    """Return whether a text uses a name, a dotted one in full; an import of it is no use.

    Of what cannot be parsed, nothing is known: there everything is used.
    """
    if not all(word in text for word in name.split(".")):
        return False
    used = _used_in_file(text)
    return used is None or name in used


def _names_used(code: str) -> frozenset[str] | None:
    """Return the names that code uses, dotted ones in full and in part; None if it cannot be parsed."""
    try:
        return frozenset(_names_in(Tree(code).module, exports=_EXPORTS in code))
    except (Unparsable, RecursionError):
        return None


_used_in_file = lru_cache(maxsize=8)(_names_used)


def _may_hold_types(name: str | None) -> bool:
    """Return whether what stands in brackets behind a name may be types."""
    last = (name or "").rpartition(".")[2]
    return last in _GENERIC or last[:1].isupper()


def _quoted_names(strings: Iterable[object]) -> Iterator[str]:
    """Yield the names that strings use which may be types."""
    for string in strings:
        if isinstance(string, str):
            names = _names_used(f"_: ({string})")
            yield from re.findall(r"\w+", string) if names is None else names


def _names_in(tree: ast.AST, *, exports: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield dotted_name(node) or ""
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif exports and isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
            names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            if _EXPORTS in names:
                yield from (string for string in _strings(node) if isinstance(string, str))
        for part in _types_in(node):
            yield from _quoted_names(_strings(part))


def _types_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that are types, where a name may be quoted."""
    if isinstance(node, ast.Subscript):
        if _may_hold_types(dotted_name(node.value)):
            yield node.slice
    elif isinstance(node, ast.Call):
        if (dotted_name(node.func) or "").rpartition(".")[2] in _TYPING_CALLS:
            yield node
    elif isinstance(node, (ast.arg, ast.AnnAssign)):
        yield from () if node.annotation is None else (node.annotation,)
    elif isinstance(node, DEFINITIONS):
        yield from getattr(node, "type_params", ())  # Since Python 3.12.
        returns = getattr(node, "returns", None)
        yield from () if returns is None else (returns,)


def _strings(node: ast.AST) -> Iterator[object]:
    return (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
