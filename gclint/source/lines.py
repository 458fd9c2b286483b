"""The logical lines of a file and the comments in them, and which rows are inside of strings."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter

from gclint.source.file import SourceFile
from gclint.source.tree import blocks_of

_LAYOUT = (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_WITH_EXPRESSIONS = (ast.expr, ast.arguments, ast.keyword, ast.withitem)
_ROW = attrgetter("lineno")
_START = attrgetter("start")
_QUOTE = re.compile("[\"']")


@dataclass(frozen=True)
class Comment:
    """A comment, which ends with its row."""

    row: int
    start: int
    text: str
    is_alone: bool
    """Whether nothing is before it on its row."""

    @property
    def end(self) -> int:
        """The offset after the comment."""
        return self.start + len(self.text)


@dataclass(frozen=True)
class LogicalLine:
    """Simple statements on one line, or the header of a compound one; or a comment outside of these."""

    start: int
    end: int
    rows: tuple[int, int] | None
    """The first and last row of its code; None for a comment."""
    is_decorator: bool
    comments: tuple[Comment, ...]


def logical_lines(file: SourceFile) -> Iterator[LogicalLine]:
    """Yield the logical lines of a file by Python's own tokenizer, up to what that cannot read."""
    line: list[tokenize.TokenInfo] = []
    # Of line ends, it knows all only if they are translated; the rows are the same.
    read = io.StringIO(file.text, newline=None).readline
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(read):
            ends = token.type == tokenize.NEWLINE or (
                token.type == tokenize.NL and bool(line) and line[0].type == tokenize.COMMENT
            )
            if ends and line:
                yield _logical_line(file, line)
                line = []
            elif not ends and token.type not in _LAYOUT and token.type != tokenize.NL:
                line.append(token)
    if line:
        yield _logical_line(file, line)


def _logical_line(file: SourceFile, tokens: list[tokenize.TokenInfo]) -> LogicalLine:
    def offset(place: tuple[int, int]) -> int:
        return file.line_starts[place[0] - 1] + place[1]

    def comment(token: tokenize.TokenInfo) -> Comment:
        row, start = token.start[0], offset(token.start)
        is_alone = not file.text[file.line_starts[row - 1] : start].strip()
        return Comment(row, start, token.string, is_alone)

    code = [token for token in tokens if token.type != tokenize.COMMENT]
    return LogicalLine(
        offset(tokens[0].start),
        offset(tokens[-1].end),
        (code[0].start[0], code[-1].end[0]) if code else None,
        bool(code) and code[0].string == "@",
        tuple(comment(token) for token in tokens if token.type == tokenize.COMMENT),
    )


def begins_in_string(file: SourceFile, row: int) -> bool:
    """Return whether a string that begins on an earlier row is still open where a row begins.

    Then what looks like a comment there is none. Only statements around the row are looked at.
    """
    start, definitions = file.row_start(row), file.outline.definitions
    index = bisect_left(definitions, start, key=_START)
    if index < len(definitions) and not _QUOTE.search(file.text, start, definitions[index].start):
        return False  # It would have to end before the next definition.
    tree = file.tree if _QUOTE.search(file.text, 0, file.row_start(row)) else None
    blocks = [] if tree is None else [tree.module.body]
    while blocks:
        body = blocks.pop()
        index = bisect_left(body, row, key=_ROW)
        # The next one may have decorators on earlier rows.
        for statement in body[max(index - 1, 0) : index + 1]:
            if _holds_string(_expressions(statement), row):
                return True
            blocks += blocks_of(statement)
    return False


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes that are directly in a statement, but no statements, which may be very many."""
    for _, value in ast.iter_fields(statement):
        values = value if isinstance(value, list) else [value]
        if values and isinstance(values[0], _WITH_EXPRESSIONS):
            yield from values


def _holds_string(nodes: Iterable[ast.AST], row: int) -> bool:
    waiting = [*nodes]
    while waiting:
        node = waiting.pop()
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", row)
        if first < row <= last:
            if isinstance(node, ast.JoinedStr) or _is_string(node):
                return True
            waiting += ast.iter_child_nodes(node)
    return False


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def mentions(text: str, name: str) -> bool:
    """Return whether a text has a name, or a part of one, also in letters that Python takes for the same."""
    return name in text or (not text.isascii() and name in normal(text))


def normal(text: str) -> str:
    """Return a text in the letters that Python takes its names for."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
