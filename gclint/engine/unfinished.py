"""Finds the journals of unfinished writes; most runs find none, and import nothing else for that."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from gclint.facts import Places, is_there
from gclint.source.disk import is_own

NAME = ".gclint-fix"
"""The name of a journal."""


def journals_above(paths: Iterable[Path]) -> list[Path]:
    """Return the journals in the given folders, and in those that contain the given files and folders."""
    places = Places()
    seen: set[Path] = set()
    found = []
    for path in paths:
        folder = places.location(path)
        # This is asked for thousands of files. A folder with this name is above its own content.
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
    """Return whether a file may be a journal: in a folder that all can write to, anyone could create one."""
    if not stat.S_ISREG(status.st_mode):
        return False
    return is_own(status) or status.st_uid == folder.stat().st_uid
