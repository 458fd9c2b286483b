"""How paths, and texts that others wrote, are written where people read them."""

from __future__ import annotations

import os
from pathlib import Path


def shown(path: Path | str) -> str:
    """Return a path for people: from the working directory where that is shorter, and printable."""
    return printable(shortened(path))


def shortened(path: Path | str) -> str:
    """Return a path as it is; from the working directory where that is shorter."""
    written = str(path)
    # What `..` leads to behind a link is not written in the path.
    if os.pardir in Path(path).parts:
        return written
    try:
        return min(written, os.path.relpath(written), key=len)
    except OSError:  # The working directory is gone.
        return written


def printable(text: str) -> str:
    r"""Return ``text`` with escapes, such as ``\x1b``, for what moves a cursor, or cannot be written."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
