"""Access to the file system that is recorded in a trace, so that a later run can check it again.

Everything that a lint run looks up goes through these functions: files, folders, links, and missing paths.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

from gclint.trace import FileFact, Signature, current

_WITHOUT_WAITING: int = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)
_SETTLED = 3_000_000_000
"""The age in nanoseconds from which a file's times are reliable: any later write would change them."""
_HAS_CHANGE_TIMES = os.name == "posix"  # On Windows, `st_ctime` is the time of creation.
_LARGEST = 10_000_000
"""How many bytes of a file are read at most: a hundred thousand lines of code have half as many."""
_DIGITS = 40
"""The length of digests, which is more than enough; a cache stores thousands of them."""
_WITH_LINKS = "+"
"""Ends the answer about a folder with links: what they lead to may change while the folder is the same."""
_OF_WHAT_IS_THERE = (("kind", "file"), ("kind", "folder"), ("link", ""), ("there", "1"))
_LEFT_OUT = "__pycache__"
"""A folder that runs create, and whose content does not matter."""


def digest(data: bytes) -> str:
    """Return a digest of some content, in hexadecimal digits."""
    return sha256(data).hexdigest()[:_DIGITS]


# -- questions


def read_bytes(path: Path | str, most: int = _LARGEST) -> bytes:
    """Return the content of a regular file of at most so many bytes; links are followed.

    Anything else is an error: reading a named pipe would block, and opening a device may have effects.

    Raises:
        OSError: it cannot be read, is larger, or is not a regular file.
    """
    return _read_noted("content", path, most)


def read_unnoted(path: Path | str) -> bytes:
    """Return the same without recording it, for files that do not affect the result, such as the cache.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    return _read(path)[0]


def search(path: Path | str) -> bytes:
    """Return the same for a file in which only words are searched.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    return _read_noted("search", path)


def read_text(path: Path | str, errors: str = "strict") -> str:
    """Return the text of a UTF-8 file, with line ends normalized to LF.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    text = read_bytes(path).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_json(path: Path | str) -> object:
    """Return the content of a JSON file.

    Raises:
        OSError: it cannot be read, or is not a regular file.
        ValueError: it is not JSON, or cannot be read as such; the message quotes nothing of it.
    """
    try:
        return json.loads(read_bytes(path))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_regular_file(stream: IO[Any]) -> bool:
    """Return whether what is written to a stream ends in a file, rather than a terminal, a pipe or a log."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def is_file(path: Path | str) -> bool:
    """Return whether a path is a file; links are followed."""
    return _ask("kind", path) == "file"


def is_dir(path: Path | str) -> bool:
    """Return whether a path is a folder; links are followed."""
    return _ask("kind", path) == "folder"


def exists(path: Path | str) -> bool:
    """Return whether a path exists; links are followed."""
    return _ask("kind", path) != ""


def mode(path: Path | str) -> int:
    """Return the type of a file as in ``st_mode``; links are followed.

    Raises:
        OSError: it does not exist.
        ValueError: it is not a path.
    """
    _ask("state", path)
    return os.stat(path).st_mode


def is_link(path: Path | str) -> bool:
    """Return whether a path is a symbolic link."""
    return _ask("link", path) != ""


def is_there(path: Path | str) -> bool:
    """Return whether a path exists, or is a broken link."""
    return _ask("there", path) != ""


def real_path(path: Path | str) -> Path:
    """Return a path with all links resolved."""
    return Path(_ask("real", path))


class PathResolver:
    """Resolves paths; links are resolved once per folder, not once per file."""

    def __init__(self) -> None:
        self._known: dict[Path, Path] = {}

    def location(self, path: Path) -> Path:
        """Return ``path`` with all links resolved."""
        known = self._known.get(path)
        if known is None:
            is_direct = not _may_lead_elsewhere(path)
            known = self.folder(path.parent) / path.name if is_direct else real_path(path)
            self._known[path] = known
        return known

    def folder(self, folder: Path) -> Path:
        """Return the same for the folder of files, which is remembered."""
        known = self._known.get(folder)
        if known is None:
            parent = self._known.get(folder.parent)
            if parent is None or _may_lead_elsewhere(folder):
                known = real_path(folder)
                # Resolved first, so that sibling folders need not resolve the whole path again.
                if folder.parent not in self._known:
                    self._known[folder.parent] = real_path(folder.parent)
            else:
                known = parent / folder.name
            self._known[folder] = known
        return known


def _may_lead_elsewhere(path: Path) -> bool:
    return path.name in ("", os.pardir) or is_link(path)


class FolderEntry(NamedTuple):
    """An entry of a folder."""

    name: str
    is_folder: bool
    """Whether it is a folder, or a link to one."""
    is_link: bool


def entries(folder: Path | str, suffix: str = "") -> list[FolderEntry]:
    """Return the sorted entries of a folder: files with a suffix, and folders but those of compiled modules.

    Raises:
        OSError: the folder cannot be read.
    """
    _look_at(folder)
    try:
        found, has_links = _entries(folder, suffix)
    except OSError as error:
        _note("entries", folder, _failure(error), suffix)
        raise
    if current() is not None:
        _note("entries", folder, _listed(found, has_links), suffix)
    return found


def matching(folder: Path | str, pattern: str) -> list[Path]:
    """Return the sorted paths in a folder whose names match a pattern; none if it cannot be read."""
    _look_at(folder)
    return [Path(folder, name) for name in _ask("matching", folder, pattern).split("/") if name]


def variable(name: str) -> str | None:
    """Return an environment variable."""
    found = _ask("variable", name)
    return found[1:] if found else None


def package_locations(name: str) -> list[str]:
    """Return the folders in which this Python would find a package, without importing anything."""
    found = _ask("package", name)
    return found.split("\n") if found else []


# -- answers in a later run


def answer(fact: FileFact) -> str:
    """Return the current answer to a question."""
    return _ANSWERS[fact.kind](fact.path, fact.detail)


def is_unchanged(path: str, seen: Signature | None) -> bool:
    """Return whether a path is that of the file or folder, and no link, that had a reliable signature."""
    try:
        return seen is not None and _HAS_CHANGE_TIMES and signature(os.lstat(path)) == seen
    except (OSError, ValueError):
        return False


def follows(kind: str, found: str) -> bool:
    """Return whether an answer is the same as long as the file or folder that it is about is unchanged."""
    if kind == "entries":
        return not found.endswith(_WITH_LINKS)
    return kind in ("content", "search", "matching") or (kind, found) in _OF_WHAT_IS_THERE


def is_kind(kind: object) -> bool:
    """Return whether there are questions of this kind."""
    return kind in _ANSWERS


def signature(status: os.stat_result) -> Signature:
    """Return the signature of a file, which any write changes if the system has change times."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(status: os.stat_result, now: int) -> bool:
    """Return whether a file's times are so old that any later write changes them at their resolution."""
    return _HAS_CHANGE_TIMES and max(status.st_mtime_ns, status.st_ctime_ns) < now - _SETTLED


# -- implementation of the questions


def _read(path: Path | str, most: int = _LARGEST) -> tuple[bytes, os.stat_result]:
    try:
        _require_regular(path, os.stat(path))
    except ValueError:  # It contains a NUL character.
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
    handle = os.open(path, os.O_RDONLY | _WITHOUT_WAITING)
    try:
        # It may have been replaced meanwhile.
        status = os.fstat(handle)
        _require_regular(path, status)
        pieces = [os.read(handle, min(status.st_size, most) + 1)]
        read = len(pieces[0])
        # Its size need not be known in advance, and it may grow while it is read.
        while pieces[-1] and read != status.st_size and read <= most:
            pieces.append(os.read(handle, most + 1 - read))
            read += len(pieces[-1])
        if read > most:
            message = f"it has more than {most // 1_000_000} MB, which is more than gclint reads"
            raise OSError(errno.EFBIG, message, str(path))
        return b"".join(pieces), status
    finally:
        os.close(handle)


def _read_noted(kind: str, path: Path | str, most: int = _LARGEST) -> bytes:
    try:
        data, status = _read(path, most)
    except OSError as error:
        _note(kind, path, _failure(error))
        raise
    trace = current()
    if trace is not None:
        _note(kind, path, digest(data))
        trace.see(str(path), _settled(status))
    return data


def _require_regular(path: Path | str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "this is not a regular file", str(path))


def _failure(error: OSError) -> str:
    return f"!{error.errno}"


def _ask(kind: str, path: Path | str, detail: str = "") -> str:
    found = _ANSWERS[kind](str(path), detail)
    _note(kind, path, found, detail)
    return found


def _note(kind: str, path: Path | str, found: str, detail: str = "") -> None:
    trace = current()
    if trace is not None:
        trace.note(FileFact(kind, str(path), detail), found)


def _look_at(folder: Path | str) -> None:
    """Record the signature of a folder before it is listed."""
    trace = current()
    if trace is not None:
        with suppress(OSError, ValueError):
            trace.see(str(folder), _settled(os.stat(folder)))


def _settled(status: os.stat_result) -> Signature | None:
    return signature(status) if is_settled(status, time.time_ns()) else None


def _content(path: str, _detail: str) -> str:
    try:
        return digest(_read(path)[0])
    except OSError as error:
        return _failure(error)


def _kind(path: str, _detail: str) -> str:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ""
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def _state(path: str, _detail: str) -> str:
    try:
        return str(stat.S_IFMT(os.stat(path).st_mode))
    except OSError as error:
        return _failure(error)
    except ValueError:
        return ""


def _link(path: str, _detail: str) -> str:
    try:
        return os.readlink(path) if os.path.islink(path) else ""
    except OSError:  # It has just gone.
        return ""


def _real(path: str, _detail: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # It contains a NUL character, so nothing is there.
        return path


def _entries(folder: Path | str, suffix: str) -> tuple[list[FolderEntry], bool]:
    """Return the entries, and whether any of all that is in the folder is a link."""
    found, has_links = [], False
    with os.scandir(folder) as scanned:
        for entry in scanned:
            name, is_link = entry.name, _is_link(entry)
            has_links |= is_link
            try:
                is_folder = entry.is_dir()
            except OSError:  # A link that leads to itself.
                is_folder = False
            if is_folder:
                if name != _LEFT_OUT:
                    found.append(FolderEntry(name, True, is_link))
            elif name.endswith(suffix):
                found.append(FolderEntry(name, False, is_link))
    found.sort()
    return found, has_links


def _is_link(entry: os.DirEntry[str]) -> bool:
    # Since Python 3.12, junctions of Windows can be told from folders.
    return entry.is_symlink() or bool(getattr(entry, "is_junction", bool)())


def _listed(found: list[FolderEntry], has_links: bool) -> str:
    text = "/".join(f"{each.name}{'/' * each.is_folder}{'//' * each.is_link}" for each in found)
    return digest(text.encode("utf-8", "surrogatepass")) + (_WITH_LINKS if has_links else "")


def _listing(folder: str, suffix: str) -> str:
    try:
        return _listed(*_entries(folder, suffix))
    except OSError as error:
        return _failure(error)
    except ValueError:  # It contains a NUL character.
        return ""


def _matching(folder: str, pattern: str) -> str:
    try:
        return "/".join(sorted(name for name in os.listdir(folder) if fnmatchcase(name, pattern)))
    except (OSError, ValueError):
        return ""


def _variable(name: str, _detail: str) -> str:
    value = os.environ.get(name)
    return "" if value is None else f"={value}"


def _package(name: str, _detail: str) -> str:
    from importlib.machinery import PathFinder

    # Not importlib.util.find_spec, which may run import hooks.
    spec = PathFinder.find_spec(name, sys.path)
    return "\n".join((spec and spec.submodule_search_locations) or ())


_ANSWERS: Mapping[str, Callable[[str, str], str]] = {
    "content": _content,
    "search": _content,
    "kind": _kind,
    "state": _state,
    "link": _link,
    "there": lambda path, _detail: "1" if os.path.lexists(path) else "",
    "real": _real,
    "entries": _listing,
    "matching": _matching,
    "variable": _variable,
    "package": _package,
}
