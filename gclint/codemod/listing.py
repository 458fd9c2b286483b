"""Writing a list of arguments or parameters anew, with the comments that belong to its items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from gclint.source.tokens import Kind, tokens

LINE_LENGTH = 119
"""What transformers' own formatter allows; only a list that is rewritten anyway is broken at it."""
_ENDS = (Kind.NEWLINE, Kind.JOIN)
_LAYOUT = (Kind.COMMENT, *_ENDS)


@dataclass(frozen=True)
class Item:
    """An argument's or a parameter's code and the comments that stand before and behind it."""

    code: str
    leading: tuple[str, ...] = ()
    trailing: str | None = None


@dataclass(frozen=True)
class Layout:
    """How a list stands in the text."""

    broken: bool
    """Whether its items stand on lines of their own."""
    indent: str
    """The indentation of such a line."""
    closing: str
    """What stands before the closing bracket where the list is broken: a newline and indentation."""
    trailing_comma: bool
    newline: str
    opening_comment: str
    """The comment behind the opening bracket, with the space before it."""
    last_comments: tuple[str, ...]
    """The comments on lines of their own behind the last item."""


def layout_of(text: str, opening: int, closing: int, newline: str) -> Layout:
    """Describe the list between the brackets at ``opening`` and ``closing`` in ``text``."""
    line_start = max(text.rfind("\n", 0, opening), text.rfind("\r", 0, opening)) + 1
    line = text[line_start:opening]
    outer = line[: len(line) - len(line.lstrip())]
    inner = list(tokens(text, opening + 1, closing))
    code = [token for token in inner if token.kind not in _LAYOUT]
    # What stands first on a line of its own, with the end of the line before.
    own = [(end, token) for end, token in pairwise(inner) if end.kind in _ENDS and token.kind not in _ENDS]
    last = code[-1].start if code else opening
    return Layout(
        bool(own),
        text[own[0][0].end : own[0][1].start] if own else outer + "    ",
        newline + (text[inner[-1].end : closing] if inner and inner[-1].kind in _ENDS else outer),
        bool(code) and code[-1].text == ",",
        newline,
        text[opening + 1 : inner[0].end] if inner and inner[0].kind is Kind.COMMENT else "",
        tuple(token.text for _, token in own if token.kind is Kind.COMMENT and token.start > last),
    )


def render(items: Sequence[Item], layout: Layout, column: int) -> str:
    """Return the text between the brackets.

    Args:
        items: what the list holds.
        layout: how the list stood before.
        column: where the opening bracket ends, counted from 0.
    """
    line = ", ".join(item.code for item in items)
    has_comments = any(item.leading or item.trailing for item in items)
    has_comments = has_comments or bool(layout.opening_comment or layout.last_comments)
    if not layout.broken and not has_comments and "\n" not in line and column + len(line) < LINE_LENGTH:
        return line
    parts: list[str] = [layout.opening_comment]
    for index, item in enumerate(items):
        parts += [layout.newline + layout.indent + comment for comment in item.leading]
        is_last = index == len(items) - 1
        comma = "," if not is_last or layout.trailing_comma or not layout.broken else ""
        comment = f"  {item.trailing}" if item.trailing else ""
        parts.append(layout.newline + layout.indent + item.code + comma + comment)
    parts += [layout.newline + layout.indent + comment for comment in layout.last_comments]
    return "".join(parts) + layout.closing


def comments(whitespace: object) -> tuple[str | None, tuple[str, ...]]:
    """Return the comment at the end of a line and those on lines of their own in a whitespace."""
    if not isinstance(whitespace, cst.ParenthesizedWhitespace):
        return None, ()
    first = whitespace.first_line.comment
    own = tuple(line.comment.value for line in whitespace.empty_lines if line.comment is not None)
    return (None if first is None else first.value), own
