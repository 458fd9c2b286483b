"""How a forked process ended, in words, and which code it was executing."""

from __future__ import annotations

import os
import re
import signal
import traceback
from dataclasses import dataclass
from typing import Literal

from gclint.verify.worker.memory import is_crowded_out, is_out_of_memory

Cause = Literal["done", "time limit", "memory limit", "crash", "killed", "crowded out", "exit", "error"]
"""``killed``: from outside; ``crowded out``: others have the GPU's memory; ``error``: an exception."""
HANGS = 10
"""How many times longer than without checkpointing a run takes before it counts as a hang: recomputation
takes up to twice as long, and the first operations of a model are slow."""
FOREIGN: frozenset[str] = frozenset(("killed", "crowded out"))
"""Ends that others have caused, which say nothing about the function."""

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


def end_of_status(status: int, dump: str, seconds: float, *, is_late: bool) -> End:
    """Return the end of a process that has not reported one.

    Args:
        status: its wait status.
        dump: what the fault handler wrote.
        seconds: the time limit.
        is_late: whether it was killed because it had not ended at the time limit.
    """
    frames = tuple(Frame(path, int(line)) for path, line in _FRAME.findall(dump))
    if is_late or dump.startswith("Timeout ("):
        return End("time limit", f"no end within {seconds:g} s", frames)
    if not os.WIFSIGNALED(status):
        return End("exit", f"an exit of the process with status {os.waitstatus_to_exitcode(status)}", frames)
    number = os.WTERMSIG(status)
    name = signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
    if name in _CRASHES:
        return End("crash", f"{_CRASHES[name]} ({name})", frames)
    cause = ", which systems send when they run out of memory" if name == "SIGKILL" else ""
    return End("killed", f"a signal from outside ({name}{cause})", frames)
