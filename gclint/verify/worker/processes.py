"""The processes of this machine: who started whom, what they use, and how all of a tree are ended.

Only Linux shows them. Elsewhere there is nothing to see, and each process has limits of its own.
"""
# Objects for paths would double the time that a look takes.
# ruff: noqa: PTH115, PTH116, PTH123, PTH208

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_ROUNDS = 64
"""How often to look for processes that were started while their siblings were stopped."""
_PATIENCE = 0.1
"""Seconds to measure what processes share, which takes about 10 ms for one that has imported torch."""
_FILES_IN_MEMORY = ("/memfd:", "/dev/shm/", "/SYSV")
"""What the links to open files that are kept in memory begin with."""


@dataclass(frozen=True)
class Process:
    """One process, at the time at which it was looked at."""

    number: int
    parent: int
    state: str
    """One letter, as ``ps`` prints it."""
    seconds: float
    """CPU time of its threads, and of its descendants that have ended and been waited for."""
    threads: int
    resident: int
    """The bytes of its memory that are in RAM, shared ones included."""

    @property
    def is_dead(self) -> bool:
        """Whether it has ended, and only waits to be waited for."""
        return self.state in "ZX"


def are_visible() -> bool:
    """Return whether this process can see its own descendants."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        # Either not Linux, or what is mounted there shows the processes of another namespace.
        return False


def adopt() -> bool:
    """Become the parent of all descendants whose own parents end; return whether the system allows it.

    Otherwise a process that is started by a process that ends is nobody's descendant.
    """
    return sys.platform == "linux" and not ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def all_processes() -> dict[int, Process]:
    """Return all processes that can be seen, by number."""
    found = (_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {each.number: each for each in found if each is not None}


def descendants(roots: Iterable[int], known: Mapping[int, Process]) -> list[Process]:
    """Return the processes with the numbers ``roots``, and all that they have started."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for each in known.values():
        children[each.parent].append(each.number)
    waiting, found = [number for number in roots if number in known], {}
    while waiting:
        number = waiting.pop()
        if number not in found:
            found[number] = known[number]
            waiting += children[number]
    return list(found.values())


def strays(own: Collection[int], known: Mapping[int, Process]) -> list[int]:
    """Return the numbers of this process's children except ``own``: those that it has adopted."""
    here = os.getpid()
    return [each.number for each in known.values() if each.parent == here and each.number not in own]


class ProcessMemory:
    """Measures the memory of a tree of processes, with what they share counted once."""

    def __init__(self) -> None:
        self._sizes: dict[int, dict[str, int]] = {}
        """The last measurement of each process, the oldest first."""
        self._seen: frozenset[int] = frozenset()

    def of(self, processes: Collection[Process], enough: float) -> float:
        """Return the bytes of memory of processes; below ``enough``, shared ones may count more than once.

        It takes long to measure what a process shares, so this is done only where it matters, for as many
        as there is time for; what is not measured yet counts without what this process may share with it.
        """
        resident = sum(each.resident for each in processes)
        in_files = _in_open_files(processes)
        if resident + in_files <= enough:
            return resident + in_files
        end = time.monotonic() + _PATIENCE
        by_age = {number: age for age, number in enumerate(self._sizes)}
        forks = {each.parent for each in processes if each.number not in self._seen}
        # One that is forking cannot be measured before that is done.
        settled = [each for each in processes if each.number in self._seen and each.number not in forks]
        self._seen = frozenset(each.number for each in processes)
        for each in sorted(settled, key=lambda each: by_age.get(each.number, -1)):
            self._sizes.pop(each.number, None)
            self._sizes[each.number] = _sizes(each.number)
            if time.monotonic() > end:
                break
        here = _process(os.getpid())
        inherited = here.resident if here else 0
        own, shared = 0, 0
        for each in processes:
            sizes = self._sizes.get(each.number)
            if sizes is None:
                own += max(0, each.resident - inherited)
            else:
                own += sizes["Pss"] + sizes["SwapPss"] - sizes["Pss_Shmem"]
                shared += sizes["Pss_Shmem"]
        return own + max(shared, in_files)


def demote(numbers: Iterable[int]) -> None:
    """Let processes, and those that they start, run only when a processor has nothing else to do."""
    for number in numbers:
        with contextlib.suppress(OSError, AttributeError):
            os.sched_setscheduler(number, os.SCHED_IDLE, os.sched_param(0))


def end_all(roots: Collection[int], adopted_besides: Collection[int] | None = None) -> None:
    """Kill processes and all that they have started, even if they start others as fast as they can.

    They are all stopped before the first one is killed, so that none of them sees another one die. With
    ``adopted_besides``, this process's own children, all others that it has are killed as well.
    """
    stopped: dict[int, None] = {}
    for _ in range(_ROUNDS):
        known = all_processes()
        others = [] if adopted_besides is None else strays(adopted_besides, known)
        alive = [each.number for each in descendants([*roots, *others], known) if not each.is_dead]
        new = [number for number in alive if number not in stopped]
        for number in new:
            _send(number, signal.SIGSTOP)
            stopped[number] = None
        if not new:
            break
    for number in stopped:
        _send(number, signal.SIGKILL)


def collect(numbers: Iterable[int]) -> None:
    """Wait for those of this process's children with these numbers that have ended."""
    for number in numbers:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(number, os.WNOHANG)


def _send(number: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(number, which)


def _process(number: int) -> Process | None:
    try:
        handle = os.open(f"/proc/{number}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        content = os.read(handle, 4096)
    except OSError:  # It has ended.
        return None
    finally:
        os.close(handle)
    # The name of a program may contain anything, parentheses and spaces included.
    fields = content.rpartition(b")")[2].split()
    ticks = sum(map(int, fields[11:15]))
    return Process(
        number, int(fields[1]), fields[0].decode(), ticks / _TICKS, int(fields[17]), int(fields[21]) * _PAGE
    )


def _sizes(number: int) -> dict[str, int]:
    """Return the sizes of a process's memory in bytes; pages of several processes count in parts."""
    found = {"Pss": 0, "Pss_Shmem": 0, "SwapPss": 0}
    with contextlib.suppress(OSError), open(f"/proc/{number}/smaps_rollup", "rb") as file:
        for line in file:
            name, _, rest = line.decode(errors="replace").partition(":")
            if name in found:
                found[name] = int(rest.split()[0]) * 1024
    return found


def _in_open_files(processes: Iterable[Process]) -> int:
    """Return the bytes of the open files that are kept in memory, mapped or not."""
    found: dict[tuple[int, int], int] = {}
    for each in processes:
        folder = f"/proc/{each.number}/fd"
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    if os.readlink(f"{folder}/{name}").startswith(_FILES_IN_MEMORY):
                        status = os.stat(f"{folder}/{name}")
                        found[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(found.values())
