"""The text of a file of Python, or of settings in YAML, and the way back to its exact bytes."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from weakref import ref

from gclint.code.outline import Outline
from gclint.code.trainer_settings import UnreadableSettings, are_settings, settings_module
from gclint.code.tree import OffsetTable, Tree, Unparsable, line_starts, parsed, position_of
from gclint.finding import Position

_FIRST_LINES = re.compile(r"[^\n]*\n?[^\n]*")
"""Where an encoding may be declared."""
_ASCII = "".join(map(chr, range(32, 127))) + "\t\n\f\r"


_KEPT_TREES = 32
"""A tree of a modeling file takes three megabytes; what a file consults is used by its neighbours, too."""
_LARGEST = 4_000_000
"""The most bytes of code, of which two million have been seen; a tree takes several hundred times as many."""


class UnreadableFile(Exception):
    """The file cannot be read as Python text; the message is meant for the user."""

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class SourceFile:
    """A file of Python, or of settings in YAML: its text, its outline, and positions in the text.

    Line endings, a byte order mark and the declared encoding are kept: ``encode(text)`` returns the
    original bytes.
    """

    def __init__(self, path: Path, data: bytes, unparsed: set[Path] | None = None) -> None:
        """Decode ``data`` as Python would; the path is added to ``unparsed`` if Python cannot parse it.

        Raises:
            UnreadableFile: the bytes are not valid in the encoding that the file declares, or are too many.
        """
        if len(data) > _LARGEST:
            megabytes = f"{_LARGEST // 1_000_000} MB"
            raise UnreadableFile(
                f"it has more than {megabytes} of code; if it is data, pass --extend-exclude"
            )
        self.path = path
        self._unparsed = set[Path]() if unparsed is None else unparsed
        self.latest_tree: Callable[[], Tree | None] = _no_tree
        self.facts: dict[object, object] = {}
        """Facts that others have derived from the text alone."""
        self._bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        self.encoding = _declared_encoding(data)
        self._body = body = data[len(self._bom) :]
        try:
            text = self.text
        except UnicodeDecodeError as error:
            good = body[: error.start].decode(self.encoding, errors="replace")
            raise UnreadableFile(
                f"byte 0x{body[error.start]:02x} is not {self.encoding.upper()}; save the file as UTF-8 "
                "or declare its encoding in the first line",
                position_of(line_starts(good), len(good)),
            ) from None
        # If a codec does not round-trip, a fix would change other parts of the file.
        if self.encoding != "utf-8" and text.encode(self.encoding, "replace") != body:
            raise UnreadableFile(_not_for_code(self.encoding), Position(1, 1))

    @property
    def text(self) -> str:
        """The text, of which only the most recent ones are kept: one emoji makes it four times as large."""
        return _text(self)

    def encode(self, text: str) -> bytes:
        """Return the bytes of ``text`` in the encoding of this file.

        Raises:
            UnicodeEncodeError: the declared encoding has no such character.
        """
        return self._bom + text.encode(self.encoding)

    def reads_back(self, text: str) -> bool:
        """Return whether Python would read the bytes of another text of this file as that text.

        What is added or removed further up decides whether a line is one of the first two, which alone can
        declare an encoding.
        """
        first = _FIRST_LINES.match(text)
        try:
            declared = _declared_encoding(self._bom + (first[0] if first else "").encode(errors="replace"))
        except UnreadableFile:
            return False
        return declared == self.encoding or text.isascii()

    @property
    def tree(self) -> Tree | None:
        """The syntax tree of the text; None if the running Python cannot parse it.

        Only the most recent trees are kept, and those that others hold, so a later one may have other nodes.
        """
        tree = _tree(self)
        if tree is None:
            self._unparsed.add(self.path)
        return tree

    @property
    def parses(self) -> bool:
        """Whether the running Python can parse the text, which is known from its first tree on."""
        return self.latest_tree is not _no_tree or self.tree is not None

    @cached_property
    def outline(self) -> Outline:
        """The definitions and imports of the text."""
        return Outline(self)

    @property
    def places(self) -> OffsetTable:
        """Where nodes of the tree stand in the text."""
        return OffsetTable(self.text, self.line_starts)

    def source(self, node: ast.AST) -> str:
        """Return the code of a node as it is written, without brackets around it."""
        start, end = self.places.span(node)
        return self.text[start:end]

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """The offset at which each line begins."""
        return line_starts(self.text)

    def position(self, offset: int) -> Position:
        """Return the row and column of a character offset."""
        return position_of(self.line_starts, offset)

    def row_start(self, row: int) -> int:
        """Return the offset at which a row (counted from 1) begins; after the last, the end of the text."""
        return self.line_starts[row - 1] if row <= len(self.line_starts) else len(self.text)

    def line(self, row: int) -> str:
        """Return the text of a row (counted from 1) without its line ending."""
        return self.text[self.line_starts[row - 1] : self.row_start(row + 1)].rstrip("\r\n")

    @cached_property
    def newline(self) -> str:
        """The line ending that a new line of this file gets: that of its first line."""
        end = self.text.find("\n")
        if end == -1:
            return "\r" if "\r" in self.text else "\n"
        carriage_return = self.text.find("\r", 0, end)
        if carriage_return == -1:
            return "\n"
        return "\r\n" if carriage_return == end - 1 else "\r"


def encoded(text: str) -> bytes:
    """Return a text as the bytes of a file, in the encoding that the text itself declares.

    Raises:
        UnreadableFile: that encoding does not exist, or has no such character.
    """
    body = text.removeprefix("\ufeff")
    mark = codecs.BOM_UTF8 if len(body) < len(text) else b""
    first_lines = _FIRST_LINES.match(body)
    encoding = _declared_encoding(mark + (first_lines[0] if first_lines else "").encode(errors="replace"))
    try:
        return mark + body.encode(encoding)
    except UnicodeEncodeError as error:
        raise UnreadableFile(
            f"{encoding.upper()} cannot encode {body[error.start]!a}; save the file as UTF-8",
            position_of(line_starts(body), error.start),
        ) from None


def _declared_encoding(data: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        raise UnreadableFile(f"{error.msg}; save the file as UTF-8", Position(1, 1)) from None
    if encoding in ("utf-8", "utf-8-sig"):
        return "utf-8"
    if not _is_for_code(encoding):
        raise UnreadableFile(_not_for_code(encoding), Position(1, 1))
    return encoding


@cache
def _is_for_code(encoding: str) -> bool:
    """Return whether a codec keeps ASCII: others turn code into something else, or take forever."""
    try:
        return _ASCII.encode(encoding) == _ASCII.encode() and _ASCII.encode().decode(encoding) == _ASCII
    except Exception:  # A codec may be third-party code.
        return False


def _not_for_code(encoding: str) -> str:
    return f"the declared encoding {encoding!r} cannot be used for Python code; save the file as UTF-8"


def _no_tree() -> None:
    """Stand for a tree that was not made yet."""


@lru_cache(maxsize=_KEPT_TREES)
def _text(file: SourceFile) -> str:
    return file._body.decode(file.encoding)


@lru_cache(maxsize=_KEPT_TREES)
def _tree(file: SourceFile) -> Tree | None:
    tree = file.latest_tree()  # Others may hold it although it was not used for some time.
    if tree is None:
        try:
            is_yaml = are_settings(file.path)
            tree = Tree(settings_module(file.text, file.line_starts) if is_yaml else parsed(file.text))
        except (Unparsable, UnreadableSettings):
            return None
        file.latest_tree = ref(tree)
    return tree
