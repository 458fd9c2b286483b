"""What a run reads of the disk, so that a trace of it tells a later run whether it would read the same.

Whatever a lint looks up goes through these functions: files, folders, links, and what is not there.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from gclint.trace import Fact, Signature, current

_WITHOUT_WAITING: int = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)
_SETTLED = 3_000_000_000
"""How many nanoseconds old a file's times have to be, so that a write since then must show in them."""
_HAS_CHANGE_TIMES = os.name == "posix"  # Elsewhere it is the time of creation.
_CHUNK = 1 << 22
_DIGITS = 40
"""Of a digest: more than enough, and thousands of them are kept."""
_LEFT_OUT = frozenset(("__pycache__", ".gclint", ".gclint_cache"))
"""Folders that come and go with runs, and into which none looks."""


def digest(data: bytes) -> str:
    """Return what stands for some content."""
    return sha256(data).hexdigest()[:_DIGITS]


# -- what the code asks


def read_bytes(path: Path | str) -> bytes:
    """Return what is in the regular file that ``path`` is, or leads to.

    A named pipe would be waited for, and a device may do something when it is opened.

    Raises:
        OSError: it cannot be read, or is something else.
    """
    return _read_noted("content", path)


def read_unnoted(path: Path | str) -> bytes:
    """Return the same where no trace needs to know of it: what is read is none of a lint's business.

    Raises:
        OSError: it cannot be read, or is something else.
    """
    return _read(path)[0]


def search(path: Path | str) -> bytes:
    """Return the same of a file in which only words are looked for.

    Raises:
        OSError: it cannot be read, or is something else.
    """
    return _read_noted("search", path)


def read_text(path: Path | str, errors: str = "strict") -> str:
    """Return the text of a file in UTF-8, with line ends as Python knows them.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is something else.
    """
    text = read_bytes(path).decode("utf-8", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def is_file(path: Path | str) -> bool:
    """Tell whether there is a file."""
    return _ask("kind", path) == "file"


def is_dir(path: Path | str) -> bool:
    """Tell whether there is a folder."""
    return _ask("kind", path) == "folder"


def exists(path: Path | str) -> bool:
    """Tell whether a path leads to something."""
    return _ask("kind", path) != ""


def mode(path: Path | str) -> int:
    """Return what kind of thing a path leads to, as the system numbers them.

    Raises:
        OSError: it leads nowhere.
        ValueError: it is not a path.
    """
    _note("state", path, _state(str(path)))
    return os.stat(path).st_mode


def is_link(path: Path | str) -> bool:
    """Tell whether a path is a link."""
    return _ask("link", path) != ""


def is_there(path: Path | str) -> bool:
    """Tell whether there is something, though it may be a link that leads nowhere."""
    return _ask("there", path) != ""


def real_path(path: Path | str) -> Path:
    """Return a path without links."""
    return Path(_ask("real", path))


class Places:
    """Where paths lead to; links on the way are looked at once a folder, not once a file."""

    def __init__(self) -> None:
        self._known: dict[Path, Path] = {}

    def location(self, path: Path) -> Path:
        """Return ``path`` without links."""
        known = self._known.get(path)
        if known is None:
            is_direct = not _may_lead_elsewhere(path)
            known = self.folder(path.parent) / path.name if is_direct else real_path(path)
            self._known[path] = known
        return known

    def folder(self, folder: Path) -> Path:
        """Return the same of a folder that files lie in, near others that are asked for."""
        known = self._known.get(folder)
        if known is None:
            parent = self._known.get(folder.parent)
            if parent is None or _may_lead_elsewhere(folder):
                known = real_path(folder)
                # Folders beside it need not ask for all links on the way once more.
                if folder.parent not in self._known:
                    self._known[folder.parent] = real_path(folder.parent)
            else:
                known = parent / folder.name
            self._known[folder] = known
        return known


def _may_lead_elsewhere(path: Path) -> bool:
    return path.name in ("", os.pardir) or is_link(path)


def entries(folder: Path | str, suffix: str = "") -> list[tuple[str, bool]]:
    """Return the names in a folder, in order, and which of them are, or lead to, folders.

    Folders of compiled modules, and those that gclint itself makes, are left out.

    Args:
        folder: where to look.
        suffix: what the names of files end with.

    Raises:
        OSError: it cannot be read.
    """
    try:
        found = _entries(folder, suffix)
    except OSError as error:
        _note("entries", folder, _failure(error), suffix)
        raise
    if current() is not None:
        _note("entries", folder, _listed(found), suffix)
    return found


def matching(folder: Path | str, pattern: str) -> list[Path]:
    """Return the paths in a folder whose names match a pattern, in order; none where it cannot be read."""
    names = _matching(folder, pattern)
    if current() is not None:
        _note("matching", folder, "/".join(names), pattern)
    return [Path(folder, name) for name in names]


def variable(name: str) -> str | None:
    """Return a variable of the environment."""
    value = os.environ.get(name)
    _note("variable", name, _variable(name))
    return value


def package_locations(name: str) -> list[str]:
    """Return the folders in which this Python would find a package; nothing is imported."""
    found = _package(name)
    _note("package", name, found)
    return found.split("\n") if found else []


# -- what a later run asks


def answer(fact: Fact) -> str:
    """Return the answer that a question has now."""
    return _ANSWERS[fact.kind](fact.path, fact.detail)


def holds(kind: str, path: str, detail: str, known: str, seen: Signature | None = None) -> bool:
    """Tell whether a question still has the answer that is known.

    Args:
        kind: that of the question; what else it consists of follows.
        path: what it is about.
        detail: what else it says.
        known: the answer.
        seen: the signature that the file had with that answer, if it is one that may be trusted.
    """
    if seen is not None and _HAS_CHANGE_TIMES:
        try:
            if signature(os.stat(path)) == seen:
                return True
        except (OSError, ValueError):
            pass
    return _ANSWERS[kind](path, detail) == known


def is_kind(kind: object) -> bool:
    """Tell whether there are questions of this kind."""
    return kind in _ANSWERS


def signature(status: os.stat_result) -> Signature:
    """Return what no write leaves as it was, where the system has times of change."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(status: os.stat_result, now: int) -> bool:
    """Tell whether a later write must show in a file's times, which are counted in steps."""
    return _HAS_CHANGE_TIMES and max(status.st_mtime_ns, status.st_ctime_ns) < now - _SETTLED


# -- how it is found out


def _read(path: Path | str) -> tuple[bytes, os.stat_result]:
    _require_regular(path, os.stat(path))
    handle = os.open(path, os.O_RDONLY | _WITHOUT_WAITING)
    try:
        # It may be another thing by now.
        status = os.fstat(handle)
        _require_regular(path, status)
        data = os.read(handle, status.st_size + 1)
        if len(data) == status.st_size:
            return data, status
        pieces = [data]  # It grows, or its size is not known beforehand.
        while pieces[-1]:
            pieces.append(os.read(handle, _CHUNK))
        return b"".join(pieces), status
    finally:
        os.close(handle)


def _read_noted(kind: str, path: Path | str) -> bytes:
    try:
        data, status = _read(path)
    except OSError as error:
        _note(kind, path, _failure(error))
        raise
    trace = current()
    if trace is not None:
        _note(kind, path, digest(data))
        if is_settled(status, time.time_ns()):
            trace.signatures[str(path)] = signature(status)
    return data


def _require_regular(path: Path | str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "this is not a regular file", str(path))


def _failure(error: OSError) -> str:
    return f"!{error.errno}"


def _ask(kind: str, path: Path | str) -> str:
    found = _ANSWERS[kind](str(path), "")
    _note(kind, path, found)
    return found


def _note(kind: str, path: Path | str, found: str, detail: str = "") -> None:
    trace = current()
    if trace is not None:
        trace.note(Fact(kind, str(path), detail), found)


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


def _state(path: str, _detail: str = "") -> str:
    try:
        return str(stat.S_IFMT(os.stat(path).st_mode))
    except OSError as error:
        return _failure(error)
    except ValueError:
        return ""


def _link(path: str, _detail: str) -> str:
    try:
        return os.readlink(path) or "?"
    except (OSError, ValueError):
        return ""


def _there(path: str, _detail: str) -> str:
    return "1" if os.path.lexists(path) else ""


def _real(path: str, _detail: str) -> str:
    return os.path.realpath(path)


def _entries(folder: Path | str, suffix: str) -> list[tuple[str, bool]]:
    found = []
    with os.scandir(folder) as scanned:
        for entry in scanned:
            name = entry.name
            try:
                is_folder = entry.is_dir()
            except OSError:  # A link to itself.
                is_folder = False
            if is_folder:
                if name not in _LEFT_OUT:
                    found.append((name, True))
            elif name.endswith(suffix):
                found.append((name, False))
    found.sort()
    return found


def _listed(found: list[tuple[str, bool]]) -> str:
    text = "/".join(f"{name}/" if is_folder else name for name, is_folder in found)
    return digest(text.encode("utf-8", "surrogatepass"))


def _listing(folder: str, suffix: str) -> str:
    try:
        return _listed(_entries(folder, suffix))
    except OSError as error:
        return _failure(error)


def _matching(folder: Path | str, pattern: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if fnmatchcase(name, pattern))
    except OSError:
        return []


def _matched(folder: str, pattern: str) -> str:
    return "/".join(_matching(folder, pattern))


def _variable(name: str, _detail: str = "") -> str:
    value = os.environ.get(name)
    return "" if value is None else f"={value}"


def _package(name: str, _detail: str = "") -> str:
    from importlib.machinery import PathFinder

    # Not importlib.util.find_spec, which may load what hooks into imports.
    spec = PathFinder.find_spec(name, sys.path)
    return "\n".join((spec and spec.submodule_search_locations) or ())


_ANSWERS: Mapping[str, Callable[[str, str], str]] = {
    "content": _content,
    "search": _content,
    "kind": _kind,
    "state": _state,
    "link": _link,
    "there": _there,
    "real": _real,
    "entries": _listing,
    "matching": _matched,
    "variable": _variable,
    "package": _package,
}
