"""The folder of the cache: documents that are written atomically, and validated when they are read.

A document is a line with a digest, followed by JSON, in a file named after its key. It is written to a
temporary file, which then replaces the old one: a reader sees the old document or the new one, and two
concurrent runs, or one that is killed, leave nothing half done. A document that is damaged, foreign or of
another version is treated as missing. Nothing is locked: documents do not depend on each other, and the
last writer wins.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

from gclint import __version__
from gclint.facts import digest, read_unnoted

NAME = ".gclint_cache"
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of gclint; 'gclint clean' deletes it.\n"
)
_OWN = "gclint"
_FORMAT = 2
_VERSION = f"{__version__} {_FORMAT}"
_SUFFIX = ".json"
_TEMPORARY = ".tmp"
_LARGEST = 64_000_000
"""How many bytes a document may have; a larger file is not one of gclint's."""
_MOST = 64
"""How many documents are kept; the oldest are deleted."""
_ABANDONED = 3600
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Store:
    """The documents in a folder."""

    def __init__(self, folder: Path) -> None:
        """Remember the folder, without accessing it."""
        self.folder = folder
        self.complaint: str | None = None
        """Why a document could not be written, for the user."""

    def read(self, name: str) -> dict[str, Any] | None:
        """Return the document with this name; None if there is none, or it is not valid."""
        path = self._path(name)
        try:
            if os.stat(path).st_size > _LARGEST:
                return None
            head, _, body = read_unnoted(path).partition(b"\n")
            if digest(body).encode() != head:
                return None
            document = json.loads(body)
        except (OSError, ValueError, RecursionError):
            return None
        is_own = isinstance(document, dict) and document.get("version") == _VERSION
        return document if is_own and document.get("name") == name else None

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Write a document if possible; otherwise, set :attr:`complaint`."""
        try:
            text = json.dumps({"version": _VERSION, "name": name, **document}, separators=(",", ":"))
            body = text.encode("ascii")
            if len(body) < _LARGEST and self._prepare():
                self._replace(self._path(name), digest(body).encode() + b"\n" + body)
                self._prune()
        except (OSError, ValueError, RecursionError) as error:
            why = (isinstance(error, OSError) and error.strerror) or str(error)
            self.complaint = f"the cache in {self.folder} cannot be written: {why}"

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, _OWN, name + _SUFFIX)

    def _prepare(self) -> bool:
        """Create the folder, which git ignores; return whether it may be used as a cache."""
        try:
            self.folder.mkdir(parents=True)
        except FileExistsError:
            if not is_cache(self.folder):
                if any(self.folder.iterdir()):
                    self.complaint = f"{self.folder} is not a gclint cache, so it was left alone"
                    return False
                _mark(self.folder)
        else:
            _mark(self.folder)
        (self.folder / _OWN).mkdir(exist_ok=True)
        return True

    def _replace(self, path: str, data: bytes) -> None:
        temporary = f"{path}.{os.getpid()}-{time.monotonic_ns():x}{_TEMPORARY}"
        try:
            handle = os.open(temporary, _NEW_FILE, 0o666)
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _prune(self) -> None:
        """Delete the oldest documents, and temporary files of killed runs."""
        kept: list[tuple[float, str]] = []
        with contextlib.suppress(OSError), os.scandir(self.folder / _OWN) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    written = entry.stat(follow_symlinks=False).st_mtime
                    if entry.name.endswith(_SUFFIX):
                        kept.append((written, entry.path))
                    elif entry.name.endswith(_TEMPORARY) and written < time.time() - _ABANDONED:
                        os.unlink(entry.path)
        for _, path in sorted(kept)[:-_MOST]:
            with contextlib.suppress(OSError):
                os.unlink(path)


def is_cache(folder: Path) -> bool:
    """Return whether a folder is marked as a cache of gclint."""
    try:
        return (folder / _TAG).read_text(encoding="utf-8") == _TAG_TEXT
    except (OSError, UnicodeDecodeError):
        return False


def clean(folder: Path) -> bool:
    """Delete the documents of gclint in a folder, and the folder if it is empty then.

    Returns:
        Whether it is a cache of gclint; anything else is left alone.

    Raises:
        OSError: a file cannot be deleted.
    """
    if not is_cache(folder):
        return False
    own = folder / _OWN
    if own.is_dir() and not own.is_symlink():
        for path in own.iterdir():
            if path.name.endswith((_SUFFIX, _TEMPORARY)):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            own.rmdir()
    for name in (".gitignore", _TAG):
        (folder / name).unlink(missing_ok=True)
    if not folder.is_symlink():
        with contextlib.suppress(OSError):
            folder.rmdir()
    return True


def _mark(folder: Path) -> None:
    (folder / ".gitignore").write_text("# Made by gclint.\n*\n", encoding="utf-8")
    (folder / _TAG).write_text(_TAG_TEXT, encoding="utf-8", newline="\n")
