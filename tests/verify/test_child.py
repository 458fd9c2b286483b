"""Functions in forked processes: what they send arrives, and whatever they do is survived and told."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from gclint.verify.worker import child
from gclint.verify.worker.child import Send, Task, run
from gclint.verify.worker.ending import End
from gclint.verify.worker.processes import are_visible

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

_LONG = 60.0
_SHORT = 0.2


def _run(function: Callable[[Send], None], **limits: float) -> tuple[list[str], End]:
    task = Task(lambda send, _slot: function(send), **{"seconds": _LONG, **limits})  # type: ignore[arg-type]
    events = [event for _, event in run([task], 1)]
    *lines, end = events
    assert isinstance(end, End)
    assert all(isinstance(line, str) for line in lines)
    return [str(line) for line in lines], end


def test_lines_arrive_in_order_however_long_they_are() -> None:
    sent = ["", "one", "=", "x" * 1_000_000, '{"cause": "error"}', "ü"]

    def send_all(send: Send) -> None:
        for line in sent:
            send(line)

    assert _run(send_all) == (sent, End("done"))


def test_a_segmentation_fault_is_told_with_the_line_where_it_happened() -> None:
    def read_from_nowhere(send: Send) -> None:
        send("before")
        ctypes.string_at(0)

    lines, end = _run(read_from_nowhere)
    assert lines == ["before"]
    assert (end.cause, end.message) == ("crash", "a segmentation fault (SIGSEGV)")
    frame = end.place_in(__file__)
    assert frame
    assert "ctypes.string_at(0)" in Path(frame.path).read_text().splitlines()[frame.line - 1]


def test_an_endless_loop_is_ended_and_told_with_its_line() -> None:
    def spin(send: Send) -> None:
        send("before")
        while True:
            pass

    lines, end = _run(spin, seconds=_SHORT)
    assert lines == ["before"]
    assert (end.cause, end.message) == ("time limit", "no end within 0.2 s of CPU time")
    assert end.place_in(__file__)


def test_a_thread_that_hangs_in_native_code_with_signals_blocked_is_ended() -> None:
    def hang(_send: Send) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        thread = threading.Thread(target=ctypes.CDLL(None).pause)
        thread.start()
        thread.join()

    assert _run(hang, seconds=_SHORT)[1].cause == "time limit"


@pytest.mark.parametrize(
    ("leave", "message"),
    [
        (lambda: sys.exit(3), "a call of sys.exit(3)"),
        (lambda: sys.exit("bye"), "a call of sys.exit('bye')"),
        (lambda: os._exit(0), "an exit of the process with status 0"),
        (lambda: os._exit(7), "an exit of the process with status 7"),
    ],
)
def test_an_exit_is_told(leave: Callable[[], None], message: str) -> None:
    def work(_send: Send) -> None:
        leave()

    _, end = _run(work)
    assert (end.cause, end.message) == ("exit", message)


@pytest.mark.parametrize(("number", "cause"), [(signal.SIGKILL, "killed"), (signal.SIGABRT, "crash")])
def test_a_signal_is_told(number: signal.Signals, cause: str) -> None:
    _, end = _run(lambda _send: os.kill(os.getpid(), number))
    assert end.cause == cause
    assert number.name in end.message


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit what is mapped")
@pytest.mark.parametrize("number", [2_000_000_000, 40_000_000_000])
def test_more_memory_than_allowed_is_refused_and_told(number: int) -> None:
    def fill(send: Send) -> None:
        send("before")
        bytearray(number)

    lines, end = _run(fill, gigabytes=1.0)
    assert lines == ["before"]
    assert end.cause == "memory limit"
    assert end.place_in(__file__)


def test_an_exception_is_told_with_its_place() -> None:
    def fail(_send: Send) -> None:
        raise ValueError("no such thing")

    _, end = _run(fail)
    assert end.cause == "error"
    assert end.message.startswith(f"ValueError: no such thing ({__file__}:")


def test_what_a_function_prints_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    def flood(send: Send) -> None:
        os.write(1, b"printed\n" * 100_000)
        os.write(2, b"warned\n" * 100_000)
        send("after")

    assert _run(flood) == (["after"], End("done"))
    assert capfd.readouterr() == ("", "")


def test_a_process_left_behind_keeps_nobody_waiting() -> None:
    def leave_one(send: Send) -> None:
        process = os.fork()
        if not process:
            signal.pause()
        send(str(process))

    lines, end = _run(leave_one)
    os.kill(int(lines[0]), signal.SIGKILL)
    assert end.cause == "done"


def test_a_time_limit_that_is_renewed_counts_from_the_last_line() -> None:
    def go_on(send: Send) -> None:
        started = time.monotonic()
        while time.monotonic() < started + 3 * _SHORT:
            send("still here")
        send("three times the limit")
        while True:
            pass

    task = Task(lambda send, _slot: go_on(send), _SHORT, renewed=lambda _line: True)
    *_, last, end = [event for _, event in run([task], 1)]
    assert last == "three times the limit"
    assert isinstance(end, End)
    assert end.cause == "time limit"


def test_as_many_run_at_once_as_there_are_jobs_and_slots_are_theirs() -> None:
    meeting, arrival = os.pipe(), os.pipe()

    def meet(send: Send, slot: int) -> None:
        # Both have arrived before one goes on, which needs both to run.
        os.write(arrival[1], b"x")
        if slot == 0:
            assert os.read(arrival[0], 1) + os.read(arrival[0], 1) == b"xx"
            os.write(meeting[1], b"x")
        else:
            os.read(meeting[0], 1)
        send(str(slot))

    events = [event for _, event in run([Task(meet, _LONG), Task(meet, _LONG)], 2)]
    assert sorted(event for event in events if isinstance(event, str)) == ["0", "1"]
    assert [event for event in events if isinstance(event, End)] == [End("done")] * 2


def test_closing_the_run_kills_what_is_left() -> None:
    def wait(send: Send, _slot: int) -> None:
        send(str(os.getpid()))
        signal.pause()

    running = run([Task(wait, _LONG)], 1)
    _, process = next(running)
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(str(process)), 0)


def test_a_child_runs_children_of_its_own() -> None:
    def parent(send: Send) -> None:
        for _, event in run([Task(lambda inner, _slot: inner("from below"), _LONG)], 1):
            send(event if isinstance(event, str) else event.cause)

    assert _run(parent) == (["from below", "done"], End("done"))


def test_signals_that_are_ignored_keep_nobody_from_waiting() -> None:
    def parent(send: Send) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for _, event in run([Task(lambda inner, _slot: inner("from below"), _LONG)], 1):
            send(event if isinstance(event, str) else event.cause)

    assert _run(parent) == (["from below", "done"], End("done"))


def test_a_status_that_somebody_else_has_taken_is_not_waited_for() -> None:
    def parent(send: Send) -> None:
        reading, writing = os.pipe()

        def wait(inner: Send, _slot: int) -> None:
            inner("from below")
            os.read(reading, 1)

        running = run([Task(wait, _LONG)], 1)
        send(str(next(running)[1]))
        os.write(writing, b"x")
        os.waitpid(-1, 0)
        for _, event in running:
            send(event if isinstance(event, str) else event.cause)

    assert _run(parent) == (["from below", "done"], End("done"))


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_what_is_written_into_the_pipe_by_others_is_no_end_and_no_line() -> None:
    own = {each for each in range(3, 256) if _is_open(each)}

    def scribble(send: Send) -> None:
        send("before")
        for each in set(range(3, 256)) - own:
            if _is_open(each):
                os.write(each, b"\xff garbage\n{}\n")

    told = "something in the pipe for results that gclint has not written"
    assert _run(scribble) == (["before"], End("tampering", told))


def test_folders_for_temporary_files_are_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(os, "memfd_create"):
        monkeypatch.setattr(tempfile, "tempdir", "/no/such/folder")
    assert _run(lambda send: send("x")) == (["x"], End("done"))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
def test_what_is_no_error_is_an_exit(error: BaseException) -> None:
    def leave(_send: Send) -> None:
        raise error

    assert _run(leave)[1].cause == "exit"


def _dead(status: int) -> int:
    """Return a child of this process that has ended, and that nobody has waited for."""
    process = os.fork()
    if not process:
        os._exit(status)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    return process


# Python warns of threads, which the processes here do not use.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(not are_visible(), reason="this system does not show who started whom")
def test_only_what_tasks_have_left_behind_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_adopts", [True])
    older = _dead(3)
    observer = child._Observer()
    own, left = _dead(4), _dead(5)
    observer.clear([SimpleNamespace(process=own)])  # type: ignore[list-item]
    # Whoever runs them takes their status, which says how they ended.
    assert [os.waitpid(each, 0)[1] >> 8 for each in (older, own)] == [3, 4]
    with pytest.raises(ChildProcessError):
        os.waitpid(left, os.WNOHANG)
