"""Distributes work on many files over processes, if there is enough of it.

The result is the same with any number of processes. A file for which no process has an answer, since one
was killed or none could be started, is processed here. The modules that start processes are imported only
when they are needed: a run over few files does not need them.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from gclint.programs import own_program

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_WORTH_A_FORK = 2_000_000
"""Bytes of code from which on another forked process pays off."""
_WORTH_A_START = 4_000_000
"""The same for a process that has to import everything again."""
_PORTIONS = 6
"""How many portions each process gets, so that all finish at about the same time."""
_CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")

_Answer = TypeVar("_Answer", covariant=True)


class Work(Protocol[_Answer]):
    """What is done with each file; pickled if processes cannot be forked."""

    def __call__(self, path: Path) -> _Answer:
        """Return the result for a file."""

    def prepare(self) -> None:
        """Prepare what every process needs, before they are forked."""


@dataclass(eq=False)
class _Worker:
    """A process, and the files that it is working on."""

    connection: Connection
    terminate: Callable[[], None]
    join: Callable[[], object]
    owed: list[Path] = field(default_factory=list)


def spread(
    work: Work[_Answer], paths: Sequence[Path], jobs: int
) -> Generator[tuple[Path, _Answer], None, None]:
    """Yield the result of ``work`` for each file as soon as it is known, in any order.

    With one job, this process does it; otherwise files of one folder are processed by the same process.
    """
    answered: set[Path] = set()
    if jobs > 1 and len(paths) > 1:
        for path, answer in _from_workers(work, paths, min(jobs, len(paths))):
            answered.add(path)
            yield path, answer
    for path in paths:
        if path not in answered:
            yield path, work(path)


def fitting_jobs(paths: Iterable[Path]) -> int:
    """Return how many processes pay off for these files."""
    cores = _cores()
    if cores == 1:
        return 1
    worth = _WORTH_A_FORK if _start_method() == "fork" else _WORTH_A_START
    most = cores * worth
    size = 0
    for path in paths:
        with suppress(OSError):
            size += path.stat().st_size
        if size >= most:
            return cores
    return max(1, size // worth)


def _cores() -> int:
    """Return how many processors this process may use."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = map(float, _CGROUP_LIMIT.read_text(encoding="ascii").split())
    except (OSError, ValueError):  # Another system, or no limit.
        return cores
    return max(1, min(cores, int(quota / period)))


def _start_method() -> str:
    """Return how to start processes: a fork is cheapest, but not allowed while other threads run.

    What multiprocessing calls ``spawn`` runs ``python -c``, which imports from the working directory first.
    """
    is_safe = sys.platform == "linux" and threading.active_count() == 1
    return "fork" if is_safe else "start"


# -- this side


def _from_workers(
    work: Work[_Answer], paths: Sequence[Path], jobs: int
) -> Generator[tuple[Path, _Answer], None, None]:
    """Yield the answers of other processes; nothing for files that they did not get to."""
    from multiprocessing.connection import wait

    portions = _portions(paths, jobs * _PORTIONS)
    workers = _started(work, jobs)
    try:
        busy = {worker.connection: worker for worker in workers if _hand_on(worker, portions)}
        while busy:
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]
                try:
                    path, answer = worker.connection.recv()
                except Exception:  # It is dead, or its answer cannot be read.
                    del busy[worker.connection]
                    continue
                worker.owed.remove(path)
                yield path, answer
                if not worker.owed and not _hand_on(worker, portions):
                    del busy[worker.connection]
    finally:
        for worker in workers:
            worker.connection.close()
            worker.terminate()
        for worker in workers:
            worker.join()


def _portions(paths: Sequence[Path], count: int) -> list[list[Path]]:
    """Divide files into portions without dividing folders; the first portion is the last of the list."""
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    portions: list[list[Path]] = [[]]
    for folder in folders.values():
        if len(portions[-1]) >= len(paths) / count:
            portions.append([])
        portions[-1] += folder
    return portions[::-1]


def _hand_on(worker: _Worker, portions: list[list[Path]]) -> bool:
    """Give a process the next portion; return whether it has something to do."""
    if not portions:
        return False
    try:
        worker.connection.send(portions[-1])
    except OSError:
        return False
    worker.owed = portions.pop()
    return True


def _started(work: Work[object], jobs: int) -> list[_Worker]:
    import multiprocessing

    if multiprocessing.current_process().daemon:  # This process may have no children.
        return []
    workers: list[_Worker] = []
    with suppress(Exception):  # No more processes are allowed, or the work cannot be pickled.
        if _start_method() == "fork":
            work.prepare()
            for _ in range(jobs):
                workers.append(_forked(work, workers))
        else:
            sent = pickle.dumps(work)
            for _ in range(jobs):
                workers.append(_fresh(sent))
    return workers


@contextmanager
def _pipe() -> Iterator[tuple[Connection, Connection]]:
    """Yield both ends of a connection: ours, which is closed on an error, and that of a process to start."""
    import multiprocessing

    ours, theirs = multiprocessing.Pipe()
    try:
        yield ours, theirs
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()


def _forked(work: Work[object], others: Sequence[_Worker]) -> _Worker:
    import multiprocessing

    with _pipe() as (ours, theirs):
        # A fork has a copy of every end; those that are not its own would keep the others from ending.
        foreign = [ours, *(each.connection for each in others)]
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_serve, args=(work, theirs, foreign), daemon=True)
        with warnings.catch_warnings():
            # These are threads of imported libraries, which this fork does not need.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
    return _Worker(ours, process.terminate, process.join)


def _fresh(work: bytes) -> _Worker:
    """Return a new process that has received its pickled work."""
    with _pipe() as (ours, theirs):
        handle = theirs.fileno()
        command = [*own_program(__name__), str(handle)]
        if sys.platform == "win32":
            os.set_handle_inheritable(handle, True)
            inherited = subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]})
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, startupinfo=inherited)
        else:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[handle])
    with suppress(OSError):  # It has ended, which is noticed later.
        ours.send_bytes(work)
    return _Worker(ours, process.terminate, process.wait)


# -- the other side


def main() -> None:
    """Be a process that was not forked: its argument is the handle of its connection."""
    from multiprocessing import connection

    # On Windows, pipes have a class of their own.
    of_handle = getattr(connection, "PipeConnection", connection.Connection)
    opened: Connection = of_handle(int(sys.argv[1]))
    with suppress(Exception):  # A rule of the user's own has changed meanwhile: the other side goes on alone.
        _serve(pickle.loads(opened.recv_bytes()), opened, ())


def _serve(work: Callable[[Path], object], connection: Connection, foreign: Sequence[Connection]) -> None:
    """Process incoming files until there are no more; the other side repeats what fails here."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The other side ends this process.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # And this is how.
    for each in foreign:
        each.close()
    with suppress(Exception):
        while True:
            for path in connection.recv():
                connection.send((path, work(path)))
