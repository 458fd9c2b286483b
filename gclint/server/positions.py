"""Converts between offsets and positions of the protocol: lines from 0, columns in units of an encoding.

Lines end at LF, CR LF and CR, as in the protocol and in Python, and at nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from lsprotocol import types

from gclint.source.tree import line_starts

_BMP_END = 0xFFFF


class Lines:
    """The lines of a text."""

    def __init__(self, text: str, encoding: str) -> None:
        """Split ``text`` into lines, whose columns count units of ``encoding``: utf-8, utf-16 or utf-32."""
        self.text = text
        self._encoding = encoding
        self._starts = line_starts(text)

    def offset(self, position: types.Position) -> int:
        """Return the offset of a position; one beyond the end of a line or of the text means that end."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        line = self._line(position.line).rstrip("\r\n")
        if self._encoding == types.PositionEncodingKind.Utf32 or line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for index, character in enumerate(line):
            if units >= position.character:
                return start + index
            units += self._units(character)
        return start + len(line)

    def position(self, offset: int) -> types.Position:
        """Return the position of an offset."""
        offset = max(0, min(offset, len(self.text)))
        row = bisect_right(self._starts, offset) - 1
        before = self.text[self._starts[row] : offset]
        if self._encoding == types.PositionEncodingKind.Utf32 or before.isascii():
            return types.Position(row, len(before))
        return types.Position(row, sum(map(self._units, before)))

    def range(self, start: int, end: int) -> types.Range:
        """Return the range between two offsets."""
        return types.Range(self.position(start), self.position(end))

    def row_start(self, row: int) -> int:
        """Return the offset at which a row, counted from 0, begins; after the last, the end of the text."""
        return self._starts[row] if row < len(self._starts) else len(self.text)

    def line_end(self, offset: int) -> int:
        """Return the offset at which the line that contains ``offset`` ends, before its line ending."""
        row = bisect_right(self._starts, offset) - 1
        return self._starts[row] + len(self._line(row).rstrip("\r\n"))

    def _line(self, row: int) -> str:
        return self.text[self._starts[row] : self.row_start(row + 1)]

    def _units(self, character: str) -> int:
        if self._encoding == types.PositionEncodingKind.Utf8:
            return len(character.encode(errors="surrogatepass"))
        return 2 if ord(character) > _BMP_END else 1


def changed(text: str, changes: Iterable[types.TextDocumentContentChangeEvent], encoding: str) -> str:
    """Return a text after changes, each of which applies to the result of the one before it."""
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            lines = Lines(text, encoding)
            start, end = lines.offset(change.range.start), lines.offset(change.range.end)
            text = text[:start] + change.text + text[max(start, end) :]
        else:
            text = change.text
    return text
