"""The folder of the cache: documents that are written atomically, and validated when they are read.

A document is a line with a digest, followed by JSON, in a file named after its project and key. It is
written to a temporary file, which then replaces the old one: a reader sees the old document or the new one,
and two concurrent runs, or one that is killed, leave nothing half done. A document that is damaged, foreign
or of another version is treated as missing. Nothing is locked: documents do not depend on each other, and
the last writer wins. Files that are not of this form are never read or deleted.
"""

from __future__ import annotations

import contextlib
import errno
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from gclint import __version__
from gclint.cache.place import Place
from gclint.facts import digest
from gclint.kept import own_folder
from gclint.userfolder import NotPrivate, UserFolder

_FORMAT = 3
_VERSION = f"{__version__} {_FORMAT}"
_OWN = re.compile(r"gclint-([0-9a-f]{16})-[0-9a-z-]+\.json(\.[0-9a-f]{16}\.tmp)?")
_IGNORE = ".gitignore"
_LARGEST = 64_000_000
"""How many bytes a document may have; a larger file is not one of gclint's."""
_MOST = 64
"""How many documents of a project are kept; the oldest are deleted."""
_MOST_BYTES = 1_000_000_000
"""How many bytes the documents of all projects may have."""
_ABANDONED = 3600


class Store:
    """The documents of a project."""

    def __init__(self, place: Place, complain: Callable[[Exception], None] | None = None) -> None:
        """Remember the place, without accessing it.

        Args:
            place: where the documents are.
            complain: called once, with the reason, if it cannot be used.
        """
        self._place = place
        self._complain = complain

    def read(self, name: str) -> dict[str, Any] | None:
        """Return the document with this name; None if there is none, or it is not valid."""
        entry = self._entry(name)
        try:
            with self._open() as folder:
                if folder.status(entry).st_nlink > 1:  # What is written elsewhere is not believed.
                    return None
                data = folder.read(entry, _LARGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._report(error)
            return None
        head, _, body = data.partition(b"\n")
        if digest(body).encode() != head:
            return None
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return None
        is_own = isinstance(document, dict) and document.get("version") == _VERSION
        return document if is_own and document.get("name") == name else None

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Write a document if possible."""
        try:
            text = json.dumps({"version": _VERSION, "name": name, **document}, separators=(",", ":"))
            body = text.encode("ascii")
            if len(body) >= _LARGEST:
                return
            with self._open(create=True) as folder:
                if self._place.is_named and not folder.names():
                    folder.write(_IGNORE, b"# Made by gclint.\n*\n")
                folder.write(self._entry(name), digest(body).encode() + b"\n" + body)
                _prune(folder)
        except (OSError, ValueError, RecursionError) as error:
            self._report(error)

    def clear(self) -> int:
        """Delete the documents of the project, or in a folder that the user names, those of all projects.

        Returns:
            How many files were deleted.

        Raises:
            OSError: a file cannot be deleted, or the folder is not one that is used.
        """
        deleted = 0
        try:
            folder = self._open()
        except FileNotFoundError:
            return 0
        with folder:
            for name in folder.names():
                found = _OWN.fullmatch(name)
                if found and (self._place.is_named or found[1] == self._place.project):
                    with contextlib.suppress(NotPrivate, FileNotFoundError):
                        folder.remove(name)
                        deleted += 1
        return deleted

    def _open(self, *, create: bool = False) -> UserFolder:
        if self._place.folder is None:
            raise OSError(errno.ENOENT, "this user has no folder for it")
        return own_folder(self._place.folder, is_named=self._place.is_named, create=create)

    def _entry(self, name: str) -> str:
        return f"gclint-{self._place.project}-{name}.json"

    def _report(self, error: Exception) -> None:
        if self._complain is not None:
            self._complain(error)
            self._complain = None


def _prune(folder: UserFolder) -> None:
    """Delete the oldest documents, and temporary files of killed runs."""
    documents = []
    for name in folder.names():
        own = _OWN.fullmatch(name)
        if own is None:
            continue
        with contextlib.suppress(OSError):
            status = folder.status(name)
            if own[2] is None:
                documents.append((status.st_mtime, status.st_size, own))
            elif status.st_mtime < time.time() - _ABANDONED:
                folder.remove(name)
    kept: Counter[str] = Counter()
    total = 0
    for _, size, own in sorted(documents, key=lambda each: each[0], reverse=True):
        kept[own[1]] += 1
        total += size
        if kept[own[1]] > _MOST or total > _MOST_BYTES:
            with contextlib.suppress(OSError):
                folder.remove(own[0])
