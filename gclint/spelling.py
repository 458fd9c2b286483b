"""Suggests a known word for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

# High enough for "chekc" and "check", but not for "modules" and "rules".
_ALIKE = 0.75


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the word in ``known``, which are in lower case, most similar to ``word``, if any is similar."""
    from difflib import get_close_matches

    found = get_close_matches(word.lower(), list(known), n=1, cutoff=_ALIKE)
    return found[0] if found else None
