"""Lists items in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def listed(items: Iterable[str], word: str = "and") -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    *most, last = items
    return f"{', '.join(most)} {word} {last}" if most else last


def listed_code(names: Iterable[str], word: str = "and") -> str:
    """Return the same for names in code, each in backticks."""
    return listed((f"`{name}`" for name in names), word)
