"""Writes JSON for programs."""

from __future__ import annotations

import json
from typing import TextIO


def write_object(document: object, stream: TextIO) -> None:
    """Write a document as indented JSON."""
    json.dump(document, stream, indent=2)
    stream.write("\n")
