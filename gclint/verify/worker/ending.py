"""How a tree of processes ends: when it has to, by its limits, and how it did, in words and lines of code."""

from __future__ import annotations

import math
import os
import re
import signal
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from gclint.verify.worker.memory_limits import is_crowded_out, is_out_of_memory
from gclint.verify.worker.modes import SourcePlace

PROCESSES = 256
"""The most processes of a tree."""
THREADS = 4096
"""The most threads of all of them; libraries start some for each core."""
_WALL = 10
_LEAST_WALL = 300.0
"""The wall-clock limit is this many times the limit of CPU time, and at least so many seconds: others may
use the machine, too, and then ten processes for each core are a lot, but not unusual."""
_ROOM = (1.5, 1.25, 1.0)
"""What trees of each level may use, as a share of the limit: a source, its class, and one run of that."""
_PATIENCE = ((2.0, 12), (0.5, 4), (0.0, 1))
"""The seconds and the samples in a row for which they may use more than that, so that one in which it happens
is ended before those around it, also if the machine is busy and samples are few."""
_IDLE = 0.01
"""The share of the time for which threads that only wake up now and then keep a processor busy."""
_GAP = 2.0
"""The seconds that count between two samples: this process may have been stopped or kept waiting, too."""

Excess = Literal["time limit", "memory limit", "process limit"]
HANGS = 10
"""How many times longer than without checkpointing a run takes before it counts as a hang: recomputation
takes up to twice as long, and the first operations of a model are slow."""
FOREIGN: frozenset[str] = frozenset(("killed", "crowded out", "tampering"))
"""Ends that others have caused, or code that forges results; they say nothing about the function."""
# The output of the interpreter's fault handler: the frames of each thread, the innermost first.
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
_CRASHES = {
    "SIGSEGV": "a segmentation fault",
    "SIGBUS": "a bus error",
    "SIGABRT": "an abort, as of a failed assertion in native code",
    "SIGFPE": "an arithmetic error in native code",
    "SIGILL": "an illegal instruction",
}


@dataclass(frozen=True)
class Limits:
    """What a tree of processes may use."""

    seconds: float
    """CPU time of all processes together; also the time for which all of them may wait for nothing."""
    gigabytes: float | None = None
    """Memory of all processes together, shared memory counted once; None if it is not limited here."""
    processes: int | None = None
    """The number of processes; None if it is not limited here, as that of threads."""
    level: int = 0
    """How many trees with limits this one is part of: those around it may use more, so that it is ended
    before them."""

    @property
    def bytes(self) -> float:
        """The limit of memory, in bytes."""
        return math.inf if self.gigabytes is None else self.gigabytes * 1e9 * self._room

    @property
    def most(self) -> float:
        """The limit of processes."""
        return math.inf if self.processes is None else self.processes * self._room

    @property
    def patience(self) -> tuple[float, int]:
        """The seconds and the samples for which these two may be exceeded."""
        return _PATIENCE[min(self.level, len(_PATIENCE) - 1)]

    @property
    def _room(self) -> float:
        return _ROOM[min(self.level, len(_ROOM) - 1)]

    @property
    def wall(self) -> float:
        """The limit of wall-clock time, in seconds."""
        return max(_WALL * self.seconds, _LEAST_WALL)


@dataclass(frozen=True)
class Sample:
    """What a tree of processes uses at some time."""

    seconds: float
    """CPU time."""
    is_running: bool
    """Whether one of the processes runs, could run if there were a free processor, or waits for a disk."""
    processes: int = 1
    threads: int = 1
    bytes: float = 0.0


class ResourceMeter:
    """Judges the samples of one tree of processes."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._now = now
        self._last = 0.0
        self.seconds = 0.0
        """The CPU time of the tree so far."""
        self._begun = self._elapsed = 0.0
        self._over, self._over_seconds = 0, 0.0
        self._is_renewed = False
        self._rest()

    @property
    def is_idle(self) -> bool:
        """Whether nothing was computed for as long as the time limit."""
        return self._waited >= self._limits.seconds

    def renew(self) -> None:
        """Begin anew to count time with the next sample, which may come late."""
        self._is_renewed = True

    def _rest(self) -> None:
        self._waited = self._active = 0.0

    def exceeded(self, now: float, sample: Sample | None) -> tuple[Excess, str] | None:
        """Return which limit is exceeded, and how in words; None if none is.

        The time is that of a clock that does not go back; there is no sample if the system shows none.
        """
        passed = min(now - self._now, _GAP)
        self._now = now
        self._elapsed += passed
        if sample is not None:
            # What a process has used is lost if nobody waits for it; this is not.
            used = max(0.0, sample.seconds - self._last)
            self._last = sample.seconds
            self.seconds += used
            self._waited += passed
            self._active += max(used, passed if sample.is_running else 0.0)
            if self._active > _IDLE * self._limits.seconds:
                self._rest()
        if self._is_renewed:
            self._begun, self._elapsed, self._is_renewed = self.seconds, 0.0, False
            self._rest()
        much = self._too_much(sample)
        if much is None:
            self._over, self._over_seconds = 0, 0.0
            return self._too_long()
        self._over_seconds += passed if self._over else 0.0
        self._over += 1
        seconds, samples = self._limits.patience
        is_over = self._over >= samples and self._over_seconds >= seconds
        return much if is_over else self._too_long()

    def _too_much(self, sample: Sample | None) -> tuple[Excess, str] | None:
        limits = self._limits
        if sample is None:
            return None
        if sample.processes > limits.most:
            return "process limit", f"no room left: more than the limit of {limits.processes} processes"
        if limits.processes is not None and sample.threads > THREADS:
            return "process limit", f"no room left: more than the limit of {THREADS} threads"
        if sample.bytes > limits.bytes:
            who = f"{sample.processes} processes together use" if sample.processes > 1 else "it uses"
            return "memory limit", f"no memory left: {who} more than the limit of {limits.gigabytes:g} GB"
        return None

    def _too_long(self) -> tuple[Excess, str] | None:
        seconds = self._limits.seconds
        if self.seconds - self._begun >= seconds:
            return "time limit", f"no end within {seconds:.4g} s of CPU time"
        if self.is_idle:
            return "time limit", f"no computation for {seconds:.4g} s"
        if self._elapsed >= self._limits.wall:
            return "time limit", f"no end within {self._limits.wall:.4g} s"
        return None


Cause = Literal[
    "done",
    "time limit",
    "memory limit",
    "process limit",
    "crash",
    "killed",
    "crowded out",
    "tampering",
    "exit",
    "error",
]
"""``killed``: from outside; ``crowded out``: others have the GPU's memory; ``tampering``: other code has
written into the pipe for results; ``error``: an exception."""


@dataclass(frozen=True)
class End:
    """How a process ended."""

    cause: Cause
    message: str = ""
    """What happened, as words that follow "there was"."""
    frames: tuple[SourcePlace, ...] = ()
    """The frames that were being executed, as far as known, the innermost first."""
    seconds: float = field(default=0.0, compare=False)
    """The CPU time that it and its descendants have used, as far as known."""
    is_idle: bool = False
    """Whether it has exceeded the time limit without computing anything."""

    def is_hang(self, seconds: float, usual: float | None) -> bool:
        """Return whether an exceeded time limit is a hang, and not only that everything here takes long.

        That is so if far more CPU time was used in vain than ``usual``, that without checkpointing, which is
        None if that has not ended either.
        """
        return usual is not None and (self.is_idle or seconds > HANGS * usual)

    def place_in(self, path: str) -> SourcePlace | None:
        """Return the innermost line of the file at ``path`` that was being executed."""
        return innermost(self.frames, path)


def innermost(frames: Iterable[SourcePlace], path: str) -> SourcePlace | None:
    """Return the first of some frames that is in the file at ``path``."""
    real = os.path.realpath(path)
    return next((frame for frame in frames if os.path.realpath(frame.path) == real), None)


def end_of_exception(error: BaseException) -> End:
    """Return the end of a process in which nothing has caught an exception."""
    frames = frames_of(error)
    if isinstance(error, SystemExit):
        return End("exit", f"a call of sys.exit({error.code!r})", frames)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        place = SourcePlace(error.filename, error.lineno, error.lineno)
        column = f":{error.offset}" if error.offset else ""
        text = f"{type(error).__name__}: {error.msg} ({place.path}:{place.line}{column})"
        return End("error", text, (place, *frames))
    text = traceback.format_exception_only(error)[-1].strip()
    if is_crowded_out(error):
        return End("crowded out", f"no memory left on the GPU, which others use: {text}", frames)
    if is_out_of_memory(error):
        return End("memory limit", f"no memory left: {text}", frames)
    at = f" ({frames[0].path}:{frames[0].line})" if frames else ""
    # gclint itself raises only subclasses of Exception, and is not interrupted here.
    return End("error" if isinstance(error, Exception) else "exit", f"{text}{at}", frames)


def frames_of(error: BaseException) -> tuple[SourcePlace, ...]:
    """Return the frames in which an exception was raised, without those of the import system."""
    return tuple(
        SourcePlace(each.filename, each.lineno or 1, each.lineno or 1)
        for each in reversed(traceback.extract_tb(error.__traceback__))
        if not each.filename.startswith("<frozen importlib")
    )


def end_of_status(status: int, dump: str, seconds: float) -> End:
    """Return the end of a process that has not reported one, from its wait status."""
    frames = frames_in(dump)
    if not os.WIFSIGNALED(status):
        return End("exit", f"an exit of the process with status {os.waitstatus_to_exitcode(status)}", frames)
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
    if name in _CRASHES:
        return End("crash", f"{_CRASHES[name]} ({name})", frames)
    if name == "SIGXCPU":
        return End("time limit", f"no end within {seconds:g} s of CPU time", frames)
    cause = ", which systems send when they run out of memory" if name == "SIGKILL" else ""
    return End("killed", f"a signal from outside ({name}{cause})", frames)


def frames_in(dump: str) -> tuple[SourcePlace, ...]:
    """Return the frames in what the interpreter's fault handler has written."""
    return tuple(SourcePlace(path, int(line), int(line)) for path, line in _FRAME.findall(dump))
