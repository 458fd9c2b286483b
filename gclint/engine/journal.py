"""The journal of a write: with it, a write that was interrupted can be finished or undone.

It lies in the innermost folder that contains all files of the write, so every run over one of them finds
it in a folder above. If that folder cannot be written to, each file's own folder has a journal. While a run
writes, it holds a lock on its journal; a journal without a lock was interrupted.

It lists the files that are to change, so that the new texts beside them can be removed; then the contents
of the files before and after, and a digest of all of this. Files are replaced only once this is on the disk:
if a journal has no digest, no file has changed yet.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import platform
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gclint.engine.disk import sync_folders
from gclint.engine.unfinished import NAME, is_trusted, journals_above
from gclint.source.disk import is_own, lock
from gclint.source.paths import shown

_MAGIC = b"gclint fix journal 1\n"
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Busy(Exception):
    """Another run is writing here, or was interrupted; the message is meant for the user."""


class Unusable(Exception):
    """A file with the name of a journal cannot be used; the message is meant for the user."""


@dataclass(frozen=True)
class Change:
    """The content of a file, whose path has no links, before and after."""

    target: Path
    before: bytes
    after: bytes
    temporary: Path
    """Where its new text is until it replaces the file."""


@dataclass(frozen=True)
class Recorded:
    """A file in a journal."""

    target: Path
    temporary: Path
    digests: tuple[str, str]
    """Digests of its content before and after."""
    texts: tuple[bytes, bytes] | None
    """Its content before and after; None for a unit of one file, which is complete either way."""


@dataclass(frozen=True)
class Record:
    """The content of a journal."""

    units: tuple[tuple[Recorded, ...], ...] = ()
    """The files, those that change all or none side by side."""
    homes: tuple[Path, ...] = ()
    """The folders that hold this journal."""
    is_complete: bool = False
    """Whether files may have been replaced."""
    writer: tuple[str, int] = ("", 0)
    """The machine and the process that wrote it."""


@dataclass
class Journal:
    """The journal of the current write."""

    units: Sequence[Sequence[Change]]
    """The files, those that change all or none side by side."""
    _homes: list[Path] = field(default_factory=list)
    _handles: list[int] = field(default_factory=list)

    def begin(self) -> None:
        """Claim the folders, and record which files are to change.

        Raises:
            Busy: another run was here first.
            OSError: nothing can be written.
        """
        try:
            self._claim()
            for home, handle in self._open():
                _append(handle, self._head(home))
            sync_folders(self._homes)
        except BaseException:
            self.end()
            raise

    def commit(self) -> None:
        """Record the contents of the files before and after: from now on they may be replaced.

        Raises:
            OSError: it cannot be written.
        """
        texts = b"".join(each.before + each.after for unit in self.units if len(unit) > 1 for each in unit)
        for home, handle in self._open():
            _append(handle, texts + hashlib.sha256(self._head(home) + texts).digest())

    def end(self) -> None:
        """Remove the journal: each unit has been replaced completely, or not at all."""
        # On a file system that keeps the order of operations, this flushes the replacements as well.
        sync_folders(self._homes)
        for home in self._homes:
            with contextlib.suppress(OSError):
                (home / NAME).unlink()
        self.leave()

    def leave(self) -> None:
        """Leave the journal for the next run."""
        for handle in self._handles:
            os.close(handle)
        self._homes, self._handles = [], []

    def _claim(self) -> None:
        folders = sorted({each.target.parent for unit in self.units for each in unit})
        common = _common(folders)
        try:
            self._take(folders[:1] if common is None else [common])
        except OSError:
            if common is None or folders == [common]:
                raise
            self._take(folders)
        others = [path for path in journals_above(folders) if path.parent not in self._homes]
        if others:
            raise Busy(_busy(others[0]))

    def _take(self, folders: Iterable[Path]) -> None:
        for folder in folders:
            self._handles.append(_claimed(folder / NAME))
            self._homes.append(folder)

    def _open(self) -> Iterator[tuple[Path, int]]:
        return zip(self._homes, self._handles, strict=True)

    def _head(self, home: Path) -> bytes:
        units = [
            [
                {
                    "target": _relative(each.target, home),
                    "temporary": _relative(each.temporary, home),
                    "digests": [digest_of(each.before), digest_of(each.after)],
                    "sizes": [len(each.before), len(each.after)] if len(unit) > 1 else None,
                }
                for each in unit
            ]
            for unit in self.units
        ]
        homes = [_relative(each, home) for each in self._homes]
        document = {"machine": platform.node(), "process": os.getpid(), "homes": homes, "units": units}
        return _MAGIC + json.dumps(document).encode() + b"\n"


def new_temporary(target: Path) -> Path:
    """Return an unused path beside ``target`` whose name is not too long."""
    return target.with_name(f"{NAME}-{secrets.token_hex(8)}.tmp")


def digest_of(data: bytes) -> str:
    """Return the digest that identifies a file's content."""
    return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def held(path: Path, *, to_recover: bool) -> Iterator[Record]:
    """Yield the content of the journal at ``path``, while no other run can use it.

    Args:
        path: where it lies.
        to_recover: whether files are changed meanwhile; a reader only makes sure that no run is writing.

    Raises:
        Busy: a run is at work.
        Unusable: it cannot be read.
    """
    try:
        handle = os.open(path, (os.O_RDWR if to_recover else os.O_RDONLY) | _FLAGS)
    except FileNotFoundError:  # Its run has just ended.
        yield Record()
        return
    except OSError as error:
        raise Unusable(f"{shown(path)}: this journal of a fix cannot be read: {error.strerror}") from None
    try:
        is_locked = lock(handle, shared=not to_recover)
        if is_locked is False:
            raise Busy(_busy(path))
        if not _is_at(path, handle):
            yield Record()
            return
        with os.fdopen(os.dup(handle), "rb") as stream:
            record = _record(path, stream.read(), is_own=is_own(os.fstat(handle)))
        if is_locked is None and _is_alive(*record.writer):
            raise Busy(_busy(path))
        yield record
    finally:
        os.close(handle)


# -- what is written


def _append(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.fsync(handle)


def _relative(path: Path, home: Path) -> str:
    try:
        return os.path.relpath(path, home)
    except ValueError:  # On Windows, there is no way from one drive to another.
        return str(path)


def _common(folders: Sequence[Path]) -> Path | None:
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:
        return None


def _record(path: Path, data: bytes, *, is_own: bool) -> Record:
    """Return the content of the journal at ``path``, which may be cut off anywhere."""
    head, newline, rest = data.removeprefix(_MAGIC).partition(b"\n")
    if _MAGIC.startswith(data) or (data.startswith(_MAGIC) and not newline):
        return Record(homes=(path.parent,))
    try:
        if not data.startswith(_MAGIC):
            raise ValueError
        return _parsed(path.parent, data, json.loads(head), rest, is_own=is_own)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Unusable(
            f"{shown(path)}: this is not a journal that this release of gclint can read; delete it unless "
            "another release of gclint wrote it"
        ) from None


def _parsed(home: Path, data: bytes, document: dict[str, object], rest: bytes, *, is_own: bool) -> Record:
    texts, digest = rest[: -hashlib.sha256().digest_size], rest[-hashlib.sha256().digest_size :]
    is_complete = hashlib.sha256(data[: -len(digest) or None]).digest() == digest

    def place(written: object) -> Path:
        parts = Path(str(written)).parts
        # A journal must not affect files outside of its folder.
        if not is_own and (os.pardir in parts or Path(str(written)).is_absolute()):
            raise ValueError
        return Path(os.path.normpath(home / str(written)))

    at = 0

    def taken(size: int) -> bytes:
        nonlocal at
        at += size
        return texts[at - size : at]

    def recorded(each: dict[str, list[object]]) -> Recorded:
        before, after = each["digests"]
        both = None
        if each["sizes"] is not None:
            first, second = each["sizes"]
            both = (taken(int(str(first))), taken(int(str(second))))
        return Recorded(place(each["target"]), place(each["temporary"]), (str(before), str(after)), both)

    units = tuple(tuple(recorded(each) for each in unit) for unit in document["units"])  # type: ignore[attr-defined]
    homes = tuple(place(each) for each in document["homes"])  # type: ignore[attr-defined]
    writer = (str(document["machine"]), int(str(document["process"])))
    return Record(units, homes, is_complete, writer)


# -- ownership


def _claimed(path: Path) -> int:
    """Return the open and locked journal at ``path``, which is new."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        try:
            status = os.fstat(handle)
            if not is_trusted(status, path.parent):
                raise FileExistsError(errno.EEXIST, "another file is there already", str(path))
            if lock(handle, shared=False) is False or status.st_size:
                raise Busy(_busy(path))
            # Another run may have removed it just before it was locked.
            if _is_at(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    return os.path.lexists(path) and os.path.samestat(os.fstat(handle), path.lstat())


def _is_alive(machine: str, process: int) -> bool:
    """Return whether the process that wrote a journal may be at work still."""
    if machine != platform.node():
        return bool(machine)
    if os.name != "posix" or process <= 0:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _busy(path: Path) -> str:
    return f"another run of gclint is writing files in {shown(path.parent)}; wait for it to finish"
