"""Where the journals of writes lie that have not ended; most runs meet none, and need no more than this."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from gclint.facts import Places, is_there
from gclint.source.disk import is_own

NAME = ".gclint-fix"
"""What a journal is called."""


def journals_above(paths: Iterable[Path]) -> list[Path]:
    """Return the journals in the given folders, and in those that the given files and folders lie in."""
    places = Places()
    seen: set[Path] = set()
    found = []
    for path in paths:
        folder = places.location(path)
        # Thousands of files are asked about. A folder that is called so lies above its own.
        if folder.suffix == ".py":
            folder = folder.parent
        while folder not in seen:
            seen.add(folder)
            if is_there(f"{folder}/{NAME}") and _is_journal(folder / NAME):
                found.append(folder / NAME)
            folder = folder.parent
    return found


def _is_journal(path: Path) -> bool:
    try:
        return is_trusted(path.lstat(), path.parent)
    except OSError:
        return False


def is_trusted(status: os.stat_result, folder: Path) -> bool:
    """Tell whether a file may be a journal: in a folder for everybody, anybody can give one a name."""
    if not stat.S_ISREG(status.st_mode):
        return False
    return is_own(status) or status.st_uid == folder.stat().st_uid
