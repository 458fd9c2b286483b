"""Runs functions in forked processes with limits of time and memory: whatever they do, the caller goes on.

A function can send lines; :func:`run` yields these as they arrive, and how each function ended. The limits
hold for the tree of processes that a function starts, which the caller looks at from outside.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import math
import os
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import IO, NoReturn

from gclint.verify.worker import processes
from gclint.verify.worker.ending import (
    End,
    Excess,
    Limits,
    ResourceMeter,
    Sample,
    end_of_exception,
    end_of_status,
    frames_in,
)
from gclint.verify.worker.memory_limits import limit_memory, limit_seconds, without_core_dump
from gclint.verify.worker.modes import SourcePlace

Send = Callable[[str], None]
"""Sends one line, without its end."""

# Seconds between two checks of a process that is silent, of one that has closed its pipe, and between two
# looks at a tree of more than a few processes.
_SILENT, _CLOSED, _ALERT = 0.25, 0.001, 0.05
_FEW = 4
# From so many processes on, new ones give way to everything else on the machine.
_MANY = 32
# The largest share of the time to spend on looking, and the most seconds between two looks.
_SHARE, _LONGEST = 0.02, 0.5
# Seconds after a limit is exceeded in which a process writes its traceback and ends, before it is killed.
_GRACE: Mapping[Excess, float] = {"time limit": 2.0, "memory limit": 0.2, "process limit": 0.2}
# The most bytes of a line, and of what is read at once: more than a pipe holds, so that nothing of a dead
# process is lost, but others are heard while one writes without end.
_LONGEST_LINE, _AT_ONCE = 1 << 28, 1 << 21
_PR_SET_PDEATHSIG = 1

_private: set[int] = set()
_limits: list[Limits] = []
# The limits of this process, if it was forked here.
_running: set[int] = set()
# The processes that were forked here and have not been waited for.
_adopts: list[bool] = []
# Not empty if this process adopts the descendants whose parents end.


@dataclass(frozen=True)
class Task:
    """A function to run in a process of its own."""

    function: Callable[[Send, int], None]
    """Takes a function that sends lines, and the number of its slot, which is below the number of jobs."""
    seconds: float
    """The time limit: of CPU time, and of time in which nothing happens."""
    gigabytes: float | None = None
    """The memory limit of all its processes together; None for that of the caller."""
    processes: int | None = None
    """The most processes; None for the limit of the caller."""
    renewed: Callable[[str], bool] | None = None
    """Tells the lines after which the time limit begins anew; without it, it applies to the whole task."""
    accepts: Callable[[str], bool] = lambda _line: True
    """Tells what the function sends from what other code writes into the pipe, which ends the task."""


def seconds() -> float | None:
    """Return the time limit of this process in seconds, or None if it has none."""
    return _limits[-1].seconds if _limits else None


def used_seconds() -> float:
    """Return the CPU time of this process, of the children that have ended, and of those that run tasks."""
    return sum(os.times()[:4]) + sum(map(_used_by, _running))


def _used_by(process: int) -> float:
    if sys.platform != "linux":
        return 0.0
    try:
        # The number of the clock of another process, as clock_getcpuclockid(3) makes it.
        return time.clock_gettime(~process << 3 | 2)
    except OSError:
        return 0.0


def adopt_orphans() -> None:
    """Let this process find what its tasks leave behind; everything that it has not started is killed.

    This is only for processes that have no other children.
    """
    if processes.adopt():
        _adopts[:] = [True]


def keep_private(descriptor: int) -> None:
    """Close ``descriptor`` in forked processes, so that its other side sees when this process ends."""
    _private.add(descriptor)


def run(tasks: Iterable[Task], jobs: int) -> Generator[tuple[Task, str | End]]:
    """Run ``tasks``, at most ``jobs`` at once; yield each line that a task sends and, as the last, its end.

    Tasks that are still running when the generator is closed are killed.
    """
    waiting = iter(tasks)
    running: dict[int, _Child] = {}
    observer = _Observer()
    try:
        while True:
            for slot in range(jobs):
                task = None if slot in running else next(waiting, None)
                if task:
                    running[slot] = _Child(task, slot)
            if not running:
                return
            _wait(list(running.values()), observer.due)
            for slot, child in list(running.items()):
                # In this order: everything that a dead process has sent has arrived.
                dead = child.is_dead()
                for line in child.lines():
                    yield child.task, line
                if dead:
                    del running[slot]
                    observer.clear(running.values())
                    yield child.task, child.close()
            # After reading: a line that has arrived may give a task new time.
            observer.look(list(running.values()))
    finally:
        for child in running.values():
            child.kill()
            child.close()
        observer.clear(())


def _wait(children: list[_Child], due: float) -> None:
    """Wait until a process has something to read or has ended, or until a time."""
    patience = min(_SILENT if child.is_open else _CLOSED for child in children)
    patience = min(patience, due - time.monotonic())
    select.select([child.pipe for child in children if child.is_open], [], [], max(patience, 0))


class ForkDenied(OSError):
    """The system does not allow another process."""


class _Observer:
    """Looks at the processes that tasks have started."""

    def __init__(self) -> None:
        self.due = time.monotonic() + _SILENT
        """When to look again."""
        self._sees = processes.are_visible()
        self._adopts = self._sees and bool(_adopts)
        # What was imported may have started processes that it needs.
        self._older = (
            frozenset(processes.strays((), processes.all_processes())) if self._adopts else frozenset()
        )

    def look(self, children: Collection[_Child]) -> None:
        """Let the children judge what they use, if it is time."""
        begun = time.monotonic()
        if begun < self.due:
            return
        largest = 1
        known = processes.all_processes() if self._sees else {}
        strays = self._strays(children, known)
        if len(children) > 1 and strays:
            self.clear(children)  # Whose they are cannot be known.
            strays = []
        for child in children:
            tree = processes.descendants([child.process, *strays], known) if self._sees else None
            child.judge(time.monotonic(), tree)
            largest = max(largest, len(tree or ()))
        now = time.monotonic()
        pause = max(_SILENT if largest <= _FEW else _ALERT, (now - begun) / _SHARE)
        self.due = now + min(pause, _LONGEST)

    def clear(self, children: Collection[_Child]) -> None:
        """Kill what tasks that have ended have left behind."""
        if self._adopts:
            processes.end_all((), self._older | {each.process for each in children})
            self._strays(children, processes.all_processes())

    def _strays(self, children: Collection[_Child], known: Mapping[int, processes.Process]) -> list[int]:
        """Return the processes that this one has adopted, after waiting for those that have ended."""
        if not self._adopts:
            return []
        found = processes.strays(self._older | {each.process for each in children}, known)
        dead = [each for each in found if known[each].is_dead]
        processes.collect(dead)
        return [each for each in found if each not in dead]


class _Child:
    """A process, as its parent sees it."""

    def __init__(self, task: Task, slot: int) -> None:
        self.task = task
        self.is_open = True
        self._limits = _limits_of(task)
        self._meter = ResourceMeter(self._limits, time.monotonic())
        self._memory = processes.ProcessMemory()
        self._seen: set[int] = set()
        self._excess: tuple[Excess, str] | None = None
        self._deadline = math.inf
        self._buffer = bytearray()
        self._is_foreign = False
        self._reported: End | None = None
        self._status: int | None = None
        self._seconds = 0.0
        self._dump = _nameless_file()
        self.pipe, writing = os.pipe()
        os.set_blocking(self.pipe, False)
        keep_private(self.pipe)
        # The code that was run here may ignore the signal, and then the child could not be waited for.
        with contextlib.suppress(ValueError):  # Only the main thread may set this.
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with warnings.catch_warnings():
            # Python warns of threads, which libraries start but do not use before the fork.
            warnings.simplefilter("ignore")
            self.process = self._forked(writing)
        if not self.process:
            _do(task, self._limits, slot, writing, self._dump)
        _running.add(self.process)
        os.close(writing)

    def _forked(self, writing: int) -> int:
        try:
            return os.fork()
        except OSError as error:
            _private.discard(self.pipe)
            for descriptor in (self.pipe, writing):
                os.close(descriptor)
            self._dump.close()
            raise ForkDenied(str(error)) from error

    def judge(self, now: float, tree: Collection[processes.Process] | None) -> None:
        """End the process if it and those that it has started, if these can be seen, exceed a limit."""
        numbers = {each.number for each in tree or ()}
        if len(numbers) > _MANY:
            # Otherwise this process would hardly get to look at them, or to end them.
            processes.demote(numbers - self._seen)
        self._seen = numbers
        if self._excess is None:
            self._excess = self._meter.exceeded(now, None if tree is None else self._sample(tree))
            if self._excess is not None:
                self._deadline = now + _GRACE[self._excess[0]]
                # It writes its traceback; the others must not outlive it, nor use up anything meanwhile.
                self._signal(signal.SIGXCPU)
                processes.end_all([each.number for each in tree or () if each.number != self.process])

    def _sample(self, tree: Collection[processes.Process]) -> Sample:
        # Too many processes are ended whatever their memory is, which it takes long to measure.
        is_measured = self._limits.gigabytes is not None and len(tree) <= self._limits.most
        return Sample(
            sum(each.seconds for each in tree),
            any(each.state in "RD" for each in tree),
            len(tree),
            sum(each.threads for each in tree),
            self._memory.of(tree, self._limits.bytes) if is_measured else 0.0,
        )

    def is_dead(self) -> bool:
        """Return whether the process has ended; it is killed when its time is over."""
        if self._status is None and not self._collect(os.WNOHANG) and time.monotonic() >= self._deadline:
            self.kill()
        return self._status is not None

    def lines(self) -> Iterator[str]:
        """Yield the lines that have arrived."""
        left = _AT_ONCE
        while self.is_open and not self._is_foreign and left > 0:
            try:
                data = os.read(self.pipe, 1 << 16)
            except BlockingIOError:
                return
            self.is_open = bool(data)
            left -= len(data)
            self._buffer += data
            complete = []
            if b"\n" in data:
                *complete, self._buffer = self._buffer.split(b"\n")
            for line in (each.decode(errors="replace") for each in complete):
                end = None if line.startswith("=") else _read_end(line)
                if end is not None:
                    self._reported = end
                elif line.startswith("=") and self.task.accepts(line[1:]):
                    if self.task.renewed is not None and self.task.renewed(line[1:]):
                        self._meter.renew()
                    yield line[1:]
                else:
                    self._end_foreign()
                    return
            if len(self._buffer) > _LONGEST_LINE:
                self._end_foreign()

    def _end_foreign(self) -> None:
        """End a process in which other code writes into the pipe: nothing that follows can be believed."""
        self._is_foreign = True
        self.kill()

    def kill(self) -> None:
        """End the process and all that it has started, whatever they are doing."""
        if self._status is None:
            if processes.are_visible():
                processes.end_all([self.process])
            self._signal(signal.SIGKILL)
            self._collect(0)

    def _signal(self, which: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, which)

    def _collect(self, options: int) -> bool:
        """Take the status of the process; return whether it has ended."""
        try:
            process, status, used = os.wait4(self.process, options)
        except ChildProcessError:  # The code that was run here has already collected its status.
            process, status, used = self.process, 0, None
        if process:
            self._status = status
            self._seconds = max(self._meter.seconds, used.ru_utime + used.ru_stime if used else 0.0)
            _running.discard(self.process)
        return bool(process)

    def close(self) -> End:
        """Release the resources of the dead process, and return how it ended."""
        assert self._status is not None
        _private.discard(self.pipe)
        os.close(self.pipe)
        with self._dump:
            self._dump.seek(0)
            dump = self._dump.read().decode(errors="replace")
        if self._is_foreign:
            end = End("tampering", "something in the pipe for results that gclint has not written")
        elif self._excess is not None:
            end = End(*self._excess, frames_in(dump), is_idle=self._meter.is_idle)
        else:
            end = self._reported or end_of_status(self._status, dump, self.task.seconds)
        return replace(end, seconds=self._seconds)


def _limits_of(task: Task) -> Limits:
    """Return the limits of a task's tree; one that is part of this process's tree reaches its own first."""
    gigabytes, number = task.gigabytes, task.processes
    if not _limits:
        return Limits(task.seconds, gigabytes, number)
    outer = _limits[-1]
    return Limits(
        task.seconds,
        outer.gigabytes if gigabytes is None else gigabytes,
        outer.processes if number is None else number,
        outer.level + 1,
    )


def _do(task: Task, limits: Limits, slot: int, pipe: int, dump: IO[bytes]) -> NoReturn:
    """Do the task, and exit; this is all that the forked process does."""
    die_with_parent()
    _be_silent()
    for descriptor in _private:
        os.close(descriptor)
    for known in (_private, _running, _adopts):
        known.clear()
    keep_private(pipe)
    faulthandler.enable(dump)
    # It needs neither the interpreter nor the main thread, so it works even if these hang.
    faulthandler.register(signal.SIGXCPU, dump, all_threads=True, chain=True)
    _limits.append(limits)
    if task.gigabytes is not None:
        limit_memory(task.gigabytes)
    without_core_dump()

    def start_clock() -> None:
        # Where only the system can watch the CPU time.
        if not processes.are_visible():
            limit_seconds(sum(os.times()[:2]) + task.seconds)

    def send(line: str) -> None:
        _write(pipe, f"={line}\n")
        if task.renewed is not None and task.renewed(line):
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
        frames = tuple(SourcePlace(each["path"], each["line"], each["line"]) for each in content["frames"])
        return End(content["cause"], content["message"], frames)
    except (ValueError, KeyError, TypeError):
        return None
