"""Odd ways to write the code of the fixtures, in which places are easily miscounted."""

from __future__ import annotations

import ast
import re
import zlib
from collections.abc import Callable, Iterator, Mapping

from gclint.testing.rules import VARIANTS
from tests.dresses import DRESSES

_BEFORE = '"é𝒳"; '
"""Two characters, three in UTF-16 and six bytes in UTF-8."""
_WIDE = 0xFEE0
"""From a letter to the same one as wide as Chinese characters."""


def _with_separators(text: str) -> str:
    """Put characters that end a line elsewhere, but not in Python, into comments."""
    return re.sub(r"(?m)^([^#\n]*[\w)\]:,])$", "\\1  # one\u2028two\u0085three", text)


def _with_text_before_calls(text: str) -> str:
    """Put text that is not ASCII before each statement with a call."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)):
            line, column = lines[node.lineno - 1], node.col_offset
            if not line[:column].strip() and any(isinstance(each, ast.Call) for each in ast.walk(node)):
                lines[node.lineno - 1] = line[:column] + _BEFORE + line[column:]
    return "\n".join(lines)


def _with_wide_names(text: str) -> str:
    """Write one in three names with a wide letter, which is the same name to Python."""
    lines = [line.encode() for line in text.split("\n")]
    for row, column, name in sorted(_names(ast.parse(text)), reverse=True):
        line, end = lines[row - 1], column + len(name.encode())
        wide = re.sub("[A-Za-z]", lambda letter: chr(ord(letter[0]) + _WIDE), name, count=1)
        if line[column:end] == name.encode() and zlib.crc32(f"{row}:{column}".encode()) % 3 == 0:
            lines[row - 1] = line[:column] + wide.encode() + line[end:]
    return b"\n".join(lines).decode()


def _names(node: ast.AST) -> Iterator[tuple[int, int, str]]:
    """Yield names with their rows and columns in bytes, those in formatted strings aside."""
    if isinstance(node, ast.JoinedStr):  # Before Python 3.12 their columns are wrong.
        return
    if isinstance(node, ast.Name):
        yield node.lineno, node.col_offset, node.id
    elif isinstance(node, ast.arg):
        yield node.lineno, node.col_offset, node.arg
    elif isinstance(node, ast.Attribute) and node.end_lineno is not None and node.end_col_offset is not None:
        yield node.end_lineno, node.end_col_offset - len(node.attr.encode()), node.attr
    for child in ast.iter_child_nodes(node):
        yield from _names(child)


def _encoded(dress: Callable[[str], str]) -> Callable[[str], bytes]:
    def make(text: str) -> bytes:
        try:
            return dress(text).encode()
        except SyntaxError:
            return text.encode()

    return make


ODD: Mapping[str, Callable[[str], bytes]] = {
    "lone CRs": _encoded(DRESSES["lone CRs"]),
    **{name: VARIANTS[name] for name in ("CRLF", "form feeds", "byte order mark", "latin-1")},
    "line separators": _encoded(_with_separators),
    "text before calls": _encoded(_with_text_before_calls),
    "wide names": _encoded(_with_wide_names),
}
