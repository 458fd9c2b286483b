"""What a text is after edits."""

from __future__ import annotations

from collections.abc import Iterable

from gclint.finding import Edit


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return ``text`` after edits that do not overlap."""
    pieces = []
    end = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        pieces += [text[end : edit.start], edit.content]
        end = edit.end
    return "".join([*pieces, text[end:]])
