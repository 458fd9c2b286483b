"""Straightens the odd layout of a text for searches, without changing its length.

A search for ``self.layers`` or ``nn.ModuleList(`` then also finds one that is split over two lines.
Hardly any file has such layout; all others are returned as they are.
"""

from __future__ import annotations

import re
from keyword import iskeyword

from gclint.source.tokens import Kind, Token, tokens

# Spaces before a dot, or between a name and its bracket, joined lines, form feeds.
_ODD = (
    re.compile(r"self\s+\."),
    re.compile(r"nn\s+\."),
    re.compile(r"nn\.\w+[ \t]+\("),
    re.compile(r"\\[\r\n]"),
    re.compile(r"\f"),
)
_LONE_CR = re.compile(r"\r(?!\n)")
_FORM_FEED = re.compile(r"^([ \t\f]*)\f", re.MULTILINE)


def straightened(text: str) -> str:
    """Return a text in which everything is at its offset, or slightly to the right of it.

    Line ends are CR LF or LF. Lines joined by a backslash are one line. Spaces inside ``a.b(`` and ``a[``
    are moved before it. A form feed, after which indentation starts again, ends a line.
    """
    text = with_line_feeds(text)
    if not any(pattern.search(text) for pattern in _ODD):
        return text
    text = _FORM_FEED.sub(lambda match: match[1].replace("\f", "\n") + "\n", text)
    pieces: list[str] = []
    end = chain = 0
    gap = ""
    previous: Token | None = None
    for token in tokens(text):
        gap += text[end : token.start]
        end = token.end
        if token.kind is Kind.JOIN:
            gap += " " * len(token.text)
        elif token.kind is Kind.NEWLINE:
            gap += token.text
        elif _continues(previous, token, gap):
            # `chain` is the piece that the dotted name begins with: it moves to the right.
            pieces.insert(chain, gap)
            pieces.append(token.text)
            gap, previous = "", token
        else:
            chain = len(pieces) + 1
            pieces += [gap, token.text]
            gap, previous = "", None if token.kind is Kind.COMMENT else token
    return "".join([*pieces, gap, text[end:]])


def with_line_feeds(text: str) -> str:
    """Return a text with LF for every lone CR, which also ends a line."""
    return text if "\r" not in text else _LONE_CR.sub("\n", text)


def _continues(previous: Token | None, token: Token, gap: str) -> bool:
    """Return whether a token continues what is before it, as an attribute, a call or a subscript."""
    if previous is None:
        return False
    if previous.text == ".":
        return token.kind is Kind.NAME and not iskeyword(token.text)
    is_operand = not iskeyword(previous.text) if previous.kind is Kind.NAME else previous.text in (")", "]")
    return is_operand and (token.text == "." or (token.text in ("(", "[") and "\n" not in gap))
