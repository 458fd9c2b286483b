"""A piece of a file's text as a LibCST tree, with the places of its nodes in the file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import cast

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

from gclint.source.file import SourceFile
from gclint.source.outline import Definition
from gclint.source.tree import Tree

_KEPT_TREES = 512


class Fragment:
    """A parsed definition or statement.

    Places are computed only when one is asked for: LibCST needs several times as long for places as
    for parsing, and most definitions have no finding.
    """

    def __init__(self, file: SourceFile, start: int, end: int, indent: str, completion: str = "") -> None:
        """Parse ``[start, end)`` of the file's text, whose first line is indented by ``indent``.

        Args:
            file: the file whose text it is.
            start: where the piece begins: at the beginning of a line if there is an ``indent``.
            end: where it ends.
            indent: the first line's indentation.
            completion: code to append to a piece that is incomplete, such as a header.

        Raises:
            libcst.ParserSyntaxError: the outline was wrong about the text.
        """
        self.file = file
        self._start, self._end = start, end
        # An indented block is parsed under a header that is added here.
        self._header = f"if 1:{file.newline}" if indent else ""
        self._text = self._header + file.text[start:end] + completion
        self._tree = _parse(self._text, file.occurrence(self._text, start), is_block=bool(indent))
        self.body = self._tree.body

    @property
    def module(self) -> cst.Module:
        """The whole piece, under an added header if it is indented."""
        return self._tree.module

    @cached_property
    def _spans(self) -> Mapping[cst.CSTNode, CodeSpan]:
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        return cast("Mapping[cst.CSTNode, CodeSpan]", wrapper.resolve(ByteSpanPositionProvider))

    @cached_property
    def _encoded(self) -> bytes | None:
        """The text in UTF-8 if its bytes and characters differ."""
        return None if self._text.isascii() else self._text.encode("utf-8")

    def holds(self, node: cst.CSTNode) -> bool:
        """Return whether a node belongs to this piece, so that its place is known."""
        return node in self._tree.nodes

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return where the code of a node begins and ends, in characters of the file's text."""
        place = self._tree.places.get(node)
        if place is None:
            span = self._spans[node]
            place = span.start, span.start + span.length
        return self._offset(place[0]), self._offset(place[1])

    def statement_range(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return a range that contains a node; its whole statement, if that is all that matters.

        So no place has to be computed if the piece is a single statement of a function.
        """
        whole = self.body[0]
        if len(self.body) == 1 and not isinstance(whole, (cst.FunctionDef, cst.ClassDef)):
            return self._start, self._end
        return self.span(node)

    def _offset(self, byte: int) -> int:
        characters = byte if self._encoded is None else len(self._encoded[:byte].decode("utf-8"))
        return self._start + characters - len(self._header)

    def source(self, node: cst.CSTNode) -> str:
        """Return a node's code."""
        return self.module.code_for_node(node)


@lru_cache(maxsize=_KEPT_TREES)
def _parse(text: str, occurrence: int, *, is_block: bool) -> Tree:
    """Parse a text, once: models repeat each other's code, so more than half of it has been seen before.

    Args:
        text: the code.
        occurrence: at how many other places of the same file the same code was asked for before. Files
            may share a tree, but within one file a node stands for one place.
        is_block: whether the code is the block under its first line.
    """
    return Tree(text, is_block=is_block)


def parse_definition(file: SourceFile, definition: Definition) -> Fragment:
    """Parse a class or function; its node is ``fragment.body[0]``."""
    return Fragment(file, definition.start, definition.end, definition.indent)
