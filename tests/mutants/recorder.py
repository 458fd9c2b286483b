"""A plugin of pytest that says which tests pass, how long they take, and which lines each executes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

TIMES = "GCLINT_MUTANTS_TIMES"
"""The environment variable that names the file for the times of the tests that pass."""


class _Recorder:
    def __init__(self, file: Path, recording: coverage.Coverage) -> None:
        self._file = file
        self._recording = recording
        self._test = ""
        self._has_passed = True
        os.register_at_fork(after_in_child=lambda: recording.switch_context(self._test))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._test, self._has_passed = item.nodeid, True
        self._recording.switch_context(self._test)
        started = _seconds()
        result = yield
        seconds = _seconds() - started
        self._test = ""
        self._recording.switch_context("")
        if self._has_passed:
            with self._file.open("a", encoding="utf-8") as times:
                times.write(json.dumps([item.nodeid, seconds]) + "\n")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_passed = self._has_passed and report.passed


def _seconds() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    """Record, if this is a run that is recorded."""
    recording = coverage.Coverage.current()
    if recording is not None:
        config.pluginmanager.register(_Recorder(Path(os.environ[TIMES]), recording))
