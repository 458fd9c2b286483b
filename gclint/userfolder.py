"""Folders and files that a run believes: those of the current user, and those that the user names.

A repository can contain anything, links and files of gclint's own form included, also at the place that an
option or an environment variable names, and after a clone they belong to the user. So nothing that is kept
lies in a repository, every file in these folders is reached through a descriptor of its folder, no link that
lies in a repository is followed, and what git tracks is not believed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from types import ModuleType

from gclint.facts import digest

_fcntl: ModuleType | None
try:
    import fcntl as _fcntl
except ImportError:  # Windows has no such locks.
    _fcntl = None

_NAME = "gclint"
_TEMPORARY = ".tmp"
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd and os.unlink in os.supports_dir_fd
"""Whether files can be addressed relative to an open folder; on Windows, they cannot."""
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)
_FOLDER: int = os.O_RDONLY | _NO_LINK | getattr(os, "O_DIRECTORY", 0)


def cache_home() -> Path | None:
    """Return the folder for what can be computed again; None if this user has none."""
    return _home("user_cache_path")


def state_home() -> Path | None:
    """Return the folder for what must not be lost, such as journals; None if this user has none."""
    return _home("user_state_path")


def config_home() -> Path | None:
    """Return the folder of the user's own settings; None if this user has none."""
    return _home("user_config_path")


def _home(kind: str) -> Path | None:
    import platformdirs

    try:
        path: Path = getattr(platformdirs, kind)(_NAME, appauthor=False)
    except (OSError, RuntimeError, KeyError):  # There is no such user, as in some containers.
        return None
    return path if path.is_absolute() else None


class NotPrivate(OSError):
    """A folder or file is a link, or belongs to somebody else, so it is neither believed nor changed."""


class UserFolder:
    """An open folder of this user; a context manager. Names are those of entries, never paths."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open a folder, which is no link itself though links above it are followed.

        With ``create``, it is made, with the folders above it, for this user only.

        Raises:
            NotPrivate: it is a link, belongs to another user, or can be changed by everybody.
            OSError: it cannot be opened.
        """
        if create:
            _make(path)
        self.path = path
        self._handle = self._open(path)

    def _open(self, path: Path) -> int | None:
        _require_own_folder(os.lstat(path), path)
        if not _HAS_DESCRIPTORS:
            return None
        handle = os.open(path, _FOLDER)
        try:
            _require_own_folder(os.fstat(handle), path)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def __enter__(self) -> UserFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def names(self) -> list[str]:
        """Return the names of the entries, sorted.

        Raises:
            OSError: the folder cannot be read.
        """
        return sorted(os.listdir(self.path if self._handle is None else self._handle))

    def status(self, name: str) -> os.stat_result:
        """Return the status of an entry itself, if it is a regular file of this user.

        Raises:
            NotPrivate: it is something else.
            OSError: there is none.
        """
        found = os.stat(self._entry(name), dir_fd=self._handle, follow_symlinks=False)
        _require_own_file(found, self.path / name)
        return found

    def _entry(self, name: str) -> str | Path:
        """Return an entry as the system finds it: by the descriptor, or on Windows by its path."""
        return self.path / name if self._handle is None else name

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Return a descriptor of a regular file of this user; the caller closes it.

        Raises:
            NotPrivate: the entry is something else.
            OSError: it cannot be opened.
        """
        if self._handle is None:
            with contextlib.suppress(FileNotFoundError):
                self.status(name)
        handle = os.open(self._entry(name), flags | _NO_LINK | _BINARY, 0o600, dir_fd=self._handle)
        return _checked(handle, self.path / name)

    def read(self, name: str, most: int) -> bytes:
        """Return the content of a file of at most ``most`` bytes.

        Raises:
            OSError: it cannot be read, is larger, or is not a file of this user.
        """
        with os.fdopen(self.open(name), "rb") as stream:
            data = stream.read(most + 1)
        if len(data) > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(self.path / name))
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically: a reader gets its old content or the new one.

        Raises:
            OSError: it cannot be written; then it is as it was.
        """
        temporary = f"{name}.{os.urandom(8).hex()}{_TEMPORARY}"
        try:
            handle = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            old, new = self._entry(temporary), self._entry(name)
            os.replace(old, new, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(temporary)
            raise

    def remove(self, name: str) -> None:
        """Remove a regular file of this user; a link, or anything else, is left alone.

        Raises:
            NotPrivate: it is something else.
            OSError: it cannot be removed.
        """
        self.status(name)
        os.unlink(self._entry(name), dir_fd=self._handle)


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


def _make(folder: Path) -> None:
    """Create a folder for this user only, with those above it."""
    if not folder.parent.exists():
        _make(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)


def _checked(handle: int, path: Path) -> int:
    try:
        _require_own_file(os.fstat(handle), path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _require_own_folder(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise NotPrivate(errno.ENOTDIR, "this is not a folder, or a link to one", str(path))
    _require_own(status, path)


def _require_own_file(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotPrivate(errno.EINVAL, "this is not a regular file", str(path))
    _require_own(status, path)


def _require_own(status: os.stat_result, path: Path) -> None:
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid != os.geteuid():
        raise NotPrivate(errno.EPERM, "this belongs to another user", str(path))
    if status.st_mode & stat.S_IWOTH:
        raise NotPrivate(errno.EPERM, "everybody can change this", str(path))


_DIGITS = 16


def key_of(folder: Path) -> str:
    """Return what tells a folder from others in the names of files about it."""
    return digest(os.fsencode(os.path.realpath(folder)))[:_DIGITS]


def own_folder(path: Path, *, is_named: bool, create: bool = False) -> UserFolder:
    """Open a folder whose content is believed: one that the user has named, or one of the user's own.

    Raises:
        NotPrivate: somebody else may have made what is in it.
        OSError: it cannot be opened.
    """
    if is_named:
        _require_no_foreign_link(path)
    folder = UserFolder(path, create=create)
    try:
        _require_untracked(path, os.curdir)
    except BaseException:
        folder.close()
        raise
    return folder


def own_file(path: Path, *, is_believed: bool) -> int:
    """Open a file that the user names, which may be new, for reading and writing; the caller closes it.

    The folders above it are created. If what is in it ``is_believed``, git must not track it.

    Raises:
        NotPrivate: it is no regular file of this user, or somebody else may have made what is in it.
        OSError: it cannot be opened.
    """
    _require_no_foreign_link(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_believed:
        _require_untracked(path.parent, path.name)
    if not _HAS_DESCRIPTORS:
        with contextlib.suppress(FileNotFoundError):
            _require_own_file(os.lstat(path), path)
    handle = _checked(os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK | _BINARY, 0o644), path)
    if os.fstat(handle).st_nlink > 1:
        os.close(handle)
        raise NotPrivate(errno.EMLINK, "this file has other names", str(path))
    return handle


def _require_no_foreign_link(path: Path) -> None:
    """Require that no repository decides where a path leads.

    The links of a relative path are taken for those of a repository. Those of an absolute one belong to the
    user, except below the working directory, and where git tracks files.
    """
    here = Path.cwd()
    place = here / path
    for each in (*reversed(place.parents), place):
        if not each.is_symlink():
            continue
        folder = Path(os.path.realpath(each.parent))
        if not path.is_absolute() or folder.is_relative_to(here) or is_in_working_tree(folder):
            raise NotPrivate(errno.ELOOP, "this is a link, which is not followed", str(each))


def _require_untracked(folder: Path, name: str) -> None:
    """Require that git tracks nothing under a name in a folder, which exists."""
    real = Path(os.path.realpath(folder))
    if not is_in_working_tree(real):
        return
    from gclint.git import git  # Most runs do not need it.

    try:
        done = git(real, ["ls-files", "-z", "--", name])
    except OSError:
        done = None
    if done is None or done.returncode:
        raise NotPrivate(errno.EPERM, "git does not say whether it tracks this", str(folder / name))
    if done.stdout:
        raise NotPrivate(errno.EPERM, "git tracks this", str(folder / name))


def is_in_working_tree(real: Path) -> bool:
    """Return whether a folder, whose path has no links, lies in the working tree of a git repository."""
    return any(os.path.lexists(each / ".git") for each in (real, *real.parents))
