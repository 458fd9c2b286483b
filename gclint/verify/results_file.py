"""The file of results, which are written as they arrive: JSON objects, one per line.

The first one is a :class:`Header`; the others are messages of workers, each with the folder that the worker
imports from and the digest of the source that it is about. A run that continues the file writes another
header, which applies from there on. While a run writes, it holds a lock on the file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gclint import __version__
from gclint.code.paths import shown
from gclint.facts import read_bytes
from gclint.userfolder import UserFolder, lock, own_folder, state_home
from gclint.verify.results import Results, UnusableResults
from gclint.verify.run import ReceivedMessage
from gclint.verify.settings import RunSettings
from gclint.verify.sources import Target, digest
from gclint.verify.worker.protocol import (
    ClassResult,
    Discovered,
    Environment,
    Request,
    Unusable,
    decode,
    encode,
)

_FINISHED = {"finished": True}
_KEPT = (Environment, Discovered, Unusable, ClassResult)
_HEADER_FIELD = "gclint"
"""A field that only headers have."""
_ELSEWHERE = frozenset(("python", "jobs", "executor"))
"""Settings that results do not depend on; the interpreter is part of the environments."""


_LARGEST = 1 << 31
"""How many bytes a file may have; no run has as many results."""
_FOLDER = "results"
_OWN = re.compile(r"[0-9a-f]{16}-(verify|repairs-[0-9a-f]{16})\.jsonl")
_EXPIRED = 90 * 24 * 3600
"""After how many seconds nobody continues a run."""


@dataclass(frozen=True)
class Header:
    """What the results in a file are about."""

    gclint: str = __version__
    shard: int = 1
    shards: int = 1
    """The number of parts of the run, and which of them, from 1, this is."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that results depend on."""
    files: str = ""
    """The digest of all files of all parts."""


def header(targets: Iterable[Target], settings: RunSettings, part: tuple[int, int] = (1, 1)) -> Header:
    """Return the header of the results of a part of a run, from the digests of all files of the run."""
    files = hashlib.sha256()
    for name, content in sorted((target.path.name, digest(target.source, {})) for target in targets):
        files.update(f"{name} {content}\n".encode())
    asked = {name: value for name, value in asdict(settings).items() if name not in _ELSEWHERE}
    # Normalised to what a reader of the file gets.
    plain = json.loads(json.dumps(asked, default=str))
    return Header(shard=part[0], shards=part[1], settings=plain, files=files.hexdigest())


def results_folder() -> UserFolder:
    """Open the user's folder of results, without those that nobody will continue.

    It holds hours of work, so it is not in the folder for what may be deleted at any time.

    Raises:
        OSError: there is none, or it cannot be used.
    """
    home = state_home()
    if home is None:
        raise OSError(errno.ENOENT, "this user has no folder for them")
    folder = own_folder(home / _FOLDER, is_named=False, create=True)
    if not os.access(folder.path, os.W_OK):
        folder.close()
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(folder.path))
    for name in folder.names():
        with contextlib.suppress(OSError):
            if _OWN.fullmatch(name) and folder.status(name).st_mtime < time.time() - _EXPIRED:
                folder.remove(name)
    return folder


class ResultsFile:
    """Writes results; a context manager."""

    def __init__(self, handle: int, path: Path, header: Header, *, resume: bool) -> None:
        """Start a file, or continue one; ``handle`` is closed at the end, also of this call if it fails.

        Raises:
            UnusableResults: the file cannot be continued or overwritten, or another run is writing it.
            OSError: it cannot be read.
        """
        self.earlier = Results()
        """The results that the file already had."""
        self._path = path
        self._handle = handle
        self._size = 0
        """How many bytes of the file are complete lines."""
        try:
            if lock(handle, shared=False) is False:
                raise UnusableResults(
                    f"another run is writing {shown(path)}; wait for it to finish, or choose another file "
                    "with --results"
                )
            found = self._begin(header, resume=resume)
            if found != header:
                self._write(asdict(header))
        except BaseException:
            os.close(handle)
            raise

    def _begin(self, header: Header, *, resume: bool) -> Header | None:
        """Truncate the file to what is kept, and return its header, if it has one."""
        found = None
        if os.fstat(self._handle).st_size > _LARGEST:
            raise UnusableResults(f"{shown(self._path)} is too large for a file of results")
        with os.fdopen(self._handle, "rb", closefd=False) as stream:
            content = stream.read() if resume else stream.readline()
        if content and resume:
            found, self.earlier, self._size = _parsed(content, self._path)
            difference = _difference(found, header)
            if difference:
                raise UnusableResults(f"{shown(self._path)} has the results of a different run: {difference}")
        elif content and not _is_of_gclint(content):
            raise UnusableResults(
                f"{shown(self._path)} is not a file of results; choose another file with --results"
            )
        # If the run was killed, the last line may be incomplete.
        os.ftruncate(self._handle, self._size)
        os.lseek(self._handle, self._size, os.SEEK_SET)
        return found

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def write(self, received: ReceivedMessage) -> None:
        """Write a message if it is worth keeping; raise UnusableResults if the file cannot be written."""
        message = received.message
        if isinstance(message, _KEPT) and getattr(message, "source", "") is not None:
            content = json.loads(encode(message))
            self._write({"tree": received.tree, "digest": received.digest, **content})

    def finish(self) -> None:
        """Record that everything has been run, as :meth:`write` does."""
        self._write(_FINISHED)

    def _write(self, content: Mapping[str, object]) -> None:
        # Each line may have taken a minute to compute, so nothing stays in a buffer.
        line = json.dumps(content, separators=(",", ":")).encode() + b"\n"
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._size)
            raise UnusableResults(
                f"{shown(self._path)} cannot be written: {error.strerror}; it has the results so far, and "
                "--resume continues with them"
            ) from None
        self._size += len(line)


def _is_of_gclint(content: bytes) -> bool:
    """Return whether a file has results of any release of gclint, so that it may be overwritten."""
    try:
        first = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and _HEADER_FIELD in first


def read(path: Path) -> tuple[Header, Results]:
    """Return the results in a file.

    Raises:
        UnusableResults: it is something else.
        OSError: it cannot be read.
    """
    header, results, _ = _parsed(read_bytes(path, _LARGEST), path)
    return header, results


def merge(paths: Sequence[Path]) -> Results:
    """Return the results of runs of different files, and of all their shards.

    Raises:
        UnusableResults: they were run in different ways, or shards are missing.
        OSError: a file cannot be read.
    """
    merged = Results()
    places: dict[tuple[str, str], Path] = {}
    runs: dict[tuple[str, str], list[tuple[Header, Path]]] = {}
    first: Header | None = None
    for path in paths:
        header, results = read(path)
        first = first or header
        difference = _difference(_of_all(header), _of_all(first))
        if difference:
            raise UnusableResults(f"{path} and {paths[0]} are not from the same run: {difference}")
        if not results.is_finished:
            raise UnusableResults(f"{path} is from a run that has not finished; continue it with --resume")
        runs.setdefault((header.files, str(header.settings)), []).append((header, path))
        for key, result in results.classes.items():
            if merged.classes.get(key, result).outcome != result.outcome:
                raise UnusableResults(
                    f"{result.name} of {result.source} has {merged.classes[key].outcome} in {places[key]}, "
                    f"and {result.outcome} in {path}"
                )
            places[key] = path
        _merge(merged, results, path)
    for parts in runs.values():
        count, known = parts[0][0].shards, {header.shard for header, _ in parts}
        missing = ", ".join(f"{each}/{count}" for each in range(1, count + 1) if each not in known)
        of = f" of {parts[0][1]}" if len(runs) > 1 else ""
        if missing:
            raise UnusableResults(f"the results of {missing}{of} are missing")
    return merged


def _merge(merged: Results, results: Results, path: Path) -> None:
    for tree, environment in results.environments.items():
        known = merged.environments.setdefault(tree, environment)
        if known != environment:
            raise UnusableResults(f"{path} is from another environment: {environment} instead of {known}")
    for source, known_digest in results.digests.items():
        if merged.digests.get(source, known_digest) != known_digest:
            raise UnusableResults(f"{source} has changed before {path} was written: run it again")
    merged.discovered.update(results.discovered)
    merged.classes.update(results.classes)
    merged.unusable.update(results.unusable)
    merged.digests.update(results.digests)


def _parsed(data: bytes, path: Path) -> tuple[Header, Results, int]:
    """Return the results in a file, and how many bytes of it are complete lines."""
    whole, _, _ = data.rpartition(b"\n")
    lines = whole.split(b"\n")
    results = Results()
    number = 0
    try:
        header = Header(**json.loads(lines[0]))
        for number in range(1, len(lines)):
            content = json.loads(lines[number])
            results.is_finished = content == _FINISHED
            if results.is_finished:
                continue
            if _HEADER_FIELD in content:
                header = Header(**content)
                continue
            tree, digest = content.pop("tree"), content.pop("digest")
            message = decode(json.dumps(content))
            if isinstance(message, Request):
                raise ValueError("a request is not a result")
            results.add(message, tree=tree, digest=digest)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnusableResults(
            f"{shown(path)}:{number + 1}: this is not a result of gclint verify ({error})"
        ) from error
    return header, results, len(whole) + 1


def _of_all(header: Header) -> Header:
    """Return a header without what is otherwise in a run of other classes, or in another part of it."""
    return Header(header.gclint, settings={**header.settings, "classes": []})


def _difference(one: Header, other: Header) -> str:
    """Return how two headers differ, in words; empty if they do not."""
    mine, yours = _described(one), _described(other)
    differing = [name for name in {**mine, **yours} if mine.get(name) != yours.get(name)]
    return "; ".join(f"{name} is {mine.get(name)} instead of {yours.get(name)}" for name in differing)


def _described(header: Header) -> dict[str, object]:
    shard = f"{header.shard}/{header.shards}"
    return {"gclint": header.gclint, "the shard": shard, **header.settings}
