"""Writes JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TextIO


def write_object(
    document: object, stream: TextIO, indent: int = 2, default: Callable[[Any], str] | None = None
) -> None:
    """Write a document as indented JSON in ASCII, which no CI system takes for commands.

    Args:
        document: the document.
        stream: where to write it.
        indent: the number of spaces.
        default: returns text for what JSON cannot hold.
    """
    from gclint.source.paths import inert

    text = json.dumps(document, indent=indent, default=default)
    stream.write(f"{inert(text, _escaped)}\n")


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}"
