"""The documents that are open in an editor: their URIs, their current texts, and positions in them."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from lsprotocol import types
from pygls.workspace import PositionCodec

from gclint.code.tree import line_starts

_MARK = "\ufeff"


@dataclass
class Document:
    """An open document."""

    uri: str
    """The URI as the editor spells it."""
    path: Path
    """The file, which may not exist yet."""
    version: int
    text: str
    encoding: str
    """The unit of columns: utf-8, utf-16 or utf-32."""
    _lines: Lines | None = field(default=None, repr=False)

    def change(self, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Apply changes from the editor."""
        self.text = changed(self.text, changes, self.encoding)
        self.version = version
        self._lines = None

    @property
    def lines(self) -> Lines:
        """The lines of the text, which convert between offsets and positions."""
        if self._lines is None:
            self._lines = Lines(self.text, self.encoding)
        return self._lines

    @property
    def shift(self) -> int:
        """The number to add to an offset in the file's text: 1 if the editor keeps the byte order mark."""
        return len(_MARK) if self.text.startswith(_MARK) else 0

    @property
    def body(self) -> str:
        """The text without a byte order mark, like that of a ``SourceFile``."""
        return self.text[self.shift :]


class Documents:
    """All open documents."""

    def __init__(self, encoding: str) -> None:
        """Start without documents; ``encoding`` is the unit of columns, as the protocol calls it."""
        self.encoding = encoding
        self.takes_versions = True
        """Whether the editor supports edits for a certain version of a document."""
        self._by_uri: dict[str, Document] = {}
        self._at: dict[Path, Document | None] = {}
        """The document of each path that was asked for, None if it is not open."""

    def __iter__(self) -> Iterator[Document]:
        return iter(self._by_uri.values())

    def get(self, uri: str) -> Document | None:
        """Return the document with this URI."""
        return self._by_uri.get(uri)

    def open(self, uri: str, path: Path, version: int, text: str) -> Document:
        """Add a document, and return it."""
        self._at.clear()
        document = self._by_uri[uri] = Document(uri, path, version, text, self.encoding)
        return document

    def close(self, uri: str) -> Document | None:
        """Remove a document, and return it if it was open."""
        self._at.clear()
        return self._by_uri.pop(uri, None)

    def at(self, path: Path) -> Document | None:
        """Return the open document of a file, however its path is spelled."""
        if path not in self._at:
            real = os.path.realpath(path)
            same = (each for each in self if each.path == path or os.path.realpath(each.path) == real)
            self._at[path] = next(same, None)
        return self._at[path]

    def uri_of(self, path: Path) -> str:
        """Return the URI of a file; if it is open, as the editor spells it."""
        document = self.at(path)
        return Path(os.path.abspath(path)).as_uri() if document is None else document.uri  # noqa: PTH100


_DRIVE = re.compile(r"/[A-Za-z]:")
_UNTITLED = "untitled"


def path_of(uri: str) -> Path | None:
    """Return the absolute path for the URI of a file; None for any other URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme.lower() != "file" or not parts.path:
        return None
    if os.name == "nt":
        path = unquote(parts.path)
        if parts.netloc:
            return Path(f"//{parts.netloc}{path}")
        return Path(path[1:]) if _DRIVE.match(path) else None
    if parts.netloc not in ("", "localhost"):
        return None
    raw = unquote_to_bytes(parts.path)
    return None if b"\0" in raw else Path(os.path.abspath(os.fsdecode(raw)))  # noqa: PTH100 (keeps links)


def untitled_name(uri: str) -> str | None:
    """Return a file name for a document that has not been saved yet; None for any other URI."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != _UNTITLED:
        return None
    return re.sub(r"[^\w.-]+", "-", unquote(rest)).strip("-") or _UNTITLED


class Lines:
    """The lines of a text."""

    def __init__(self, text: str, encoding: str) -> None:
        """Split ``text`` into lines, whose columns count units of ``encoding``: utf-8, utf-16 or utf-32."""
        self.text = text
        self._starts = line_starts(text)
        self._units = PositionCodec(encoding).client_num_units

    def offset(self, position: types.Position) -> int:
        """Return the offset of a position; one beyond the end of a line or of the text means that end."""
        if position.line >= len(self._starts):
            return len(self.text)
        start = self._starts[position.line]
        line = self._line(position.line).rstrip("\r\n")
        if line.isascii():
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
        return types.Position(row, self._units(self.text[self._starts[row] : offset]))

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
