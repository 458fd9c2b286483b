"""Writing a list of arguments or parameters anew, with the comments that belong to its items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

LINE_LENGTH = 119
"""What transformers' own formatter allows; only a list that is rewritten anyway is broken at it."""


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
    inner = text[opening + 1 : closing]
    line_start = max(text.rfind("\n", 0, opening), text.rfind("\r", 0, opening)) + 1
    line = text[line_start:opening]
    outer = line[: len(line) - len(line.lstrip())]
    lines = inner.splitlines(keepends=True)
    own_line = next((part for part in lines[1:] if part.strip()), None)
    indent = own_line[: len(own_line) - len(own_line.lstrip())] if own_line else outer + "    "
    tail = lines[-1] if len(lines) > 1 and not lines[-1].strip() else outer
    code = "\n".join(part.partition("#")[0] for part in lines).rstrip()
    first = lines[0].rstrip("\r\n") if lines else ""
    opening_comment = first if first.lstrip().startswith("#") else ""
    last_comments: list[str] = []
    for part in reversed(lines[1:]):
        if part.lstrip().startswith("#"):
            last_comments.insert(0, part.strip())
        elif part.strip():
            break
    return Layout(
        own_line is not None,
        indent,
        newline + tail,
        code.endswith(","),
        newline,
        opening_comment,
        tuple(last_comments),
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
