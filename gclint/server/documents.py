"""The documents that are open in an editor, as they are there."""

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
    """A text that is being edited."""

    uri: str
    """As the editor spells it."""
    path: Path
    """The file that it is, or is to be."""
    version: int
    text: str
    encoding: str
    """What columns count: utf-8, utf-16 or utf-32."""
    _lines: Lines | None = field(default=None, repr=False)

    def change(self, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        """Take over what was typed."""
        self.text = changed(self.text, changes, self.encoding)
        self.version = version
        self._lines = None

    @property
    def lines(self) -> Lines:
        """The places in the text."""
        if self._lines is None:
            self._lines = Lines(self.text, self.encoding)
        return self._lines

    @property
    def shift(self) -> int:
        """What is to be added to an offset in a file's text: editors may show its byte order mark."""
        return len(_MARK) if self.text.startswith(_MARK) else 0

    @property
    def body(self) -> str:
        """The text as a file has it."""
        return self.text[self.shift :]


class Documents:
    """All documents that are open."""

    def __init__(self, encoding: str) -> None:
        """Know none yet; ``encoding`` is what columns count, as the protocol calls it."""
        self.encoding = encoding
        self.takes_versions = True
        """Whether the editor wants edits with the versions of the documents that they are for."""
        self._by_uri: dict[str, Document] = {}
        self._at: dict[Path, Document | None] = {}
        """Which document is which file, for those that were asked for."""

    def __iter__(self) -> Iterator[Document]:
        return iter(self._by_uri.values())

    def get(self, uri: str) -> Document | None:
        """Return a document by its address."""
        return self._by_uri.get(uri)

    def open(self, uri: str, path: Path, version: int, text: str) -> Document:
        """Return a new document."""
        self._at.clear()
        document = self._by_uri[uri] = Document(uri, path, version, text, self.encoding)
        return document

    def close(self, uri: str) -> Document | None:
        """Forget a document, and return it if there was one."""
        self._at.clear()
        return self._by_uri.pop(uri, None)

    def at(self, path: Path) -> Document | None:
        """Return the document of a file, however its path is spelled."""
        if path not in self._at:
            real = os.path.realpath(path)
            same = (each for each in self if each.path == path or os.path.realpath(each.path) == real)
            self._at[path] = next(same, None)
        return self._at[path]

    def uri_of(self, path: Path) -> str:
        """Return the address of a file, as the editor spells it if it has it open."""
        document = self.at(path)
        return Path(os.path.abspath(path)).as_uri() if document is None else document.uri  # noqa: PTH100
