"""The logical lines of a file and the comments in them, and which rows are inside of strings."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter

from gclint.code.file import SourceFile
from gclint.code.remembered import remembered
from gclint.code.trainer_settings import are_settings, comments
from gclint.code.walk import all_nodes

_LAYOUT = (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
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
    if are_settings(file.path):
        yield from _lines_of_settings(file)
        return
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


def _lines_of_settings(file: SourceFile) -> Iterator[LogicalLine]:
    """Yield the rows of settings in YAML, each of which has code, a comment, or both."""
    found = dict[int, Comment]()
    for start, end in comments(file.text):
        place = file.position(start)
        is_alone = not file.line(place.row)[: place.column - 1].strip()
        found[place.row] = Comment(place.row, start, file.text[start:end], is_alone)
    for row, start in enumerate(file.line_starts, 1):
        comment = found.get(row)
        if file.line(row).strip():
            rows = None if comment and comment.is_alone else (row, row)
            end = file.row_start(row + 1)
            yield LogicalLine(start, end, rows, is_decorator=False, comments=(comment,) if comment else ())


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

    Then what looks like a comment there is none.
    """
    start, definitions = file.row_start(row), file.outline.definitions
    index = bisect_left(definitions, start, key=_START)
    if index < len(definitions) and not _QUOTE.search(file.text, start, definitions[index].start):
        return False  # It would have to end before the next definition.
    if not _QUOTE.search(file.text, 0, start):
        return False
    first_rows, last_rows = _strings(file)
    earlier = bisect_left(first_rows, row)
    return earlier > 0 and last_rows[earlier - 1] >= row


@remembered
def _strings(file: SourceFile) -> tuple[list[int], list[int]]:
    """Return the first rows of strings of several rows, and the last row up to there that one is on."""
    nodes = all_nodes(file.tree)
    strings = (
        node
        for node in nodes
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)))
    )
    rows = sorted((each.lineno, each.end_lineno or 0) for each in strings if each.end_lineno != each.lineno)
    return [first for first, _ in rows], [*accumulate((last for _, last in rows), max)]


def mentions(text: str, name: str) -> bool:
    """Return whether a text has a name, or a part of one, also in letters that Python takes for the same."""
    return name in text or (not text.isascii() and name in normal(text))


def normal(text: str) -> str:
    """Return a text in the letters that Python takes its names for."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
