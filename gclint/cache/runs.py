"""Replays whole runs: if nothing that a run has read has changed, what it printed is printed again.

A run is identified by its command line, and by everything else in its process that can make a difference.
All files that it read, its own code included, are checked first. Then its output is printed, before click,
the rules or LibCST are imported.
"""

from __future__ import annotations

import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import RawIOBase, TextIOWrapper
from typing import TYPE_CHECKING, Any, BinaryIO

from gclint.cache.code import code_facts
from gclint.cache.place import named_in, place_of
from gclint.cache.store import Store
from gclint.cache.traces import Damaged, LayoutFree, encoded, still_holds
from gclint.facts import digest, is_regular_file
from gclint.trace import Trace, traced

if TYPE_CHECKING:
    from collections.abc import Iterator

_STREAMS = ("stdout", "stderr")
_VOLATILE = frozenset(("_", "OLDPWD", "PWD", "SHLVL", "PYTEST_CURRENT_TEST", "WINDOWID", "COLUMNS", "LINES"))
"""Environment variables that differ from run to run; the size of the terminal is part of the key anyway."""
_OUTSIDE = frozenset(("-", "--no-cache", "--help", "-h", "--version"))
_STATUSES = (0, 1)


class Recorder:
    """Records what a run prints and reads, so that it can be replayed if it does nothing else."""

    def __init__(self, name: str, trace: Trace) -> None:
        self._name = name
        self._trace = trace
        self.is_paused = False
        self.chunks: list[tuple[int, bytes]] = []
        self.store: Store | None = None
        """The cache to store the run in; None if it must not be replayed."""

    def keep(self, status: object) -> None:
        """Store the run, which ended with the exit status ``status``, if it can be replayed."""
        if self.store is None or status not in _STATUSES or self._trace.is_torn:
            return
        code = code_facts()
        if code is None:
            return
        output = [[number, b64encode(data).decode()] for number, data in self.chunks]
        # Only the layout of files whose places or lines are printed makes a difference to the output.
        trace = self._trace
        shown = trace.layout_free.keys() if trace.shown is None else trace.shown
        document = {"code": encoded(code), "facts": encoded(trace, shown), "output": output, "status": status}
        self.store.write(self._name, document)


_recorder: Recorder | None = None


def recorder() -> Recorder | None:
    """Return the recorder of this process; None if nothing is recorded."""
    return _recorder


@contextmanager
def unrecorded() -> Iterator[None]:
    """Do not record what is printed inside, such as a progress bar."""
    if _recorder is not None:
        _recorder.is_paused = True
    try:
        yield
    finally:
        if _recorder is not None:
            _recorder.is_paused = False


@contextmanager
def recorded(arguments: Sequence[str]) -> Iterator[None]:
    """Record the whole run, which is the code inside, and store it if it can be replayed."""
    global _recorder
    if not _is_of_interest(arguments) or sys.stdout is None or sys.stderr is None:
        yield
        return
    with traced() as trace, ExitStack() as stack:
        _recorder = own = Recorder(_name(arguments), trace)
        for number, stream in enumerate(_STREAMS):
            stack.enter_context(_copied(stream, number, own))
        try:
            yield
        except SystemExit as error:
            with suppress(Exception):  # A cache is no reason for a run to fail.
                own.keep(error.code or 0)
            raise
        finally:
            _recorder = None


def replay(arguments: Sequence[str], layout_free: LayoutFree) -> int | None:
    """Print what the same run printed before, and return its exit status; None if it is not in the cache.

    Args:
        arguments: those of the command line.
        layout_free: returns a digest of a Python file without its layout.

    Raises:
        OSError: the output cannot be written.
    """
    if not _is_of_interest(arguments) or sys.stdout is None or sys.stderr is None:
        return None
    try:
        document = Store(place_of(named_in(arguments))).read(_name(arguments))
        if document is None:
            return None
        chunks, status = _output(document)
        parts = (document.get("code"), document.get("facts"))
        if not all(still_holds(part, layout_free) for part in parts):
            return None
    except (Damaged, OSError, ValueError):
        return None
    for number, data in chunks:
        stream = (sys.stdout, sys.stderr)[number].buffer
        stream.write(data)
        stream.flush()
    return status


def _output(document: dict[str, Any]) -> tuple[list[tuple[int, bytes]], int]:
    """Return what was printed, as pairs of stream (0: stdout, 1: stderr) and bytes, and the exit status.

    Raises:
        Damaged: the document is malformed.
        ValueError: its base64 is malformed.
    """
    rows, status = document.get("output"), document.get("status")
    if type(status) is not int or status not in _STATUSES or not isinstance(rows, list):
        raise Damaged
    chunks = []
    for row in rows:
        if not (isinstance(row, list) and len(row) == 2 and type(row[0]) is int and row[0] in (0, 1)):
            raise Damaged
        if not isinstance(row[1], str):
            raise Damaged
        chunks.append((row[0], b64decode(row[1], validate=True)))
    return chunks, status


def _is_of_interest(arguments: Sequence[str]) -> bool:
    """Return whether a run with these arguments may be a lint run that can be replayed."""
    try:
        os.getcwd()
    except OSError:  # The working directory has been deleted, and it is part of the key.
        return False
    return _OUTSIDE.isdisjoint(arguments)


def _name(arguments: Sequence[str]) -> str:
    """Return the key of a run: a digest of all in its process that can make a difference."""
    terminals = []
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        is_terminal = stream is not None and stream.isatty()
        terminals.append(_size(stream) if is_terminal else stream is not None and is_regular_file(stream))
    described = (
        list(arguments),
        os.getcwd(),
        sorted(item for item in os.environ.items() if item[0] not in _VOLATILE),
        terminals,
        [(stream.encoding, stream.errors) for stream in (sys.stdout, sys.stderr)],
        (sys.version, sys.executable, sys.path, sys.flags, sys.platform),
    )
    return digest(repr(described).encode("utf-8", "surrogatepass"))[:40]


def _size(stream: Any) -> tuple[int, int, str | None, str | None]:
    try:
        columns, lines = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        columns = lines = 0
    return columns, lines, os.environ.get("COLUMNS"), os.environ.get("LINES")


class _Copy(RawIOBase):
    """Writes to a stream, and to a recorder."""

    def __init__(self, stream: BinaryIO, number: int, own: Recorder) -> None:
        self._stream = stream
        self._number = number
        self._own = own

    def write(self, data: Any) -> int:
        if not self._own.is_paused:
            self._own.chunks.append((self._number, bytes(data)))
        return self._stream.write(data)

    def flush(self) -> None:
        if not self.closed:
            self._stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


@contextmanager
def _copied(name: str, number: int, own: Recorder) -> Iterator[None]:
    original = getattr(sys, name)
    if not isinstance(original, TextIOWrapper):
        yield
        return
    original.flush()
    copy = TextIOWrapper(
        _Copy(original.buffer, number, own),  # type: ignore[type-var]
        encoding=original.encoding,
        errors=original.errors,
        line_buffering=original.line_buffering or original.write_through,
    )
    setattr(sys, name, copy)
    try:
        yield
    finally:
        setattr(sys, name, original)
        with suppress(OSError, ValueError):
            copy.flush()
        with suppress(OSError, ValueError):
            copy.detach()
