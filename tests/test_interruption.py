"""Runs that are ended from outside: what they print, write and leave behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gclint.interruption import interruptible
from gclint.run import jobs
from tests.terminal import Outcome, runner
from tests.trees import model

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="other systems have fewer signals")

_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
_FILES = ["modeling_a.py", "modeling_b.py", "modeling_c.py"]
_DEFECT = model("A")


@pytest.fixture(autouse=True)
def _usual_signals() -> Iterator[None]:
    """What a shell starts in the background ignores some of them."""
    usual = {signal.SIGINT: signal.default_int_handler}
    before = {each: signal.signal(each, usual.get(each, signal.SIG_DFL)) for each in _SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def gclint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    monkeypatch.chdir(tmp_path)
    for name in _FILES:
        Path(name).write_text(_DEFECT)
    return runner(monkeypatch, capsys)


def _interrupt(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a signal arrive after the first file has been checked."""
    from gclint.run import check

    spread = jobs.spread

    def interrupting(*arguments: Any) -> Iterator[object]:
        with closing(spread(*arguments)) as answers:
            yield next(answers)
            os.kill(os.getpid(), number)
            yield from answers

    monkeypatch.setattr(check, "spread", interrupting)


@pytest.mark.parametrize("number", _SIGNALS)
@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_lint_run_that_is_ended_prints_what_it_has(
    number: signal.Signals, processes: str, gclint: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_start_method", lambda: "fork")
    _interrupt(number, monkeypatch)
    outcome = gclint("--jobs", processes, "--no-cache", "--output-format", "concise", ".")
    assert outcome.status == 128 + number
    assert "modeling_a.py:" in outcome.out
    assert "modeling_b.py:" not in outcome.out
    assert outcome.err == "Interrupted: 2 of 3 files not checked.\n"
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    "options",
    [
        ("--output-format", "json"),
        ("--output-format", "sarif"),
        ("--fix",),
        ("--diff",),
        ("--write-baseline", "b"),
    ],
)
def test_a_run_that_is_ended_writes_nothing_that_is_not_whole(
    options: tuple[str, ...], gclint: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    _interrupt(signal.SIGTERM, monkeypatch)
    outcome = gclint(*options, ".")
    assert (outcome.status, outcome.out) == (143, "")
    assert outcome.err.startswith("Interrupted")
    assert sorted(each.name for each in Path().glob("[!.]*")) == _FILES
    assert {Path(name).read_text() for name in _FILES} == {_DEFECT}


def test_the_second_signal_ends_a_run_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            handlers = [signal.getsignal(each) for each in _SIGNALS]
    assert handlers == [signal.SIG_DFL] * 3


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interruptible():
        os.kill(os.getpid(), signal.SIGHUP)


def test_a_command_that_says_nothing_about_it_ends_without_a_traceback(
    gclint: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    from gclint import rule

    monkeypatch.setattr(rule, "all_rules", lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert gclint("rules") == (143, "", "Interrupted.\n")
