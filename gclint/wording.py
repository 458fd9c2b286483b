"""Words in messages: items in sentences, and a known word that an unknown one may stand for."""

from __future__ import annotations

from collections.abc import Iterable


def listed(items: Iterable[str], word: str = "and") -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    *most, last = items
    return f"{', '.join(most)} {word} {last}" if most else last


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, such as ``1 finding`` or ``2 findings``."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


def first_of(names: Iterable[str], most: int, word: str = " and") -> str:
    """Return the first of some names, and how many more there are: ``a, b and 3 more``."""
    names = list(names)
    more = len(names) - most
    return ", ".join(names[:most]) + (f"{word} {more} more" if more > 0 else "")


def listed_code(names: Iterable[str]) -> str:
    """Return the same for names in code, each in backticks."""
    return listed(f"`{name}`" for name in names)


# High enough for "chekc" and "check", but not for "modules" and "rules".
_ALIKE = 0.75


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the word in ``known``, which are in lower case, most similar to ``word``, if any is similar."""
    from difflib import get_close_matches

    found = get_close_matches(word.lower(), list(known), n=1, cutoff=_ALIKE)
    return found[0] if found else None
