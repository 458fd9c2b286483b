"""Recognises a piece of code when lines have moved: for baselines and fingerprints."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterator

from gclint.source.tokens import Kind, tokens

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
        if token.kind is Kind.STRING:
            prefix = token.text[: len(token.text) - len(token.text.lstrip(string.ascii_letters))]
            yield from (prefix, *_pieces(token.text[len(prefix) :])) if prefix else (token.text,)
        elif token.kind is Kind.JOIN:
            yield "\\"
        elif token.kind is not Kind.COMMENT:
            yield from _PIECE.findall(token.text)
