"""A text's syntax tree, by Python's own parser, and where its nodes stand in the text."""

from __future__ import annotations

import ast
import gc
import re
import warnings
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import TypeAlias

from gclint.finding import Position

DefinitionNode: TypeAlias = "ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef"
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BRANCHES = ("handlers", "cases")
_BLOCKS = ("body", *_BRANCHES, "orelse", "finalbody")
"""In the order of the text."""
_BLOCKS_OF = {
    kind: tuple(name for name in _BLOCKS if name in kind._fields) for kind in ast.stmt.__subclasses__()
}
"""The fields that hold other statements; most kinds of statements have none."""
_LINE_END = re.compile("\n")
_ANY_LINE_END = re.compile(r"\r\n?|\n")


class Unparsable(Exception):
    """The running Python cannot parse a text; ``__cause__`` is its error."""


class Tree:
    """The syntax tree of a text.

    Nodes are told apart by identity. A tree is large, and is made again when it is needed after some time
    (see ``SourceFile.tree``), so nothing that outlives the work on a file should hold its nodes.
    """

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.facts: dict[object, object] = {}
        """Facts that others have derived and that hold nodes of the tree."""

    @cached_property
    def definitions(self) -> tuple[DefinitionNode, ...]:
        """The nodes of all classes and functions, in the order of the text."""
        found = (statement for statement, _ in statements_around(self.module.body))
        return tuple(each for each in found if isinstance(each, DEFINITIONS))

    @cached_property
    def assignments(self) -> dict[str, ast.Assign | ast.AnnAssign]:
        """The first statement at the module's level that assigns a value to each name."""
        found: dict[str, ast.Assign | ast.AnnAssign] = {}
        for node in self.module.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else (node.target,):
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, node)
        return found


def parsed(text: str) -> ast.Module:
    """Return the nodes of a text.

    Raises:
        Unparsable: the running Python cannot parse it.
    """
    with _no_collector(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise Unparsable from error


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the collector from running over the thousands of nodes that are just being made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that are directly in a statement."""
    for name in _BLOCKS_OF[type(statement)]:
        found = getattr(statement, name)
        if found and name in _BRANCHES:
            for each in found:
                yield each.body
        elif found:
            yield found


def statements_around(
    body: Sequence[ast.stmt],
) -> Iterator[tuple[ast.stmt, DefinitionNode | None]]:
    """Yield all statements, each before those in it, with the definition that is directly around it."""
    # Not by recursion: code may be nested deeply.
    waiting: list[tuple[ast.stmt, DefinitionNode | None]] = [(each, None) for each in reversed(body)]
    while waiting:
        pair = statement, around = waiting.pop()
        yield pair
        if _BLOCKS_OF[type(statement)]:
            inside = statement if isinstance(statement, DEFINITIONS) else around
            for block in reversed(list(blocks_of(statement))):
                waiting += [(each, inside) for each in reversed(block)]


def line_starts(text: str) -> Sequence[int]:
    """Return the offsets of line beginnings; for Python, only LF, CR LF and CR end a line."""
    ends = _ANY_LINE_END if "\r" in text else _LINE_END
    # A list would take nine times as much memory.
    return array("L", chain((0,), map(re.Match.end, ends.finditer(text))))


def position_of(starts: Sequence[int], offset: int) -> Position:
    """Return the row and column of a character offset in a text whose lines begin at ``starts``."""
    row = bisect_right(starts, offset)
    return Position(row, offset - starts[row - 1] + 1)


class OffsetTable:
    """Where nodes stand in a text, in characters; Python counts columns in bytes of UTF-8."""

    def __init__(self, text: str, starts: Sequence[int]) -> None:
        """Describe a text whose lines begin at ``starts``."""
        self._text = text
        self._starts = starts
        self._is_ascii = text.isascii()

    def offset(self, row: int, column: int) -> int:
        """Return the offset of a column, counted in bytes from 0, of a row, counted from 1."""
        start = self._starts[row - 1]
        if self._is_ascii:
            return start + column
        end = self._starts[row] if row < len(self._starts) else len(self._text)
        return start + len(self._text[start:end].encode()[:column].decode(errors="replace"))

    def start(self, node: ast.AST) -> int:
        """Return where the code of a node begins: a definition at its keyword, behind its decorators."""
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Return where the code of a node ends."""
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return where the code of a node begins and ends, without brackets around it."""
        return self.start(node), self.end(node)

    def row(self, offset: int) -> int:
        """Return the row, counted from 1, of an offset."""
        return bisect_right(self._starts, offset)
