"""The documents that are open in an editor, with their current texts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types

from gclint.server.positions import Lines, changed

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
