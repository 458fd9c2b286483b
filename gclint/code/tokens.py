"""Splits pieces of code into tokens, also incomplete ones, to compare and to show them without their layout.

``tokenize`` is not suitable: it knows only the syntax of the running Python, has other tokens for formatted
strings in each release, does not take a lone CR for a line end, and rejects some lines of a call. Nothing is
an error here: an unclosed string ends with its line, a triple-quoted one with the text, and what cannot be
part of code is an operator. A formatted string that holds its own quotes, as Python has it since 3.12, is one
token with the rest of its line: to compare, that is strict enough.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from keyword import iskeyword
from typing import NamedTuple

# What follows the first quote. One of these always matches: an unclosed string ends somewhere too.
_LONG = r"""
    (?<=")""[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*(?:\"\"\")?
    | (?<=')''[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*(?:''')?
"""
_SHORT = r"""
    (?<=")[^"\\\r\n]*(?:\\(?:\r\n|[\s\S])[^"\\\r\n]*)*"?
    | (?<=')[^'\\\r\n]*(?:\\(?:\r\n|[\s\S])[^'\\\r\n]*)*'?
"""
_TOKEN = rf"""
    (?P<string>(?:[bBfFtTuU]|[bBfFtT]?[rR]|[rR][bBfFtT])?["'](?:{_LONG}|{_SHORT}))
    | (?P<name>[A-Za-z_\x80-\U0010ffff][0-9A-Za-z_\x80-\U0010ffff]*)
    | (?P<number>
        0[xX](?:_?[0-9a-fA-F])+ | 0[oO](?:_?[0-7])+ | 0[bB](?:_?[01])+
        | (?:[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?)? | \.[0-9](?:_?[0-9])*)
          (?:[eE][-+]?[0-9](?:_?[0-9])*)?[jJ]?
      )
    | (?P<newline>\r\n|\r|\n)
    | (?P<comment>\#[^\r\n]*)
    | (?P<join>\\(?:\r\n|\r|\n))
    | (?P<operator>\*\*=? | //=? | >>=? | <<=? | -> | := | != | \.\.\. | [-+*/%@&|^=<>]=? | [^ \t\f])
    """
_LONGEST_CODE = 60
_LINE_END = re.compile(r"[\r\n]")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")


@cache
def _pattern() -> re.Pattern[str]:
    """Compile the pattern on first use: a run over a file without findings does not need it."""
    return re.compile(_TOKEN, re.VERBOSE)


class TokenKind(Enum):
    """What a token is."""

    NAME = "name"
    """Keywords too."""
    NUMBER = "number"
    STRING = "string"
    """With its prefix."""
    OPERATOR = "operator"
    """Brackets and delimiters too, and what cannot be part of code."""
    COMMENT = "comment"
    NEWLINE = "newline"
    """A line end, also inside brackets, but not after a backslash."""
    JOIN = "join"
    """A backslash with the line end after it."""


_KINDS = {kind.value: kind for kind in TokenKind}


class Token(NamedTuple):
    """A piece of a text; between two of them are only spaces, tabs and form feeds."""

    kind: TokenKind
    start: int
    text: str

    @property
    def end(self) -> int:
        """The offset after the token."""
        return self.start + len(self.text)


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """Yield the tokens of a text, or of a range of it that begins outside of strings and comments."""
    stop = len(text) if end is None else end
    while match := _pattern().search(text, start, stop):
        kind, start = _KINDS[match.lastgroup or ""], match.end()
        if kind is TokenKind.STRING and _is_torn(match[0]):
            line_end = _LINE_END.search(text, start, stop)
            start = line_end.start() if line_end else stop
        yield Token(kind, match.start(), text[match.start() : start])


def _is_torn(string: str) -> bool:
    """Return whether a formatted string seems to end at a quote inside of its fields."""
    if string.count("{") == string.count("}") or not re.match(r"[rR]?[fFtT]", string):
        return False
    code = string.replace("{{", "").replace("}}", "")
    return code.count("{") != code.count("}")


def code_tokens(text: str, *, comments: bool = False) -> list[str]:
    """Return the tokens that no formatter changes: without layout and magic trailing commas.

    Line ends are LF, also in triple-quoted strings, as Python reads them.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [token.text for token in _code(text) if comments or token.kind is not TokenKind.COMMENT]


def one_line(text: str) -> str:
    """Return code on one line, with its spacing, but without comments."""
    pieces: list[str] = []
    previous: Token | None = None
    for token in _code(text):
        if token.kind is TokenKind.COMMENT:
            continue
        if previous is not None and previous.end < token.start:
            pieces.append("" if previous.text in _OPENING or token.text in _CLOSING else " ")
        pieces.append(re.sub(r"\s+", _line_break_as_blank, token.text))
        previous = token
    return "".join(pieces)


def shortened(text: str) -> str:
    """Return the beginning of code on one line."""
    line = one_line(text)
    return line if len(line) <= _LONGEST_CODE else f"{line[:_LONGEST_CODE]}…"


def _line_break_as_blank(white: re.Match[str]) -> str:
    return " " if "\n" in white[0] or "\r" in white[0] else white[0]


@dataclass
class _Bracket:
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
        if token.kind is TokenKind.COMMENT:
            found.append(token)
            continue
        if token.kind in (TokenKind.NEWLINE, TokenKind.JOIN):
            is_first = is_first or (token.kind is TokenKind.NEWLINE and not brackets)
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
    if token.kind is TokenKind.NAME:
        return not iskeyword(token.text)
    return token.kind in (TokenKind.STRING, TokenKind.NUMBER) or token.text in _CLOSING


_HASH_LENGTH = 16

_PIECE = re.compile(r"\w+|[^\s\w]")


def code_hash(code: str) -> str:
    """Return a hash of a piece of code that does not depend on layout and comments."""
    pieces = " ".join(_pieces(code))
    # A formatter adds a comma there when it breaks a line.
    laid_out_in_one_line = re.sub(r", ([)\]}])", r"\1", pieces)
    return hashlib.sha256(laid_out_in_one_line.encode(errors="surrogatepass")).hexdigest()[:_HASH_LENGTH]


def _pieces(code: str) -> Iterator[str]:
    """Yield the pieces that the hashes of this version are made of, which are finer than tokens.

    These are words, single characters and strings; the prefix of a string is a word, and the string after
    it ends as one without a prefix does. Comments and white space are left out.
    """
    for token in tokens(code):
        if token.kind is TokenKind.STRING:
            prefix = token.text[: len(token.text) - len(token.text.lstrip(string.ascii_letters))]
            yield from (prefix, *_pieces(token.text[len(prefix) :])) if prefix else (token.text,)
        elif token.kind is TokenKind.JOIN:
            yield "\\"
        elif token.kind is not TokenKind.COMMENT:
            yield from _PIECE.findall(token.text)
