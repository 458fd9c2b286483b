"""Whether a name is used in a text: what its syntax tree says, not what looks like the name.

Python's own tree is asked, or LibCST's where the running Python is too old for the text. Comments and
strings use nothing, but for formatted strings, quoted annotations, and what ``__all__`` lists.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache

import libcst as cst

from gclint.network.evaluation.walk import children, dotted_name, walk
from gclint.source.outline import Outline

_KEPT_PIECES = 1024
_GENERIC = frozenset(("dict", "frozenset", "list", "set", "tuple", "type"))
# What is handed over to these may be a type in quotes.
_TYPING_CALLS = frozenset(("ForwardRef", "NamedTuple", "NewType", "TypeVar", "TypedDict", "cast"))
_EXPORTS = "__all__"


def is_used(text: str, name: str) -> bool:
    """Return whether a text uses a name, a dotted one in full; an import of it is no use.

    Of what no parser can read, nothing is known: there everything is used.
    """
    words = name.split(".")
    for piece in _pieces(text):
        if all(word in piece for word in words):
            used = _names_used(piece)
            if used is None:  # It may have been cut in the middle of brackets.
                used = _names_used(text)
            if used is None or name in used:
                return True
    return False


@lru_cache(maxsize=8)
def _pieces(text: str) -> tuple[str, ...]:
    """Split a text, so that only what may use a name has to be parsed, and that only once."""
    return tuple(text[start:end] for start, end in Outline(text).pieces)


@lru_cache(maxsize=_KEPT_PIECES)
def _names_used(code: str) -> frozenset[str] | None:
    """Return the names that code uses, dotted ones in full and in part; None if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return frozenset(_names_of_tree(ast.parse(code), exports=_EXPORTS in code))
    except (RecursionError, MemoryError):
        return None  # LibCST has no limit of its own.
    except (SyntaxError, ValueError):
        pass
    try:
        return frozenset(_names_of_module(cst.parse_module(code), exports=_EXPORTS in code))
    except (cst.ParserSyntaxError, ValueError):
        return None


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


# -- Python's tree


def _names_of_tree(tree: ast.AST, *, exports: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield _dotted(node) or ""
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif exports and isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
            names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            if _EXPORTS in names:
                yield from (string for string in _strings(node) if isinstance(string, str))
        for part in _types_in(node):
            yield from _quoted_names(_strings(part))


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def _types_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that are types, where a name may be quoted."""
    if isinstance(node, ast.Subscript):
        if _may_hold_types(_dotted(node.value)):
            yield node.slice
    elif isinstance(node, ast.Call):
        if (_dotted(node.func) or "").rpartition(".")[2] in _TYPING_CALLS:
            yield node
    elif isinstance(node, (ast.arg, ast.AnnAssign)):
        yield from () if node.annotation is None else (node.annotation,)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield from getattr(node, "type_params", ())  # Since Python 3.12.
        returns = getattr(node, "returns", None)
        yield from () if returns is None else (returns,)


def _strings(node: ast.AST) -> Iterator[object]:
    return (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))


# -- LibCST's tree


def _names_of_module(module: cst.CSTNode, *, exports: bool) -> Iterator[str]:
    waiting = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (cst.Import, cst.ImportFrom)):
            continue
        if isinstance(node, cst.Name):
            yield node.value
        elif isinstance(node, cst.Attribute):
            yield dotted_name(node) or ""
            waiting.append(node.value)
        elif isinstance(node, cst.Arg):
            waiting.append(node.value)
        elif isinstance(node, (cst.Param, cst.FunctionDef, cst.ClassDef)):
            waiting += [child for child in children(node) if child is not node.name]
        else:
            waiting += children(node)
        if exports and isinstance(node, cst.SimpleStatementLine):
            if _EXPORTS in (part.value for part in walk(node) if isinstance(part, cst.Name)):
                yield from (string for string in _string_values(node) if isinstance(string, str))
        elif _is_type(node):
            yield from _quoted_names(_string_values(node))


def _is_type(node: cst.CSTNode) -> bool:
    """Return whether a node holds types, where a name may be quoted."""
    if isinstance(node, cst.Subscript):
        return _may_hold_types(dotted_name(node.value))
    if isinstance(node, cst.Call):
        return (dotted_name(node.func) or "").rpartition(".")[2] in _TYPING_CALLS
    return isinstance(node, (cst.Annotation, cst.TypeParameters))


def _string_values(node: cst.CSTNode) -> Iterator[object]:
    kinds = (cst.SimpleString, cst.ConcatenatedString)
    return (part.evaluated_value for part in walk(node) if isinstance(part, kinds))
