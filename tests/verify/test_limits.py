"""Judgements of trees of processes, from recorded samples: too much, a hang, or a busy machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from itertools import count

import pytest

from gclint.verify.worker import processes
from gclint.verify.worker.ending import PROCESSES, THREADS, Excess, Limits, ResourceMeter, Sample

_LIMITS = Limits(60.0, 8.0, PROCESSES, level=2)


def _judged(
    samples: Iterable[Sample | None], limits: Limits = _LIMITS, step: float = 1.0
) -> tuple[Excess, str] | None:
    """Return the judgement of samples that were taken at equal distances; it ends with the first excess."""
    meter = ResourceMeter(limits, 0.0)
    for number, sample in zip(count(1), samples, strict=False):
        found = meter.exceeded(number * step, sample)
        if found is not None:
            return found
    return None


def test_a_class_that_waits_for_a_processor_is_not_late() -> None:
    # A fiftieth of a processor for nine minutes, which is eleven seconds of CPU time.
    assert _judged(Sample(second / 50, is_running=True) for second in range(540)) is None


def test_what_computes_now_and_then_is_not_idle() -> None:
    assert _judged(Sample(second // 10, is_running=False) for second in range(540)) is None


def test_cpu_time_counts_although_it_is_seldom_seen() -> None:
    late = _judged(Sample(second / 5, is_running=False) for second in range(600))
    assert late == ("time limit", "no end within 60 s of CPU time")


@pytest.mark.parametrize("heartbeat", [0.0, 0.005])
def test_a_deadlock_is_a_hang_even_if_a_thread_wakes_up_now_and_then(heartbeat: float) -> None:
    idle = [Sample(5 + heartbeat * second, is_running=False) for second in range(70)]
    assert _judged([Sample(5.0, is_running=True), *idle]) == (
        "time limit",
        "no computation for 60 s",
    )


def test_wall_clock_time_has_a_limit_far_above_that_of_cpu_time() -> None:
    slow = (Sample(second / 50, is_running=True) for second in range(1000))
    assert _judged(slow) == ("time limit", "no end within 600 s")
    assert _judged([None] * 599) is None
    assert _judged([None] * 600) == ("time limit", "no end within 600 s")
    assert _judged([None] * 299, Limits(1.0)) is None
    assert _judged([None] * 300, Limits(1.0)) == ("time limit", "no end within 300 s")


def test_time_in_which_nobody_looked_does_not_count() -> None:
    # As while the terminal has stopped the run, or the machine was asleep.
    assert _judged([Sample(1.0, is_running=False)] * 20, step=1000.0) is None


def test_cpu_time_of_processes_that_nobody_waited_for_is_not_forgotten() -> None:
    lost = (Sample(second % 5, is_running=True) for second in range(100))
    assert _judged(lost) == ("time limit", "no end within 60 s of CPU time")


def test_a_limit_that_is_renewed_counts_anew() -> None:
    meter = ResourceMeter(_LIMITS, 0.0)
    for second in range(1, 600):
        assert meter.exceeded(second, Sample(float(second), is_running=True)) is None
        if second % 50 == 0:
            meter.renew()


def test_what_is_renewed_before_a_late_sample_counts_anew_with_it() -> None:
    meter = ResourceMeter(_LIMITS, 0.0)
    assert meter.exceeded(1.0, Sample(1.0, is_running=True)) is None
    meter.renew()
    assert meter.exceeded(100.0, Sample(100.0, is_running=True)) is None
    assert meter.exceeded(160.0, Sample(160.0, is_running=True)) is not None


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (Sample(0.0, True, PROCESSES, THREADS, 8e9), None),
        (
            Sample(0.0, True, PROCESSES + 1),
            ("process limit", "no room left: more than the limit of 256 processes"),
        ),
        (
            Sample(0.0, True, 2, THREADS + 1),
            ("process limit", "no room left: more than the limit of 4096 threads"),
        ),
        (
            Sample(0.0, True, 3, bytes=8.1e9),
            ("memory limit", "no memory left: 3 processes together use more than the limit of 8 GB"),
        ),
        (
            Sample(0.0, True, bytes=8.1e9),
            ("memory limit", "no memory left: it uses more than the limit of 8 GB"),
        ),
    ],
)
def test_memory_and_processes_are_limited_together(sample: Sample, expected: object) -> None:
    assert _judged([sample]) == expected
    assert _judged([sample], Limits(60.0)) is None


def test_a_tree_is_ended_before_those_that_it_is_part_of() -> None:
    too_much = [Sample(0.0, True, 2, bytes=20e9)]
    outer = [Limits(60.0, 8.0, PROCESSES, level) for level in range(3)]
    times = [next(n for n in range(1, 19) if _judged(too_much * n, each)) for each in outer]
    assert times == sorted({*times}, reverse=True)


def test_what_is_too_much_is_not_forgotten_because_time_counts_anew() -> None:
    meter = ResourceMeter(Limits(60.0, 8.0), 0.0)
    judged = []
    for second in range(1, 30):
        judged.append(meter.exceeded(float(second), Sample(0.0, True, bytes=20e9)))
        meter.renew()
    assert judged[0] is None
    assert judged[-1] is not None


# -- what Linux shows

_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows it")


@_linux
def test_shared_memory_counts_once() -> None:
    if not processes.are_visible():
        pytest.skip("the processes are those of another namespace")
    program = (
        "import os, signal\nshared = bytearray(b'x') * 50_000_000\n"
        "for _ in range(3):\n    if not os.fork(): signal.alarm(60); signal.pause()\n"
        "print('', flush=True)\nsignal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        tree = processes.descendants([process.pid], processes.all_processes())
        memory = processes.ProcessMemory()
        rough, _, exact = (memory.of(tree, enough) for enough in (1e12, 0.0, 0.0))
        processes.end_all([process.pid])
    assert len(tree) == 4
    assert 50_000_000 < exact < 150_000_000
    assert rough > 200_000_000


@_linux
def test_processes_with_odd_names_are_seen() -> None:
    rename = "import ctypes, sys\nctypes.CDLL(None).prctl(15, b') R 1 (\\n')\n"
    program = f"{rename}print('', flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        assert processes.all_processes()[process.pid].parent == os.getpid()
        process.communicate()
