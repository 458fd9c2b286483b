"""A text as searches expect it: of the same length, with what is odd in its layout straightened.

A search that knows ``self.layers`` and ``nn.ModuleList(`` need not know it over two lines.
Nearly no file has anything of the kind, and such a text is returned as it is.
"""

from __future__ import annotations

import re
from keyword import iskeyword

from gclint.source.tokens import Kind, Token, tokens

# Blanks before a dot, an opening bracket behind a call's name, joined lines, form feeds.
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
    """Return a text in which everything stands at its offset, or a little to the right of it.

    Line ends are CR LF or LF. Lines that a backslash joins are one. No blanks stand in ``a.b(`` and
    ``a[``; they stand before it. A form feed, behind which indentation begins anew, ends a line.
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
    """Return a text with LF for every lone CR, which ends a line too."""
    return text if "\r" not in text else _LONE_CR.sub("\n", text)


def _continues(previous: Token | None, token: Token, gap: str) -> bool:
    """Tell whether a token belongs to what stands before it: as an attribute, a call or a subscript."""
    if previous is None:
        return False
    if previous.text == ".":
        return token.kind is Kind.NAME and not iskeyword(token.text)
    is_operand = not iskeyword(previous.text) if previous.kind is Kind.NAME else previous.text in (")", "]")
    return is_operand and (token.text == "." or (token.text in ("(", "[") and "\n" not in gap))
