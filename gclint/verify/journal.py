"""The file that results are written to as they come: JSON objects, one a line.

The first one is a :class:`Header`; the others are messages of workers, each with the folder that the worker
imports from and the digest of the source that it is about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from gclint import __version__
from gclint.verify.results import Results
from gclint.verify.run import Heard
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


class UnusableResults(Exception):
    """A file holds no results that can be used; the message says which and why."""


@dataclass(frozen=True)
class Header:
    """What a file of results is about."""

    gclint: str = __version__
    shard: int = 1
    shards: int = 1
    """Into how many parts the files were divided, and which of them, from 1, this one is."""


class Journal:
    """Writes results; a context manager."""

    def __init__(self, path: Path, header: Header, *, resume: bool) -> None:
        """Start a file, or go on with one.

        Raises:
            UnusableResults: the file is not one to go on with.
            OSError: it cannot be written.
        """
        self.earlier = Results()
        """What the file held already."""
        if resume and path.exists():
            found, self.earlier, size = _read(path)
            if found != header:
                raise UnusableResults(f"{path} is of another kind: {_kind(found)} instead of {_kind(header)}")
            self._file: IO[bytes] = path.open("r+b")
            # The last line may have been cut off when the run was.
            self._file.truncate(size)
            self._file.seek(size)
        else:
            self._file = path.open("wb")
            self._write(asdict(header))

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def write(self, heard: Heard) -> None:
        """Write what is worth keeping."""
        message = heard.message
        if isinstance(message, _KEPT) and getattr(message, "source", "") is not None:
            content = json.loads(encode(message))
            self._write({"tree": heard.tree, "digest": heard.digest, **content})

    def finish(self) -> None:
        """Write that everything has been run."""
        self._write(_FINISHED)

    def _write(self, content: Mapping[str, object]) -> None:
        self._file.write(json.dumps(content, separators=(",", ":")).encode() + b"\n")
        # Each line is worth a minute of somebody's time.
        self._file.flush()


def read(path: Path) -> tuple[Header, Results]:
    """Return what is in a file of results.

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
    count = 0
    for path in paths:
        header, results = read(path)
        count = count or header.shards
        if header.shards != count:
            raise UnusableResults(f"{path} is one of {header.shards} shards, and {paths[0]} one of {count}")
        if not results.is_finished:
            raise UnusableResults(f"{path} is of a run that has not ended; go on with it with --resume")
        shards[header.shard] = path
        for key, result in results.classes.items():
            if merged.classes.get(key, result).outcome != result.outcome:
                raise UnusableResults(
                    f"{result.name} of {result.source} has {merged.classes[key].outcome} in {places[key]}, "
                    f"and {result.outcome} in {path}"
                )
            places[key] = path
        _merge(merged, results, path)
    missing = [f"{each}/{count}" for each in range(1, count + 1) if each not in shards]
    if missing:
        raise UnusableResults(f"there are no results of {', '.join(missing)}")
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
    """Return what is in a file of results, and how many bytes of it are whole lines."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
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


def _kind(header: Header) -> str:
    return f"shard {header.shard}/{header.shards} of gclint {header.gclint}"
