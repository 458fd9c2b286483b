"""What a piece of code is recognised by when lines have moved: baselines and fingerprints hang on it."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterator

from gclint.source.tokens import Kind, tokens

_HASH_LENGTH = 16

_PIECE = re.compile(r"\w+|[^\s\w]")


def code_hash(code: str) -> str:
    """Return what a piece of code is known by: the same for every layout, and with or without comments."""
    pieces = " ".join(_pieces(code))
    # A formatter puts a comma there where it breaks a line.
    laid_out_in_one_line = re.sub(r", ([)\]}])", r"\1", pieces)
    return hashlib.sha256(laid_out_in_one_line.encode(errors="surrogatepass")).hexdigest()[:_HASH_LENGTH]


def _pieces(code: str) -> Iterator[str]:
    """Yield what the hashes of this version are made of, which are finer than tokens.

    Words, single characters and strings, where a string's prefix is a word, and the string behind it
    ends as one without a prefix does. Comments and white space are left out.
    """
    for token in tokens(code):
        if token.kind is Kind.STRING:
            prefix = token.text[: len(token.text) - len(token.text.lstrip(string.ascii_letters))]
            yield from (prefix, *_pieces(token.text[len(prefix) :])) if prefix else (token.text,)
        elif token.kind is Kind.JOIN:
            yield "\\"
        elif token.kind is not Kind.COMMENT:
            yield from _PIECE.findall(token.text)
