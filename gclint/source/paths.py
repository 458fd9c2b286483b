"""How paths are written where people read them."""

from __future__ import annotations

import os
from pathlib import Path


def shown(path: Path | str) -> str:
    """Return a path as it is; from the working directory where that is shorter."""
    written = str(path)
    # What `..` leads to behind a link is not written in the path.
    if os.pardir in Path(path).parts:
        return written
    return min(written, os.path.relpath(written), key=len)
