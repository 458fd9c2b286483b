"""Nodes of a syntax tree as pieces of the text that they were read from."""

from __future__ import annotations

import ast
import re

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class Text:
    """A text in Python, in which one node is replaced and every other byte stays."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = _LINE.findall(text)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line.encode()))
        self._bytes = text.encode()

    def source(self, node: ast.expr | ast.stmt) -> str:
        """Return the text of a node."""
        return self._bytes[slice(*self._span(node))].decode()

    def replaced(self, node: ast.expr | ast.stmt, text: str) -> str:
        """Return the whole with other text in place of a node."""
        start, end = self._span(node)
        return (self._bytes[:start] + text.encode() + self._bytes[end:]).decode()

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )
