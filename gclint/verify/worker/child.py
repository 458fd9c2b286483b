"""Runs functions in forked processes with limits of time and memory: whatever they do, the caller goes on.

A function can send lines; :func:`run` yields these as they arrive, and how each function ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import IO, NoReturn

from gclint.verify.worker.ending import End, Frame, end_of_exception, end_of_status
from gclint.verify.worker.memory import limit_memory

Send = Callable[[str], None]
"""Sends one line, without its end."""

# Seconds between two checks of a process that is silent, and of one that has closed its pipe.
_SILENT, _CLOSED = 0.25, 0.001
# Seconds after the time limit in which a process writes its traceback and ends itself, before it is killed.
_GRACE = 2.0
_PR_SET_PDEATHSIG = 1

_private: set[int] = set()
_limits: list[float] = []
# The limits of this process, if it was forked here.


@dataclass(frozen=True)
class Task:
    """A function to run in a process of its own."""

    function: Callable[[Send, int], None]
    """Takes a function that sends lines, and the number of its slot, which is below the number of jobs."""
    seconds: float
    """The time limit, of wall-clock time."""
    renewed: bool = False
    """Whether the limit applies to the time until the next line, not to the whole task."""
    gigabytes: float | None = None
    """The memory limit; None for only that of the caller."""


def seconds() -> float | None:
    """Return the time limit of this process in seconds, or None if it has none."""
    return _limits[-1] if _limits else None


def keep_private(descriptor: int) -> None:
    """Close ``descriptor`` in forked processes, so that its other side sees when this process ends."""
    _private.add(descriptor)


def run(tasks: Iterable[Task], jobs: int) -> Generator[tuple[Task, str | End]]:
    """Run ``tasks``, at most ``jobs`` at once; yield each line that a task sends and, as the last, its end.

    Tasks that are still running when the generator is closed are killed.
    """
    waiting = iter(tasks)
    running: dict[int, _Child] = {}
    try:
        while True:
            for slot in range(jobs):
                task = None if slot in running else next(waiting, None)
                if task:
                    running[slot] = _Child(task, slot)
            if not running:
                return
            _wait(list(running.values()))
            for slot, child in list(running.items()):
                # In this order: everything that a dead process has sent has arrived.
                dead = child.is_dead()
                for line in child.lines():
                    yield child.task, line
                if dead:
                    del running[slot]
                    yield child.task, child.close()
    finally:
        for child in running.values():
            child.kill()
            child.close()


def _wait(children: list[_Child]) -> None:
    """Wait until a process has something to read or has ended."""
    now = time.monotonic()
    patience = min(_SILENT if child.is_open else _CLOSED for child in children)
    patience = min(patience, *(child.deadline - now for child in children))
    select.select([child.pipe for child in children if child.is_open], [], [], max(patience, 0))


class _Child:
    """A process, as its parent sees it."""

    def __init__(self, task: Task, slot: int) -> None:
        self.task = task
        self.deadline = time.monotonic() + task.seconds + _GRACE
        self.is_open = True
        self._buffer = b""
        self._reported: End | None = None
        self._is_late = False
        self._status: int | None = None
        self._dump = _nameless_file()
        self.pipe, writing = os.pipe()
        os.set_blocking(self.pipe, False)
        keep_private(self.pipe)
        # Its thread does not outlive a fork, and the child would wait for that forever.
        faulthandler.cancel_dump_traceback_later()
        # The code that was run here may ignore the signal, and then the child could not be waited for.
        with contextlib.suppress(ValueError):  # Only the main thread may set this.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with warnings.catch_warnings():
            # Python warns of threads, which libraries start but do not use before the fork.
            warnings.simplefilter("ignore")
            self._process = os.fork()
        if not self._process:
            _do(task, slot, writing, self._dump)
        os.close(writing)

    def is_dead(self) -> bool:
        """Return whether the process has ended; it is killed when its time is over."""
        if self._status is None:
            process, status = self._waited(os.WNOHANG)
            if process:
                self._status = status
            elif time.monotonic() >= self.deadline:
                self.kill()
                self._is_late = True
        return self._status is not None

    def lines(self) -> Iterator[str]:
        """Yield the lines that have arrived."""
        while self.is_open:
            try:
                data = os.read(self.pipe, 1 << 16)
            except BlockingIOError:
                return
            self.is_open = bool(data)
            *complete, self._buffer = (self._buffer + data).split(b"\n")
            if complete and self.task.renewed:
                self.deadline = time.monotonic() + self.task.seconds + _GRACE
            for line in (each.decode(errors="replace") for each in complete):
                if line.startswith("="):
                    yield line[1:]
                else:
                    self._reported = _read_end(line) or self._reported

    def kill(self) -> None:
        """End the process, whatever its threads are doing."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGKILL)
            _, self._status = self._waited(0)

    def _waited(self, options: int) -> tuple[int, int]:
        try:
            return os.waitpid(self._process, options)
        except ChildProcessError:  # The code that was run here has already collected its status.
            return self._process, 0

    def close(self) -> End:
        """Release the resources of the dead process, and return how it ended."""
        assert self._status is not None
        _private.discard(self.pipe)
        os.close(self.pipe)
        with self._dump:
            self._dump.seek(0)
            dump = self._dump.read().decode(errors="replace")
        if self._reported:
            return self._reported
        return end_of_status(self._status, dump, self.task.seconds, is_late=self._is_late)


def _do(task: Task, slot: int, pipe: int, dump: IO[bytes]) -> NoReturn:
    """Do the task, and exit; this is all that the forked process does."""
    die_with_parent()
    _be_silent()
    for descriptor in _private:
        os.close(descriptor)
    _private.clear()
    keep_private(pipe)
    faulthandler.enable(dump)
    _limits.append(task.seconds)
    if task.gigabytes is not None:
        limit_memory(task.gigabytes)

    def start_clock() -> None:
        # A thread that does not need the interpreter watches the limit, so it works even if others hang.
        faulthandler.dump_traceback_later(task.seconds, exit=True, file=dump)

    def send(line: str) -> None:
        _write(pipe, f"={line}\n")
        if task.renewed:
            start_clock()

    start_clock()
    end = End("done")
    try:
        task.function(send, slot)
    except BaseException as error:  # Also sys.exit: nothing else in this process would handle it.
        end = end_of_exception(error)
    try:
        _write(pipe, json.dumps(asdict(end)) + "\n")
    finally:
        # This process runs no cleanup of the caller, and does not wait for threads.
        os._exit(0)


def die_with_parent() -> None:
    """Let the system kill this process when its parent dies; without such a system, only the limits apply."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _be_silent() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _write(pipe: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(pipe, data) :]


def _nameless_file() -> IO[bytes]:
    """Return an empty file, without a name if possible: the code may remove files."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("gclint"), "w+b")
    return tempfile.TemporaryFile()


def _read_end(line: str) -> End | None:
    """Return the end that a line reports; None if something else was written into the pipe."""
    try:
        content = json.loads(line)
        return End(content["cause"], content["message"], tuple(Frame(**each) for each in content["frames"]))
    except (ValueError, KeyError, TypeError):
        return None
