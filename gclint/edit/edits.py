"""Edits by the files that they are for, and what a text is after them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gclint.finding import Edit

LINE_LENGTH = 119
"""What transformers' own formatter allows; only what is written anew anyway is broken at it."""


def by_file(edits: Iterable[Edit]) -> dict[Path, list[Edit]]:
    """Return each edit once, by its file, in their order."""
    found: dict[Path, dict[Edit, None]] = {}
    for edit in edits:
        found.setdefault(edit.path, {})[edit] = None
    return {path: list(own) for path, own in found.items()}


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return ``text`` after edits that do not overlap."""
    pieces = []
    end = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        pieces += [text[end : edit.start], edit.content]
        end = edit.end
    return "".join([*pieces, text[end:]])
