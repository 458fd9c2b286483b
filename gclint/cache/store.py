"""The cache: an SQLite database of documents, which are validated when they are read.

Whatever is in the way of the database (a link, a file of somebody else, one that is damaged, or of another
version) is not believed, and the next run that has something to keep replaces it. Each row has a digest of
all of it, so that no damage passes for a verdict. Where files cannot be locked, or while another run holds
the lock, a run goes on without the cache.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from gclint import __version__
from gclint.cache.place import CachePlace
from gclint.facts import digest
from gclint.userfolder import NotPrivate, UserFolder, own_folder

NAME = "verdicts.sqlite"
_SIDES = tuple(f"{NAME}-{each}" for each in ("journal", "wal", "shm"))
"""What SQLite puts beside a database, and takes for a part of it."""
_TABLE = "CREATE TABLE verdicts_5 (project TEXT, key TEXT, digest TEXT, body BLOB, UNIQUE (project, key))"
"""Its name has the number of the form of what is in it. Rows are numbered in the order of writing."""
_PATIENCE = 1.0
"""How many seconds to wait for other runs, each of which locks the database for some milliseconds."""
_IGNORE = ".gitignore"
_LARGEST = 64_000_000
"""How many bytes a document may have."""
_MOST = 64
"""How many documents of a project are kept; the oldest are deleted."""
_MOST_BYTES = 500_000_000
"""How many bytes the documents of all projects may have."""
_PRUNE = """
DELETE FROM verdicts_5 WHERE rowid IN (
    SELECT rowid FROM (
        SELECT rowid,
            row_number() OVER (PARTITION BY project ORDER BY rowid DESC) AS number,
            sum(length(body)) OVER (ORDER BY rowid DESC) AS total
        FROM verdicts_5
    ) WHERE number > ? OR total > ?
)"""


class _NotOurs(Exception):
    """What is in the place of the database is not one that this version has made."""


class Store:
    """The documents of a project."""

    def __init__(self, place: CachePlace, complain: Callable[[Exception], None] | None = None) -> None:
        """Remember the place without accessing it; ``complain`` is called once with why it cannot be used."""
        self._place = place
        self._complain = complain

    def read(self, key: str) -> dict[str, Any] | None:
        """Return the document with this key; None if there is none, or it is not valid."""
        try:
            with self._folder() as folder, _opened(folder) as database:
                row = database.execute(
                    "SELECT digest, body FROM verdicts_5 WHERE project = ? AND key = ? AND length(body) < ?",
                    (self._place.project, key, _LARGEST),
                ).fetchone()
        except (FileNotFoundError, _NotOurs):
            return None
        except (OSError, sqlite3.Error) as error:
            self._report(error)
            return None
        return None if row is None else self._believed(key, *row)

    def _believed(self, key: str, known: object, body: object) -> dict[str, Any] | None:
        if not isinstance(body, bytes) or self._digest(key, body) != known:
            return None
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return None
        return document if isinstance(document, dict) else None

    def write(self, key: str, document: dict[str, Any]) -> None:
        """Write a document if possible."""
        try:
            body = json.dumps(document, separators=(",", ":")).encode("ascii")
            if len(body) >= _LARGEST:
                return
            with self._folder(create=True) as folder:
                if self._place.is_named and not folder.names():
                    folder.write(_IGNORE, b"# Made by gclint.\n*\n")
                try:
                    self._insert(folder, key, body)
                except (FileNotFoundError, _NotOurs) as error:
                    _make(folder, is_anew=isinstance(error, _NotOurs))
                    self._insert(folder, key, body)
        except (OSError, sqlite3.Error, ValueError, RecursionError, _NotOurs) as error:
            self._report(error)

    def _insert(self, folder: UserFolder, key: str, body: bytes) -> None:
        with _opened(folder) as database:
            database.execute("BEGIN IMMEDIATE")
            row = self._place.project, key, self._digest(key, body), body
            database.execute("INSERT OR REPLACE INTO verdicts_5 VALUES (?, ?, ?, ?)", row)
            database.execute(_PRUNE, (_MOST, _MOST_BYTES))
            database.execute("COMMIT")

    def clear(self) -> int:
        """Delete the documents of the project, or in a folder that the user names, the database.

        Returns:
            How many documents or files were deleted.

        Raises:
            OSError: they cannot be deleted, or the folder is not one that is used.
        """
        try:
            with self._folder() as folder:
                return _remove(folder) if self._place.is_named else self._delete(folder)
        except (FileNotFoundError, _NotOurs):
            return 0
        except sqlite3.Error as error:
            raise OSError(errno.EIO, str(error)) from None

    def _delete(self, folder: UserFolder) -> int:
        with _opened(folder) as database:
            own = (self._place.project,)
            return database.execute("DELETE FROM verdicts_5 WHERE project = ?", own).rowcount

    @contextmanager
    def _folder(self, *, create: bool = False) -> Iterator[UserFolder]:
        if self._place.folder is None:
            raise OSError(errno.ENOENT, "this user has no folder for it")
        with own_folder(self._place.folder, is_named=self._place.is_named, create=create) as folder:
            yield folder

    def _digest(self, key: str, body: bytes) -> str:
        """Return the digest of a row of this version of gclint."""
        return digest("\n".join((__version__, self._place.project, key, "")).encode() + body)

    def _report(self, error: Exception) -> None:
        if self._complain is not None:
            self._complain(error)
            self._complain = None


@contextmanager
def _opened(folder: UserFolder) -> Iterator[sqlite3.Connection]:
    """Open the database in a folder.

    Raises:
        FileNotFoundError: there is none, or nothing in it.
        BlockingIOError: it is locked, or cannot be.
        _NotOurs: what is there is none that this version has made.
        OSError, sqlite3.OperationalError: it cannot be opened, or used.
    """
    for name in (NAME, *_SIDES):
        _require_single(folder, name)
    with _connected(folder) as database:
        tables = database.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL").fetchmany(2)
        if not tables:
            raise FileNotFoundError(errno.ENOENT, "it has no table yet", str(folder.path / NAME))
        if tables != [(_TABLE,)]:
            raise _NotOurs
        yield database


@contextmanager
def _connected(folder: UserFolder) -> Iterator[sqlite3.Connection]:
    uri = f"{(folder.path.absolute() / NAME).as_uri()}?mode=rw"
    before = folder.status(NAME)
    try:
        # This opens the file by its path, and reads nothing yet.
        with closing(sqlite3.connect(uri, _PATIENCE, isolation_level=None, uri=True)) as database:
            for now in (os.lstat(folder.path / NAME), folder.status(NAME)):
                if not os.path.samestat(now, before):
                    raise NotPrivate(errno.ESTALE, "this was replaced", str(folder.path / NAME))
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA synchronous = OFF")
            yield database
    except sqlite3.OperationalError as error:
        if "lock" in str(error):
            reason = "another run is using it, or its files cannot be locked"
            raise BlockingIOError(errno.EAGAIN, reason) from None
        raise
    except sqlite3.DatabaseError:
        raise _NotOurs from None


def _require_single(folder: UserFolder, name: str) -> None:
    """Require that an entry, if there is one, is a file of this user under no other name."""
    try:
        status = folder.status(name)
    except FileNotFoundError:
        return
    except NotPrivate:
        raise _NotOurs from None
    if status.st_nlink > 1 or status.st_size > 2 * _MOST_BYTES:
        raise _NotOurs


def _make(folder: UserFolder, *, is_anew: bool) -> None:
    """Make a database; if that is ``is_anew``, in the place of whatever is there."""
    if is_anew:
        # SQLite ignores what is empty. Where another run is using what was there, its documents are lost.
        for name in {NAME, *_SIDES}.intersection(folder.names()):
            folder.write(name, b"")
    with suppress(FileExistsError):
        os.close(folder.open(NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    with _connected(folder) as database:
        database.execute("PRAGMA auto_vacuum = FULL")
        database.execute("BEGIN IMMEDIATE")
        database.execute(_TABLE.replace("TABLE", "TABLE IF NOT EXISTS", 1))
        database.execute("COMMIT")


def _remove(folder: UserFolder) -> int:
    removed = 0
    for name in {NAME, *_SIDES}.intersection(folder.names()):
        with suppress(NotPrivate, FileNotFoundError):
            folder.remove(name)
            removed += 1
    return removed
