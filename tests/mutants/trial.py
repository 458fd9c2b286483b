"""One run of tests against a mutant, in a fork: what limits it, and what came of it."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tests.environment import PROJECT

OURS = ("gclint", "tests")
_KILLED, _BROKEN = 1, 70
_START = 20
"""Seconds of CPU time that a trial may take beside its tests."""
_PATIENCE = 5
"""How many times longer than usual the tests of a mutant may take."""
_WALL = 3
"""How many times longer than its CPU time a trial may last, where the machine has other things to do."""
_MEMORY = 6 << 30


class TrialFailed(Exception):
    """A trial came to no end of its own; the message is what it said."""


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    is_killed: bool
    by: str = ""
    """The test that failed, or what else ended it."""


class Trial:
    """What is known inside of the fork."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def kill(self, by: str) -> NoReturn:
        """End it: a test has failed, or tests cannot be run at all."""
        self._log.write_text(by, encoding="utf-8")
        os._exit(_KILLED)


def attempt(action: Callable[[Trial], None], seconds: float, log: Path) -> Outcome:
    """Run tests in a fork of this process.

    Args:
        action: what runs them; where it returns, nobody has noticed the mutant.
        seconds: how long the tests take without one.
        log: a file for what the fork says.

    Raises:
        TrialFailed: the fork has died of something else.
    """
    limit = int(_START + _PATIENCE * seconds)
    child = os.fork()
    if child == 0:
        _live(action, limit, log)
    status = _wait(child, limit * _WALL)
    if status is None or os.WIFSIGNALED(status):
        return Outcome(True, "time or memory limit")
    exit_status = os.waitstatus_to_exitcode(status)
    if exit_status == 0:
        return Outcome(False)
    said = log.read_text(encoding="utf-8", errors="replace")
    # A process that a test has started may be the one that says so, while its own fails otherwise.
    if exit_status == _KILLED or "::" in said.partition("\n")[0]:
        return Outcome(True, said)
    raise TrialFailed(said)


def move(place: Path) -> None:
    """Import gclint and its tests from a copy from now on, here and in further processes."""
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    os.chdir(place)
    sys.path[:] = [str(place), *(each for each in sys.path if each not in ("", str(PROJECT)))]
    os.environ["PYTHONPATH"] = str(place)
    # A mutant of the same size and second would be taken for the one before.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    # The command line of the mutants is not that of the tests.
    sys.argv = ["pytest"]


def _live(action: Callable[[Trial], None], limit: int, log: Path) -> NoReturn:
    import resource

    status = _BROKEN
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        action(Trial(log))
        status = 0
    except BaseException:
        log.write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        os._exit(status)


class _TooLongError(Exception):
    pass


def _wait(child: int, seconds: int) -> int | None:
    """Wait for a child, and end it with its own children; None if it took too long."""

    def ring(*_: object) -> None:
        raise _TooLongError

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        status: int | None = os.waitpid(child, 0)[1]
    except _TooLongError:
        status = None
    finally:
        signal.alarm(0)
        _kill_group(child)
    if status is None:
        os.waitpid(child, 0)
    return status


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
