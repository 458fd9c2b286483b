"""Files read from a disk on which anything may have the name of a file, and locked while they are written."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import ModuleType

_fcntl: ModuleType | None
try:
    import fcntl as _fcntl
except ImportError:  # Windows has no such locks.
    _fcntl = None

_WITHOUT_WAITING: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_bytes(path: Path) -> bytes:
    """Return what is in the regular file that ``path`` is, or leads to.

    A named pipe would be waited for, and a device may do something when it is opened.

    Raises:
        OSError: it cannot be read, or is something else.
    """
    _require_regular(path, path.stat())
    # It may be another thing by now.
    with os.fdopen(os.open(path, os.O_RDONLY | _WITHOUT_WAITING), "rb") as stream:
        _require_regular(path, os.fstat(stream.fileno()))
        return stream.read()


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
    """Tell whether a file belongs to the user who runs this."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _require_regular(path: Path, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "this is not a regular file", str(path))
