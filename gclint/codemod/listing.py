"""Writing a list of arguments or parameters anew, with the comments that belong to its items."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise, takewhile

from gclint.source.file import SourceFile
from gclint.source.tokens import Kind, Token, tokens
from gclint.source.walk import Arg, arguments

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
    code = _code(inner)
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


def argument_span(file: SourceFile, call: ast.Call, arg: Arg) -> tuple[int, int]:
    """Return where an argument of a call stands, with its keyword or stars, and with brackets around it."""
    return argument_spans(file, call)[arguments(call).index(arg)]


def argument_spans(file: SourceFile, call: ast.Call) -> list[tuple[int, int]]:
    """Return where each argument of a call stands, as :func:`argument_span` does."""
    places, closing = file.places, file.places.end(call) - 1
    values = [places.span(arg.value) for arg in arguments(call)]
    if values and values[0][1] > closing:
        # For Python, the call's brackets are those of a generator that is its only argument.
        inside = _code(tokens(file.text, values[0][0] + 1, closing))
        values = [(inside[0].start, inside[-1].end)]
    ends = [places.end(call.func), *(end for _, end in values)]
    starts = [*(start for start, _ in values), closing]
    gaps = [_code(tokens(file.text, end, start)) for end, start in zip(ends, starts, strict=True)]
    found: list[tuple[int, int]] = []
    for (start, end), (before, behind) in zip(values, pairwise(gaps), strict=True):
        # Brackets of what stands before, the bracket or comma in front of the argument, and what is its own.
        own = list(dropwhile(_closes, before))[1:]
        brackets = list(takewhile(_closes, behind))
        found.append((own[0].start if own else start, brackets[-1].end if brackets else end))
    return found


def value_code(argument: str, keyword: str | None) -> str:
    """Return the code of an argument without the name that it is passed by."""
    return argument if keyword is None else argument[len(keyword) :].lstrip()[1:].lstrip()


def _code(found: Iterable[Token]) -> list[Token]:
    return [token for token in found if token.kind not in _LAYOUT]


def _closes(token: Token) -> bool:
    return token.text == ")"
