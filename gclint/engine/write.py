"""Changed texts written to disk: at every moment a file is the old one or the new one."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gclint.finding import Problem

if TYPE_CHECKING:
    from gclint.source.project import Project


def write_all(project: Project, changed: Mapping[Path, tuple[str, str]]) -> list[Problem]:
    """Write the new texts of ``changed`` files (before, after), and return what went wrong.

    A file that is no longer what was read is left alone.
    """
    problems = []
    for path, (before, after) in changed.items():
        file = project.file(path)
        try:
            if path.read_bytes() != file.encode(before):
                message = "this file has changed since it was read, so it was not fixed; run gclint again"
                problems.append(Problem(path, message))
            else:
                write_atomically(path, file.encode(after))
        except OSError as error:
            problems.append(Problem(path, f"the fixed file cannot be written: {error.strerror or error}"))
    return problems


def write_text(path: Path, text: str) -> list[Problem]:
    """Let the file at ``path``, new or not, hold ``text`` in UTF-8, and return what went wrong."""
    try:
        write_atomically(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        return [Problem(path, f"this file cannot be written: {error.strerror or error}")]
    return []


def write_atomically(path: Path, data: bytes) -> None:
    """Let the file at ``path``, or the one that it links to, hold ``data``.

    The data goes to a new file in the same folder, which then takes the place of the old one, if
    there is one, with its mode and, where that is allowed, its owner.

    Raises:
        OSError: it cannot be written; then the file is as it was.
    """
    target = Path(os.path.realpath(path))
    status = target.stat() if target.exists() else None
    if status is not None and not stat.S_ISREG(status.st_mode):
        # A device, for one, must not be replaced by a file of its name.
        raise OSError(errno.EINVAL, "this is no file", str(target))
    if status is not None and not os.access(target, os.W_OK):
        # Replacing it would need the folder's permission only.
        raise PermissionError(errno.EACCES, "the file is read-only", str(target))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        if status is not None and hasattr(os, "chown"):
            # Another user's file may be ours to write, but not to give away.
            with contextlib.suppress(OSError):
                os.chown(temporary, status.st_uid, status.st_gid)
        temporary.chmod(_mode_of_new_files() if status is None else stat.S_IMODE(status.st_mode))
        os.replace(temporary, target)  # noqa: PTH105 (os.replace is what is documented as atomic)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode_of_new_files() -> int:
    # It can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
