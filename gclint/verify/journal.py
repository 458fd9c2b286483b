"""The file of results, which are written as they arrive: JSON objects, one per line.

The first one is a :class:`Header`; the others are messages of workers, each with the folder that the worker
imports from and the digest of the source that it is about. A run that continues the file writes another
header, which applies from there on. While a run writes, it holds a lock on the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from gclint import __version__
from gclint.facts import read_bytes
from gclint.source.disk import lock
from gclint.source.paths import shown
from gclint.verify.results import Results
from gclint.verify.run import Heard
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


class UnusableResults(Exception):
    """A file has no usable results, or cannot be written; the message says which file, and why."""


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
    """Return the header of the results of a part of a run.

    Args:
        targets: the files of the whole run.
        settings: how to run them.
        part: the number of the part, and how many there are.

    Raises:
        OSError: a file cannot be read.
    """
    files = hashlib.sha256()
    for name, content in sorted((target.path.name, digest(target.source, {})) for target in targets):
        files.update(f"{name} {content}\n".encode())
    asked = {name: value for name, value in asdict(settings).items() if name not in _ELSEWHERE}
    # Normalised to what a reader of the file gets.
    plain = json.loads(json.dumps(asked, default=str))
    return Header(shard=part[0], shards=part[1], settings=plain, files=files.hexdigest())


class Journal:
    """Writes results; a context manager."""

    def __init__(self, path: Path, header: Header, *, resume: bool) -> None:
        """Start a file, or continue one.

        Raises:
            UnusableResults: the file cannot be continued or overwritten, or another run is writing it.
            OSError: it cannot be opened or read.
        """
        self.earlier = Results()
        """The results that the file already had."""
        self._path = path
        self._handle = _opened(path)
        self._size = 0
        """How many bytes of the file are complete lines."""
        try:
            found = self._begin(header, resume=resume)
            if found != header:
                self._write(asdict(header))
        except BaseException:
            os.close(self._handle)
            raise

    def _begin(self, header: Header, *, resume: bool) -> Header | None:
        """Truncate the file to what is kept, and return its header, if it has one."""
        status = os.fstat(self._handle)
        if not stat.S_ISREG(status.st_mode):
            return None
        found = None
        if status.st_size and resume:
            found, self.earlier, self._size = _read(self._path)
            difference = _difference(found, replace(header, files=found.files))
            if difference:
                raise UnusableResults(f"{shown(self._path)} has the results of a different run: {difference}")
        elif status.st_size and not _is_of_gclint(self._path):
            raise UnusableResults(
                f"{shown(self._path)} is not a file of results; choose another file with --results"
            )
        # If the run was killed, the last line may be incomplete.
        os.ftruncate(self._handle, self._size)
        os.lseek(self._handle, self._size, os.SEEK_SET)
        return found

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._handle)

    def write(self, heard: Heard) -> None:
        """Write a message if it is worth keeping.

        Raises:
            UnusableResults: the file cannot be written.
        """
        message = heard.message
        if isinstance(message, _KEPT) and getattr(message, "source", "") is not None:
            content = json.loads(encode(message))
            self._write({"tree": heard.tree, "digest": heard.digest, **content})

    def finish(self) -> None:
        """Record that everything has been run.

        Raises:
            UnusableResults: the file cannot be written.
        """
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


def _opened(path: Path) -> int:
    """Return the open and locked file at ``path``, which may be new."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o666)
    try:
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISCHR(kind):
            raise UnusableResults(f"{shown(path)} is not a regular file")
        if stat.S_ISREG(kind) and lock(handle, shared=False) is False:
            raise UnusableResults(
                f"another run is writing {shown(path)}; wait for it to finish, or choose another file with "
                "--results"
            )
    except BaseException:
        os.close(handle)
        raise
    return handle


def _is_of_gclint(path: Path) -> bool:
    """Return whether a file has results of any release of gclint, so that it may be overwritten."""
    try:
        return _HEADER_FIELD in json.loads(read_bytes(path).partition(b"\n")[0])
    except (ValueError, TypeError):
        return False


def read(path: Path) -> tuple[Header, Results]:
    """Return the results in a file.

    Raises:
        UnusableResults: it is something else.
        OSError: it cannot be read.
    """
    header, results, _ = _read(path)
    return header, results


def merge(paths: Sequence[Path]) -> Results:
    """Return the results of all shards of one run.

    Raises:
        UnusableResults: they are not the shards of one run, or not all of them.
        OSError: a file cannot be read.
    """
    merged = Results()
    places: dict[tuple[str, str], Path] = {}
    shards: dict[int, Path] = {}
    first: Header | None = None
    for path in paths:
        header, results = read(path)
        first = first or header
        difference = _difference(header, replace(first, shard=header.shard))
        if difference:
            raise UnusableResults(f"{path} and {paths[0]} are not from the same run: {difference}")
        if not results.is_finished:
            raise UnusableResults(f"{path} is from a run that has not finished; continue it with --resume")
        shards[header.shard] = path
        for key, result in results.classes.items():
            if merged.classes.get(key, result).outcome != result.outcome:
                raise UnusableResults(
                    f"{result.name} of {result.source} has {merged.classes[key].outcome} in {places[key]}, "
                    f"and {result.outcome} in {path}"
                )
            places[key] = path
        _merge(merged, results, path)
    count = first.shards if first else 0
    missing = [f"{each}/{count}" for each in range(1, count + 1) if each not in shards]
    if missing:
        raise UnusableResults(f"the results of {', '.join(missing)} are missing")
    return merged


def _merge(merged: Results, results: Results, path: Path) -> None:
    for tree, environment in results.environments.items():
        known = merged.environments.setdefault(tree, environment)
        if known != environment:
            raise UnusableResults(f"{path} is from another environment: {environment} instead of {known}")
    merged.discovered.update(results.discovered)
    merged.classes.update(results.classes)
    merged.unusable.update(results.unusable)
    merged.digests.update(results.digests)


def _read(path: Path) -> tuple[Header, Results, int]:
    """Return the results in a file, and how many bytes of it are complete lines."""
    whole, _, _ = read_bytes(path).rpartition(b"\n")
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
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnusableResults(
            f"{path}:{number + 1}: this is not a result of gclint verify ({error})"
        ) from error
    return header, results, len(whole) + 1


def _difference(one: Header, other: Header) -> str:
    """Return how two headers differ, in words; empty if they do not."""
    mine, yours = _described(one), _described(other)
    differing = [name for name in {**mine, **yours} if mine.get(name) != yours.get(name)]
    if not differing and one.files != other.files:
        return "the files are not the same"
    return "; ".join(f"{name} is {mine.get(name)} instead of {yours.get(name)}" for name in differing)


def _described(header: Header) -> dict[str, object]:
    shard = f"{header.shard}/{header.shards}"
    return {"gclint": header.gclint, "the shard": shard, **header.settings}
