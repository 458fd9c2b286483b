"""Formats paths and foreign text for people."""

from __future__ import annotations

import os
from pathlib import Path


def shown(path: Path | str) -> str:
    """Return a path for people: relative to the working directory if that is shorter, and printable."""
    return printable(shortened(path))


def shortened(path: Path | str) -> str:
    """Return a path as it is, or relative to the working directory if that is shorter."""
    written = str(path)
    # After a link, `..` leads to a folder that the path does not name.
    if os.pardir in Path(path).parts:
        return written
    try:
        return min(written, os.path.relpath(written), key=len)
    except OSError:  # The working directory does not exist any more.
        return written


def printable(text: str) -> str:
    r"""Return ``text`` with control characters and what cannot be encoded escaped, such as ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
