"""Splits pieces of code into tokens, independently of the running Python.

``tokenize`` is not suitable: it knows only the syntax of the running Python, has other tokens for formatted
strings in each release, does not take a lone CR for a line end, and rejects incomplete code such as some
lines of a call. Here a formatted string is one token, whatever is nested in its fields. Nothing is an error:
an unclosed string ends with its line, a triple-quoted one with the text, and what cannot be part of code is
an operator. No character is looked at more than a few times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from keyword import iskeyword
from typing import NamedTuple

COMMENT = r"\#[^\r\n]*"
"""Matches a comment; to be used in verbose patterns, like the others here."""
JOIN = r"\\(?:\r\n|\r|\n)"
"""Matches a backslash at the end of a line."""
# What follows the first quote. One of these always matches: an unclosed string ends somewhere too.
_LONG = r"""
    (?<=")""[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*(?:\"\"\")?
    | (?<=')''[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*(?:''')?
"""
_SHORT = r"""
    (?<=")[^"\\\r\n]*(?:\\(?:\r\n|[\s\S])[^"\\\r\n]*)*"?
    | (?<=')[^'\\\r\n]*(?:\\(?:\r\n|[\s\S])[^'\\\r\n]*)*'?
"""
STRINGS = rf"""
    ["'](?:
        (?P<formatted>(?<=\b[fFtT]["'])|(?<=\b[fFtT][rR]["'])|(?<=\b[rR][fFtT]["']))
        | (?P<long>{_LONG}) | {_SHORT}
    )
"""
"""Matches a string from its first quote, and of a formatted one that quote only: see ``scan``."""

_TOKEN = rf"""
    [ \t\f]*
    (?:
        (?P<formatted>(?:[fFtT][rR]?|[rR][fFtT])(?=["']))
        | (?P<string>(?:[bBuU]|[bB]?[rR]|[rR][bB])?["'](?:{_LONG}|{_SHORT}))
        | (?P<name>[A-Za-z_\x80-\U0010ffff][0-9A-Za-z_\x80-\U0010ffff]*)
        | (?P<number>
            0[xX](?:_?[0-9a-fA-F])+ | 0[oO](?:_?[0-7])+ | 0[bB](?:_?[01])+
            | (?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)? | \.[0-9](?:_?[0-9])*)
              (?:[eE][-+]?[0-9](?:_?[0-9])*)?[jJ]?
          )
        | (?P<newline>\r\n|\r|\n)
        | (?P<comment>{COMMENT})
        | (?P<join>{JOIN})
        | (?P<operator>\*\*=? | //=? | >>=? | <<=? | -> | := | != | \.\.\. | [-+*/%@&|^=<>]=? | [^ \t\f])
        | \Z
    )
    """


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern on first use: a run over a file without findings needs none of these."""
    return re.compile(pattern, re.VERBOSE)


def _marks(pattern: str) -> str:
    """Match strings, comments, and the given pattern."""
    return rf"{STRINGS} | {COMMENT} | {pattern}"


_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_BRACKETS = _marks(r"[()\[\]{}]")
_FIELD = _marks(r"[()\[\]{}:]")
_HEADER = _marks(r"[()\[\]{}:] | \blambda\b")


class Kind(Enum):
    """What a token is."""

    NAME = "name"
    """Keywords too."""
    NUMBER = "number"
    STRING = "string"
    """With its prefix, and a formatted one with all that is nested in it."""
    OPERATOR = "operator"
    """Brackets and delimiters too, and what cannot be part of code."""
    COMMENT = "comment"
    NEWLINE = "newline"
    """A line end, also inside brackets, but not after a backslash."""
    JOIN = "join"
    """A backslash with the line end after it."""


_KINDS = {kind.value: kind for kind in Kind}


class Token(NamedTuple):
    """A piece of a text; between two of them are only spaces, tabs and form feeds."""

    kind: Kind
    start: int
    text: str

    @property
    def end(self) -> int:
        """The offset after the token."""
        return self.start + len(self.text)


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """Yield the tokens of a text, or of a range of it that begins outside of strings and comments."""
    stop = len(text) if end is None else end
    resume: int | None = start
    while resume is not None:
        position, resume = resume, None
        for match in _compiled(_TOKEN).finditer(text, position, stop):
            group = match.lastgroup
            if group is None:
                continue
            first = match.start(group)
            if group == "formatted":
                resume = _formatted_end(text, match.end(), stop)
                yield Token(Kind.STRING, first, text[first:resume])
                break
            yield Token(_KINDS[group], first, match[group])


def scan(
    pattern: re.Pattern[str], text: str, start: int = 0, end: int | None = None
) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the matches of a pattern that holds ``STRINGS``, each with the offset of its end.

    No pattern matches a formatted string as a whole, since it can contain others; the search continues
    after it.
    """
    stop = len(text) if end is None else end
    resume: int | None = start
    while resume is not None:
        position, resume = resume, None
        for match in pattern.finditer(text, position, stop):
            if match.lastgroup == "formatted":
                resume = _formatted_end(text, match.start(), stop)
                yield match, resume
                break
            yield match, match.end()


# -- formatted strings


@dataclass
class _Part:
    """An open part of a formatted string: its text, a field's code, or a field's format."""

    quote: str
    literal: re.Pattern[str]
    """Matches what matters in the text of the string."""
    is_code: bool = False
    is_format: bool = False
    depth: int = 0
    """How many brackets are open in a field's code."""


def _formatted_end(text: str, offset: int, stop: int) -> int:
    """Return the end of the formatted string whose first quote is at ``offset``."""
    parts = [_string_part(text, offset)]
    offset += len(parts[0].quote)
    while parts:
        part = parts[-1]
        match = (_compiled(_FIELD) if part.is_code else part.literal).search(text, offset, stop)
        if match is None:
            return stop
        offset = match.end()
        if part.is_code:
            if match.lastgroup == "formatted":
                parts.append(_string_part(text, match.start()))
                offset = match.start() + len(parts[-1].quote)
            elif _ends_code(part, match[0]):
                parts.pop()
        elif match[0] == "{":
            if not part.is_format and text.startswith("{", offset, stop):
                offset += 1
            else:
                parts.append(_Part(part.quote, part.literal, is_code=True))
        elif match[0] == "}":
            if part.is_format:
                parts.pop()
        elif match[0] == part.quote or match[0] in "\r\n":
            if match[0] != part.quote:
                offset = match.start()
            while parts.pop().is_format:
                pass
    return offset


def _string_part(text: str, offset: int) -> _Part:
    """Return the text of the formatted string whose first quote is at ``offset``."""
    quote = text[offset]
    if text.startswith(quote * 3, offset):
        quote *= 3
    is_raw = "r" in text[max(offset - 2, 0) : offset].lower()
    return _Part(quote, _literal(quote, is_raw))


@cache
def _literal(quote: str, is_raw: bool) -> re.Pattern[str]:
    """Match what ends the text of a formatted string, and escapes of that."""
    # A backslash does not escape a brace, and in a raw string a brace is not part of a character's name.
    escape = r"\\(?:\r\n|[^{}])?" if is_raw else r"\\(?:N\{[^{}\"'\r\n]*\}|\r\n|[^{}])?"
    newline = "" if len(quote) == 3 else r"|[\r\n]"
    return re.compile(rf"{quote}|[{{}}]|{escape}{newline}")


def _ends_code(part: _Part, mark: str) -> bool:
    """Return whether a bracket ends a field; a colon only ends its code."""
    if mark in _OPENING:
        part.depth += 1
    elif mark == ":":
        if part.depth == 0:
            part.is_code, part.is_format = False, True
    elif mark in _CLOSING and part.depth:
        part.depth -= 1
    else:
        return mark == "}"
    return False


# -- brackets and headers


def closing_bracket(text: str, opening: int) -> int | None:
    """Return where the bracket that opens at ``opening`` is closed; None if it is not."""
    depth = 0
    for match, _ in scan(_compiled(_BRACKETS), text, opening):
        mark = match[0]
        if mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
            if depth == 0:
                return match.start()
    return None


def header_end(text: str, start: int, end: int | None = None) -> int | None:
    """Return the offset after the colon of the compound statement at ``start``; None without one."""
    depth = lambdas = 0
    for match, stop in scan(_compiled(_HEADER), text, start, end):
        mark = match[0]
        if mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
        elif depth == 0 and mark == "lambda":
            lambdas += 1
        elif depth == 0 and mark == ":":
            if lambdas == 0:
                return stop
            lambdas -= 1
    return None


# -- the same code


def code_tokens(text: str, *, comments: bool = False) -> list[str]:
    """Return the tokens that no formatter changes: without layout and magic trailing commas.

    Line ends are LF, also in triple-quoted strings, as Python reads them.

    Args:
        text: the code.
        comments: whether to include comments.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [token.text for token in _code(text) if comments or token.kind is not Kind.COMMENT]


def one_line(text: str) -> str:
    """Return code on one line, with its spacing, but without comments."""
    pieces: list[str] = []
    previous: Token | None = None
    for token in _code(text):
        if token.kind is Kind.COMMENT:
            continue
        if previous is not None and previous.end < token.start:
            pieces.append("" if previous.text in _OPENING or token.text in _CLOSING else " ")
        pieces.append(re.sub(r"\s+", _line_break_as_blank, token.text))
        previous = token
    return "".join(pieces)


def _line_break_as_blank(white: re.Match[str]) -> str:
    return " " if "\n" in white[0] or "\r" in white[0] else white[0]


@dataclass
class _Bracket:
    """An open bracket."""

    adds_comma: bool
    """Whether a comma after its only item has no meaning, as in a call, rather than making it a tuple."""
    commas: int = 0


def _code(text: str) -> list[Token]:
    """Return the tokens of a text without layout and magic trailing commas."""
    found: list[Token] = []
    brackets: list[_Bracket] = []
    before: Token | None = None
    is_first = True
    comma = -1
    for token in tokens(text):
        if token.kind is Kind.COMMENT:
            found.append(token)
            continue
        if token.kind in (Kind.NEWLINE, Kind.JOIN):
            is_first = is_first or (token.kind is Kind.NEWLINE and not brackets)
            continue
        if token.text in _OPENING:
            # On a new line, the brackets of a call look like those of a tuple.
            adds_comma = (
                _is_operand(before) and not is_first if token.text == "(" else not _is_operand(before)
            )
            brackets.append(_Bracket(adds_comma or token.text == "{"))
        elif token.text in _CLOSING:
            # Without its opening bracket, it is most likely the end of a call.
            bracket = brackets.pop() if brackets else _Bracket(adds_comma=True)
            if comma >= 0 and (bracket.adds_comma or bracket.commas > 1):
                del found[comma]
        comma = len(found) if token.text == "," else -1
        if comma >= 0 and brackets:
            brackets[-1].commas += 1
        found.append(token)
        # A bracket after these may contain a subject or a pattern.
        before = None if is_first and token.text in ("match", "case") else token
        is_first = False
    return found


def _is_operand(token: Token | None) -> bool:
    """Return whether a bracket after a token belongs to it, as in a call or a subscript."""
    if token is None:
        return False
    if token.kind is Kind.NAME:
        return not iskeyword(token.text)
    return token.kind in (Kind.STRING, Kind.NUMBER) or token.text in _CLOSING
