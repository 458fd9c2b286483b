"""Finds names in text without parsing it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator


def word_ends(text: str, word: str, start: int, end: int) -> Iterator[int]:
    """Yield the ends of a name, or of an attribute with its dot, as a whole word in a range."""
    offset = text.find(word, start, end)
    while offset != -1:
        after = offset + len(word)
        begins = word[0] == "." or offset == start or not _continues(text[offset - 1])
        if begins and (after >= end or not _continues(text[after])):
            yield after
        offset = text.find(word, after, end)


def has_word(text: str, word: str, start: int, end: int) -> bool:
    """Return whether a name, or an attribute with its dot, occurs as a whole word in a range."""
    return any(True for _ in word_ends(text, word, start, end))


def any_between(offsets: list[int], start: int, end: int) -> bool:
    """Return whether one of sorted ``offsets`` is in a range."""
    index = bisect_left(offsets, start)
    return index < len(offsets) and offsets[index] < end


def _continues(character: str) -> bool:
    return character.isalnum() or character == "_"
