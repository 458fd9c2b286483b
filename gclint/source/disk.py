"""Reads optional text."""

from __future__ import annotations

from pathlib import Path

from gclint.facts import read_text


def text_or_nothing(path: Path) -> str:
    """Return the text of a UTF-8 file, with invalid bytes replaced; an empty one if it cannot be read."""
    try:
        return read_text(path, "replace")
    except OSError:
        return ""
