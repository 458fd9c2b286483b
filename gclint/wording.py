"""Words in messages: items in sentences, and a known word that an unknown one may stand for."""

from __future__ import annotations

from collections.abc import Iterable


def listed(items: Iterable[str], word: str = "and") -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    *most, last = items
    return f"{', '.join(most)} {word} {last}" if most else last


def listed_code(names: Iterable[str], word: str = "and") -> str:
    """Return the same for names in code, each in backticks."""
    return listed((f"`{name}`" for name in names), word)


# High enough for "chekc" and "check", but not for "modules" and "rules".
_ALIKE = 0.75


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the word in ``known``, which are in lower case, most similar to ``word``, if any is similar."""
    from difflib import get_close_matches

    found = get_close_matches(word.lower(), list(known), n=1, cutoff=_ALIKE)
    return found[0] if found else None
