"""Writes files atomically: at every moment a file has its old content or its new one."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from gclint.code.paths import printable, shown
from gclint.finding import Problem

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def output_place(path: Path) -> Path:
    """Return where a file that the user names is to be written: the path without the links on its way.

    A repository can contain links. So one in the working directory, in the folder above it that a relative
    path begins in, or in a git repository is followed only if it stays there, and a file that is a link
    itself, wherever it lies, only if it stays in its folder.

    Raises:
        OSError: a link leads out.
    """
    whole = Path(os.path.abspath(path))  # noqa: PTH100
    upwards = () if path.is_absolute() else Path(os.path.normpath(path)).parts
    start = os.path.realpath(Path(os.curdir, *(each for each in upwards if each == os.pardir)))
    here = Path(whole.anchor)
    tree: Path | None = None
    for left, name in enumerate(whole.parts[1:], start=2 - len(whole.parts)):
        if str(here) == start or os.path.lexists(here / ".git"):
            tree = here
        step = here / name
        if not step.is_symlink():
            here = step
            continue
        target = Path(os.path.realpath(step))
        limit = here if tree is None and left == 0 else tree
        if limit is not None and not target.is_relative_to(limit):
            raise OSError(
                errno.ELOOP,
                f"{shown(step)} is a link that leads out of {printable(str(limit))}, to {shown(target)}; "
                "name that path itself to write there",
                str(path),
            )
        here = target
    return here


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` to the file at ``path``; for links see :func:`output_place`.

    The data is written to a new file in the same folder, which then replaces the old one, if there is
    one, with its mode and, where that is allowed, its owner.

    Raises:
        OSError: it cannot be written; then the file is as it was.
    """
    target, status = _replaced(path)
    handle, temporary = _beside(target)
    try:
        _fill(handle, data, target, status)
        os.replace(temporary, target)  # noqa: PTH105 (os.replace is what is documented as atomic)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> list[Problem]:
    """Write ``text`` in UTF-8 to the file at ``path``, new or not, and return what went wrong."""
    try:
        write_atomically(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        return [Problem(path, f"this file cannot be written: {error.strerror or error}")]
    return []


def require_writable(path: Path) -> None:
    """Make sure that :func:`write_atomically` can write the file at ``path``, as far as can be checked.

    Raises:
        OSError: it cannot.
    """
    handle, temporary = _beside(_replaced(path)[0])
    os.close(handle)
    temporary.unlink()


def _beside(target: Path) -> tuple[int, Path]:
    """Return the descriptor and the path of a new file in the same folder."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    return handle, Path(name)


def stage(target: Path, data: bytes, temporary: Path) -> None:
    """Write ``data`` to ``temporary``, a new file that is to take the place of ``target``.

    It gets the mode of that file and, where that is allowed, its owner and extended attributes.

    Raises:
        OSError: it cannot be written; then it is not there.
    """
    temporary.unlink(missing_ok=True)
    try:
        _fill(os.open(temporary, _NEW_FILE, 0o600), data, target, target.stat())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def require_replaceable(target: Path, status: os.stat_result) -> None:
    """Make sure that a file may be replaced by another one.

    Raises:
        OSError: it may not.
    """
    if not stat.S_ISREG(status.st_mode):
        # A device, for example, must not be replaced by a file.
        raise OSError(errno.EINVAL, "this is not a file", str(target))
    if not os.access(target, os.W_OK):
        # Replacing a file needs permission only for its folder.
        raise PermissionError(errno.EACCES, "the file is read-only", str(target))


def sync_folders(folders: Iterable[Path]) -> None:
    """Flush the entries of ``folders`` to the disk, if the system can do that."""
    for folder in folders:
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _replaced(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return the file that is to be written, and its status if there is one."""
    status = path.stat() if path.exists() else None  # A pipe, to which /dev/stdout leads, has no real path.
    if status is not None and not stat.S_ISREG(status.st_mode):
        require_replaceable(path, status)
    target = output_place(path)
    if status is not None:
        require_replaceable(target, status)
    return target, status


def _fill(handle: int, data: bytes, target: Path, status: os.stat_result | None) -> None:
    """Write a new file that is to replace ``target``, and flush it to the disk."""
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        if status is not None:
            _adopt(stream.fileno(), target, status)
        elif hasattr(os, "fchmod"):
            os.fchmod(stream.fileno(), _mode_of_new_files())
        os.fsync(stream.fileno())


def _adopt(handle: int, target: Path, status: os.stat_result) -> None:
    """Give a new file the owner, the mode and the extended attributes of the one that it replaces."""
    if hasattr(os, "fchown"):
        # A file of another user may be writable, but its owner cannot be set.
        with contextlib.suppress(OSError):
            os.fchown(handle, status.st_uid, status.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(handle, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(target):
                with contextlib.suppress(OSError):
                    os.setxattr(handle, name, os.getxattr(target, name))


def _mode_of_new_files() -> int:
    # It can only be read by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
