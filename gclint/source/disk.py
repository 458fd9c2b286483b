"""Files on disk: locks, owners, and text."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

from gclint.facts import read_text

_fcntl: ModuleType | None
try:
    import fcntl as _fcntl
except ImportError:  # Windows has no such locks.
    _fcntl = None


def lock(handle: int, *, shared: bool) -> bool | None:
    """Lock an open file until it is closed, or its process ends.

    Returns:
        False if another process holds the lock, None where the file system has no locks.
    """
    if _fcntl is None:
        return None
    try:
        _fcntl.flock(handle, (_fcntl.LOCK_SH if shared else _fcntl.LOCK_EX) | _fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_own(status: os.stat_result) -> bool:
    """Return whether a file belongs to the current user."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def text_or_nothing(path: Path) -> str:
    """Return the text of a UTF-8 file, with invalid bytes replaced; an empty one if it cannot be read."""
    try:
        return read_text(path, "replace")
    except OSError:
        return ""
