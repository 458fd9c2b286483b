"""The journal of a write: with it, a write that was interrupted can be finished or undone.

It lies in the state folder of the user who writes, one file a write, so a tree cannot contain one. While a
run writes, it holds a lock on its journal; a journal without a lock was interrupted.

It lists the files that are to change, so that the new texts beside them can be removed; then the contents
of the files before and after, and a digest of all of this. Files are replaced only once this is on the disk:
if a journal has no digest, no file has changed yet.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from gclint.code.discovery import not_python
from gclint.code.paths import shown
from gclint.userfolder import UserFolder, lock
from gclint.write.disk import sync_folders
from gclint.write.unfinished import SUFFIX, is_temporary, journal_folder, temporary_name

_MAGIC = b"gclint fix journal 2\n"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_REMOVES_OPEN_FILES = os.name != "nt"


class Unfinished(Exception):
    """A fix may have been interrupted, so files may be inconsistent; the message says what to do."""


class Busy(Unfinished):
    """Another run is writing the same files, or was interrupted."""


class UnusableJournal(Unfinished):
    """A journal cannot be used."""


@dataclass(frozen=True)
class FileChange:
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
    sizes: tuple[int, int] | None
    """Sizes of its content before and after; None for a unit of one file, which is complete either way."""
    texts: tuple[bytes, bytes] | None = None
    """Its content before and after, if it has been read."""


@dataclass(frozen=True)
class JournalContent:
    """The content of a journal."""

    units: tuple[tuple[Recorded, ...], ...] = ()
    """The files, those that change all or none side by side; none if the journal is cut off before them."""
    is_complete: bool = False
    """Whether files may have been replaced."""
    machine: str = ""
    """The machine that it was written on."""
    process: int = 0
    """The process that wrote it."""

    @property
    def files(self) -> list[Recorded]:
        """All files."""
        return [each for unit in self.units for each in unit]

    @property
    def is_from_here(self) -> bool:
        """Whether it was written on this machine; a home may be on a network."""
        return self.machine == platform.node()


class Journal:
    """The journal of the current write."""

    def __init__(self, units: Sequence[Sequence[FileChange]], given: Iterable[Path]) -> None:
        """Prepare a journal of units, files that change all or none, for a run with the given paths."""
        self._units = units
        self._given = given
        self._folder: UserFolder | None = None
        self._name = ""
        self._handle = -1

    @property
    def is_kept(self) -> bool:
        """Whether there is a place for it; without one, nobody can finish what a kill interrupts."""
        return self._handle >= 0

    def begin(self) -> None:
        """Record which files are to change, if there is a place for that.

        Raises:
            Busy: another run was here first.
        """
        try:
            self._folder = UserFolder(journal_folder(self._given), create=True)
            self._name, self._handle = _new(self._folder)
            _append(self._handle, self._head())
            sync_folders([self._folder.path])
            # Whoever began earlier has its record on the disk by now, or is going to see this one.
            self._require_alone(self._folder)
        except OSError:
            self.end()
        except BaseException:
            self.end()
            raise

    def commit(self) -> None:
        """Record the contents of the files before and after: from now on they may be replaced.

        Raises:
            OSError: it cannot be written.
        """
        if self.is_kept:
            texts = b"".join(each.before + each.after for unit in self._joint() for each in unit)
            _append(self._handle, texts + hashlib.sha256(self._head() + texts).digest())

    def end(self) -> None:
        """Remove the journal: each unit has been replaced completely, or not at all."""
        if self._folder is not None and self.is_kept:
            # The replacements are to be on the disk before what could make them again is gone.
            sync_folders({each.target.parent for unit in self._joint() for each in unit})
            _remove(self._folder, self._name, self._handle)
            self._handle = -1
        self.leave()

    def leave(self) -> None:
        """Leave the journal for the next run."""
        if self.is_kept:
            os.close(self._handle)
        if self._folder is not None:
            self._folder.close()
        self._folder, self._handle = None, -1

    def _joint(self) -> Iterator[Sequence[FileChange]]:
        return (unit for unit in self._units if len(unit) > 1)

    def _require_alone(self, folder: UserFolder) -> None:
        targets = {str(each.target) for unit in self._units for each in unit}
        for name in folder.names():
            if name != self._name and name.endswith(SUFFIX):
                with contextlib.suppress(UnusableJournal):
                    shared = targets & {str(each.target) for each in glance(folder, name).files}
                    if shared and not _is_elsewhere(folder, name):
                        raise Busy(_busy(Path(min(shared))))

    def _head(self) -> bytes:
        units = [
            [
                {
                    "target": str(each.target),
                    "temporary": str(each.temporary),
                    "digests": [digest_of(each.before), digest_of(each.after)],
                    "sizes": [len(each.before), len(each.after)] if len(unit) > 1 else None,
                }
                for each in unit
            ]
            for unit in self._units
        ]
        document = {"machine": platform.node(), "process": os.getpid(), "units": units}
        return _MAGIC + json.dumps(document).encode() + b"\n"


def new_temporary(target: Path) -> Path:
    """Return an unused path beside ``target`` whose name is not too long."""
    return target.with_name(temporary_name(os.urandom(8).hex()))


def digest_of(data: bytes) -> str:
    """Return the digest that identifies a file's content."""
    return hashlib.sha256(data).hexdigest()


def obstacle(given: Iterable[Path]) -> str | None:
    """Return why no journal can be kept; None if one can."""
    try:
        with UserFolder(journal_folder(given), create=True) as folder:
            return None if os.access(folder.path, os.W_OK) else f"{shown(folder.path)} cannot be written"
    except OSError as error:
        where = f"{shown(error.filename)}: " if error.filename else ""
        return f"{where}{error.strerror or error}"


def glance(folder: UserFolder, name: str) -> JournalContent:
    """Return what the head of a journal says, whoever uses it; nothing if it is cut off before that.

    Raises:
        Unusable: it cannot be read.
    """
    try:
        with os.fdopen(folder.open(name), "rb") as stream:
            return _record(folder.path / name, stream)
    except FileNotFoundError:  # Its run has just ended.
        return JournalContent()
    except OSError as error:
        raise UnusableJournal(_unreadable(folder.path / name, error.strerror or str(error))) from None


@contextlib.contextmanager
def held(folder: UserFolder, name: str, *, to_recover: bool) -> Iterator[JournalContent]:
    """Yield the content of a journal, while no other run can use it.

    Who is ``to_recover`` changes files meanwhile, and the journal is removed after that; a reader only makes
    sure that no run is writing.

    Raises:
        Busy: a run is at work.
        Unusable: it cannot be read.
    """
    path = folder.path / name
    try:
        handle = folder.open(name, os.O_RDWR if to_recover else os.O_RDONLY)
    except FileNotFoundError:  # Its run has just ended.
        yield JournalContent()
        return
    except OSError as error:
        raise UnusableJournal(_unreadable(path, error.strerror or str(error))) from None
    try:
        is_locked = lock(handle, shared=not to_recover)
        with os.fdopen(os.dup(handle), "rb") as stream:
            record = _record(path, stream)
            may_be_alive = is_locked is None and (not record.units or _is_alive(record.process))
            if is_locked is False or may_be_alive:
                raise Busy(_busy(record.files[0].target if record.units else path))
            record = _with_texts(path, record, stream)
        if not _is_at(folder, name, handle):
            yield JournalContent()
            return
        yield record
        if to_recover:
            _remove(folder, name, handle)
            handle = -1
    finally:
        if handle >= 0:
            os.close(handle)


# -- what is written


def _append(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
    os.fsync(handle)


def _record(path: Path, stream: BinaryIO) -> JournalContent:
    """Return what the head of a journal says, which may be cut off anywhere; nothing if it is.

    Raises:
        Unusable: gclint would not have written it.
    """
    magic = stream.read(len(_MAGIC))
    head = stream.readline() if magic == _MAGIC else b""
    if _MAGIC.startswith(magic) and not head.endswith(b"\n"):
        return JournalContent()
    try:
        document = json.loads(head)
        units = tuple(tuple(_recorded(each) for each in unit) for unit in document["units"])
        return JournalContent(units, machine=str(document["machine"]), process=int(document["process"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UnusableJournal(_unreadable(path, "this release of gclint does not know its form")) from None


def _recorded(document: dict[str, Any]) -> Recorded:
    """Return a file in a journal, if it is one that gclint could have written.

    Raises:
        ValueError: it is not.
    """
    target, temporary = Path(document["target"]), Path(document["temporary"])
    before, after = map(str, document["digests"])
    sizes = None
    if document["sizes"] is not None:
        first, second = (int(each) for each in document["sizes"])
        sizes = (first, second)
    is_direct = target.is_absolute() and os.path.normpath(target) == document["target"]
    if not is_direct or not_python(target) or not all(map(_DIGEST.fullmatch, (before, after))):
        raise ValueError
    if temporary.parent != target.parent or not is_temporary(temporary.name) or min(sizes or (0,)) < 0:
        raise ValueError
    return Recorded(target, temporary, (before, after), sizes)


def _with_texts(path: Path, record: JournalContent, stream: BinaryIO) -> JournalContent:
    """Return a record with the contents of its files, if they are all there."""
    size = sum(sum(each.sizes) for each in record.files if each.sizes is not None)
    start = stream.tell()
    stream.seek(0)
    whole = hashlib.sha256(stream.read(start))
    texts = stream.read(size)
    whole.update(texts)
    if not record.units or stream.read() != whole.digest():
        return record
    at = 0

    def taken(size: int) -> bytes:
        nonlocal at
        at += size
        return texts[at - size : at]

    def full(each: Recorded) -> Recorded:
        both = None if each.sizes is None else (taken(each.sizes[0]), taken(each.sizes[1]))
        if both is not None and each.digests != (digest_of(both[0]), digest_of(both[1])):
            raise UnusableJournal(_unreadable(path, "its contents do not agree"))
        return replace(each, texts=both)

    units = tuple(tuple(full(each) for each in unit) for unit in record.units)
    return replace(record, units=units, is_complete=True)


def _unreadable(path: Path, why: str) -> str:
    return (
        f"{shown(path)}: this journal of a fix cannot be used: {why}; delete it, unless another release of "
        "gclint wrote it"
    )


# -- ownership


def _new(folder: UserFolder) -> tuple[str, int]:
    """Return the name and the handle of a new journal, which is open and locked."""
    while True:
        name = f"{os.urandom(8).hex()}{SUFFIX}"
        handle = folder.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        # Another run may have looked at it, or taken it for a leftover, before it was locked.
        if lock(handle, shared=False) is not False and _is_at(folder, name, handle):
            return name, handle
        _remove(folder, name, handle)


def _remove(folder: UserFolder, name: str, handle: int) -> None:
    """Remove a journal, under its lock where the system can do that, and close it."""
    if not _REMOVES_OPEN_FILES:
        os.close(handle)
    with contextlib.suppress(OSError):
        folder.remove(name)
    if _REMOVES_OPEN_FILES:
        os.close(handle)


def _is_at(folder: UserFolder, name: str, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), folder.status(name))
    except OSError:
        return False


def _is_elsewhere(folder: UserFolder, name: str) -> bool:
    """Return whether a journal was left by a run on another machine, which is not at work any more."""
    try:
        with held(folder, name, to_recover=False) as record:
            return not record.is_from_here
    except Busy:
        return False


def _is_alive(process: int) -> bool:
    """Return whether the process that wrote a journal on this machine may be at work still."""
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
    return f"another run of gclint is writing {shown(path)}; wait for it to finish"
