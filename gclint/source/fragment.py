"""A piece of a file's text as a LibCST tree, with its nodes' places in the file."""

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

    Nothing but the tree is computed until a place is asked for: LibCST needs several times as long
    for places as for parsing, and most definitions have no finding.
    """

    def __init__(self, file: SourceFile, start: int, end: int, indent: str, completion: str = "") -> None:
        """Parse ``[start, end)`` of the file's text, whose first line is indented by ``indent``.

        Args:
            file: the file whose text it is.
            start: where the piece begins: at a line's beginning where there is an ``indent``.
            end: where it ends.
            indent: the first line's indentation.
            completion: code to put behind a piece that is not complete, such as a header alone.

        Raises:
            libcst.ParserSyntaxError: the text is not what the outline took it for.
        """
        self.file = file
        self._start, self._end = start, end
        # An indented block stands alone under a header of our own.
        self._header = f"if 1:{file.newline}" if indent else ""
        self._text = self._header + file.text[start:end] + completion
        self._tree = _parse(self._text, file.occurrence(self._text, start), is_block=bool(indent))
        self.body = self._tree.body

    @property
    def module(self) -> cst.Module:
        """The whole piece, under a header of its own where it is indented."""
        return self._tree.module

    @cached_property
    def _spans(self) -> Mapping[cst.CSTNode, CodeSpan]:
        wrapper = MetadataWrapper(self.module, unsafe_skip_copy=True)
        return cast("Mapping[cst.CSTNode, CodeSpan]", wrapper.resolve(ByteSpanPositionProvider))

    @cached_property
    def _encoded(self) -> bytes | None:
        """The text in UTF-8 where its bytes and characters differ."""
        return None if self._text.isascii() else self._text.encode("utf-8")

    def holds(self, node: cst.CSTNode) -> bool:
        """Tell whether a node is one of this piece, so that its place is known."""
        return node in self._tree.nodes

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return where a node's code begins and ends, in characters of the file's text."""
        place = self._tree.places.get(node)
        if place is None:
            span = self._spans[node]
            place = span.start, span.start + span.length
        return self._offset(place[0]), self._offset(place[1])

    def statement_range(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return a range that holds a node, and where only its whole statement counts, all of that.

        So no place needs to be computed where the piece is nothing but one statement of a function.
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
    """Parse a text; models repeat each other's code, so more than half of it has been seen before.

    Args:
        text: the code.
        occurrence: at how many other places the same file has the same code, as far as it was asked
            for. Files may share a tree, but within one file a node stands for one place.
        is_block: whether the code is what stands under its first line.
    """
    return Tree(text, is_block=is_block)


def parse_definition(file: SourceFile, definition: Definition) -> Fragment:
    """Parse a class or function; its node is ``fragment.body[0]``."""
    return Fragment(file, definition.start, definition.end, definition.indent)
