"""Guesses at what was meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable

# As alike as "chekc" and "check"; "modules" and "rules" are not.
_ALIKE = 0.75


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the one of ``known``, which are in lower case, that ``word`` looks most like, if any does."""
    from difflib import get_close_matches

    found = get_close_matches(word.lower(), list(known), n=1, cutoff=_ALIKE)
    return found[0] if found else None
