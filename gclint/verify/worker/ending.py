"""How a forked process ended, in words, and which code it was executing."""

from __future__ import annotations

import os
import re
import signal
import traceback
from dataclasses import dataclass, field
from typing import Literal

from gclint.verify.worker.memory import is_crowded_out, is_out_of_memory

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
class Frame:
    """A line of code that was being executed."""

    path: str
    line: int


@dataclass(frozen=True)
class End:
    """How a process ended."""

    cause: Cause
    message: str = ""
    """What happened, as words that follow "there was"."""
    frames: tuple[Frame, ...] = ()
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

    def place_in(self, path: str) -> Frame | None:
        """Return the innermost line of the file at ``path`` that was being executed."""
        real = os.path.realpath(path)
        return next((frame for frame in self.frames if os.path.realpath(frame.path) == real), None)


def end_of_exception(error: BaseException) -> End:
    """Return the end of a process in which nothing has caught an exception."""
    frames = frames_of(error)
    if isinstance(error, SystemExit):
        return End("exit", f"a call of sys.exit({error.code!r})", frames)
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        place = Frame(error.filename, error.lineno)
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


def frames_of(error: BaseException) -> tuple[Frame, ...]:
    """Return the frames in which an exception was raised, without those of the import system."""
    return tuple(
        Frame(each.filename, each.lineno or 1)
        for each in reversed(traceback.extract_tb(error.__traceback__))
        if not each.filename.startswith("<frozen importlib")
    )


def end_of_excess(cause: Cause, message: str, dump: str, *, is_idle: bool) -> End:
    """Return the end of a process that was ended because it exceeded a limit."""
    return End(cause, message, _frames(dump), is_idle=is_idle)


def end_of_status(status: int, dump: str, seconds: float) -> End:
    """Return the end of a process that has not reported one, from its wait status."""
    frames = _frames(dump)
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


def _frames(dump: str) -> tuple[Frame, ...]:
    return tuple(Frame(path, int(line)) for path, line in _FRAME.findall(dump))
