"""Classes that take more of the machine than they may: each ends with a reason, and leaves nothing behind.

All of this is bounded, so that a test that fails takes no machine with it: no class starts more than 64
processes or takes more than a gigabyte, and each process ends by itself after a minute.
"""

from __future__ import annotations

import fcntl
import signal
import sys
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

import pytest

from gclint.verify import process
from gclint.verify.worker import isolation
from gclint.verify.worker.protocol import ClassResult, Message, Request, Source, Unusable
from tests.environment import PROJECT
from tests.verify import stand_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what processes use")

_GIGABYTES = 0.4
_PROCESSES = 16

_HEAD = f"""
import mmap, os, resource, signal, subprocess, sys, threading, time
from fcntl import LOCK_SH, flock

def begin(path):
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    # What it starts holds the file as well; the lock is given up when the last of them ends.
    held = os.open(path, os.O_RDWR)
    os.set_inheritable(held, True)
    flock(held, LOCK_SH)

def fork():
    process = os.fork()
    if not process:
        signal.alarm(60)
    return process

def detach():
    os.setsid()
    if fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

def fill(share):
    data = bytearray(int(share * {_GIGABYTES} * 1e9))
    data[::4096] = b"x" * len(data[::4096])
    return data

def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
"""

_TOO_MUCH = {
    "a bomb": ("for _ in range(6): fork()\nsignal.pause()", "process limit"),
    "detached processes": (
        """
        for _ in range(60):
            if not fork():
                detach()
                signal.pause()
        signal.pause()
        """,
        "process limit",
    ),
    "programs": (
        """
        for _ in range(60):
            subprocess.Popen(["sleep", "60"], start_new_session=True, close_fds=False)
        signal.pause()
        """,
        "process limit",
    ),
    "children with a part of the limit each": (
        """
        for _ in range(5):
            if not fork():
                mine = fill(0.4)
                signal.pause()
        signal.pause()
        """,
        "memory limit",
    ),
    "detached children with a part of the limit each": (
        """
        for _ in range(5):
            if not fork():
                detach()
                mine = fill(0.4)
                signal.pause()
        signal.pause()
        """,
        "memory limit",
    ),
    "shared memory": (
        f"""
        shared = mmap.mmap(-1, int({2 * _GIGABYTES} * 1e9))
        for place in range(0, len(shared), 4096):
            shared[place] = 1
        signal.pause()
        """,
        "memory limit",
    ),
    "a file without a name": (
        f"""
        file = os.memfd_create("x")
        for _ in range(int({2 * _GIGABYTES} * 1e3)):
            os.write(file, bytes(10**6))
        signal.pause()
        """,
        "memory limit",
    ),
}
_TOO_LONG = {
    "a busy child": "if not fork(): spin(60)\nos.wait()",
    "busy children, one after the other": """
        while True:
            if not fork():
                spin(0.05)
                os._exit(0)
            os.wait()
        """,
    "a busy child that nobody waits for": "if not fork():\n    detach()\n    spin(60)\nspin(60)",
    "nothing": "signal.pause()",
    "nothing, with signals blocked": (
        "signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))\nsignal.pause()"
    ),
    "a deadlock": "lock = threading.Lock()\nlock.acquire()\nlock.acquire()",
    "a stop": "os.kill(os.getpid(), signal.SIGSTOP)",
    "ignored signals": """
        for each in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(each, signal.SIG_IGN)
        spin(60)
        """,
}


_DECISIVE = (
    "a bomb",
    "detached children with a part of the limit each",
    "a file without a name",
    "busy children, one after the other",
    "nothing, with signals blocked",
    "a stop",
)
"""Those that are tried each time; the others are of the same kinds."""


def _some(deeds: Collection[str]) -> list[object]:
    others = [name for name in deeds if name not in _DECISIVE]
    return [
        pytest.param([name for name in deeds if name in _DECISIVE], id="decisive"),
        pytest.param(others, marks=pytest.mark.slow, id="others"),
    ]


@dataclass(frozen=True)
class _Guest:
    """A modeling file, and the file that everything that it starts holds a lock on."""

    source: Source
    held: Path

    def is_gone(self) -> bool:
        """Return whether all that was started ends within some seconds."""

        def give_up(*_: object) -> None:
            raise TimeoutError

        before = signal.signal(signal.SIGALRM, give_up)
        with self.held.open("rb+") as file:
            signal.setitimer(signal.ITIMER_REAL, 10)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except TimeoutError:
                return False
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
        return True


def _guest(folder: Path, body: str, *, at_import: bool = False) -> _Guest:
    """Write a file whose class ``Guest`` does something, which another one must not notice."""
    folder.mkdir()
    held = folder / "held"
    held.touch()
    deed = f"begin({str(held)!r})\n{dedent(body).strip()}\n"
    run = "pass\n" if at_import else deed
    text = f"class Guest:\n    @staticmethod\n    def run(watch, known):\n{indent(run, ' ' * 8)}"
    other = "class Other:\n    run = staticmethod(lambda watch, known: None)\n"
    path = folder / "modeling_toy.py"
    path.write_text(f"{_HEAD}\n{deed if at_import else ''}\n{text}\n{other}")
    return _Guest(Source(str(path), f"{folder.name}.modeling_toy", str(folder)), held)


def _results(messages: Sequence[Message]) -> dict[tuple[str, str], ClassResult]:
    return {(each.source, each.name): each for each in messages if isinstance(each, ClassResult)}


def _run(folder: Path, deeds: Sequence[str], seconds: float) -> list[tuple[ClassResult, ClassResult, bool]]:
    """Run classes at once; return the result of each, that of the one beside it, and whether all is gone."""
    guests = [_guest(folder / f"guest{number}", each) for number, each in enumerate(deeds)]
    sources = tuple(each.source for each in guests)
    request = Request(sources, seconds=seconds, gigabytes=_GIGABYTES, jobs=4)
    with closing(process.work(Path(sys.executable), request)) as messages:
        found = _results(list(messages))
    paths = [each.path for each in sources]
    return [
        (found[path, "Guest"], found[path, "Other"], guest.is_gone())
        for path, guest in zip(paths, guests, strict=True)
    ]


@pytest.fixture
def _program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in as a program of its own: what this process has in memory would count with its forks."""
    monkeypatch.setattr(process, "_PROGRAM", Path(stand_in.__file__))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))


@pytest.mark.usefixtures("_program")
@pytest.mark.parametrize("names", _some(_TOO_MUCH))
def test_more_memory_or_processes_than_allowed_end_a_class_and_nothing_else(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(stand_in.PROCESSES, str(_PROCESSES))
    outcomes = _run(tmp_path, [_TOO_MUCH[name][0] for name in names], seconds=60.0)
    assert {
        name: (guest.category, other.outcome, is_gone)
        for name, (guest, other, is_gone) in zip(names, outcomes, strict=True)
    } == {name: (_TOO_MUCH[name][1], "passed", True) for name in names}


@pytest.mark.usefixtures("_program")
@pytest.mark.parametrize("names", _some(_TOO_LONG))
def test_more_time_than_allowed_ends_a_class_and_nothing_else(names: list[str], tmp_path: Path) -> None:
    outcomes = _run(tmp_path, [_TOO_LONG[name] for name in names], seconds=0.5)
    assert {
        name: (guest.category, other.outcome, is_gone)
        for name, (guest, other, is_gone) in zip(names, outcomes, strict=True)
    } == dict.fromkeys(names, ("time limit", "passed", True))


_ON_ITS_WATCHER = {
    "stops it": ("os.kill(os.getppid(), signal.SIGSTOP)\nfor _ in range(9): fork()\nsignal.pause()", False),
    "kills it": (
        "if not fork():\n    detach()\n    signal.pause()\nos.kill(os.getppid(), signal.SIGKILL)",
        False,
    ),
    "acts before it is run": ("for _ in range(9): fork()\nsignal.pause()", True),
}


@pytest.fixture(params=[pytest.param(False, marks=pytest.mark.slow), True], ids=["shared", "isolated"])
def _isolation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's processes, or namespaces of the program's own."""
    if request.param:
        if isolation._allowed() is None:
            pytest.skip("namespaces are not allowed here")
        monkeypatch.setenv(stand_in.ISOLATED, "1")


@pytest.mark.usefixtures("_program", "_isolation")
def test_what_a_class_does_to_the_process_that_watches_it_is_noticed_by_another(tmp_path: Path) -> None:
    guests = [
        _guest(tmp_path / f"guest{number}", deed, at_import=at_import)
        for number, (deed, at_import) in enumerate(_ON_ITS_WATCHER.values())
    ]
    last = _guest(tmp_path / "last", "pass")
    request = Request(tuple(each.source for each in (*guests, last)), seconds=60.0, jobs=4)
    with closing(process.work(Path(sys.executable), request)) as messages:
        heard = list(messages)
    found = _results(heard)
    unusable = {each.source: each.message for each in heard if isinstance(each, Unusable)}
    stopping, killing, importing = (each.source.path for each in guests)
    assert found[stopping, "Guest"].category == "process limit"
    assert found[killing, "Guest"].category == "killed"
    assert unusable.keys() == {importing}
    assert "limit of 256 processes" in unusable[importing]
    assert found[last.source.path, "Guest"].outcome == "passed"
    assert all(each.is_gone() for each in (*guests, last))
