"""Which tests execute a line, and in which order they are run against a mutant of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import coverage

from tests.mutants import recorder
from tests.mutants.drawing import WORKER, Mutant, room

_OUTSIDE = ""
_SETTINGS = """\
[run]
source = {source}
data_file = {data}
parallel = true
patch = _exit, fork
disable_warnings = no-data-collected
"""


class RecordingFailed(Exception):
    """No tests could be recorded; the message says where to look."""


@dataclass(frozen=True)
class Suite:
    """Tests that are run against the mutants of some rooms."""

    name: str
    is_of_worker: bool
    """Whether that is the worker of the verifier, or all else."""
    arguments: tuple[str, ...]
    """For pytest."""
    modules: tuple[str, ...] = ()
    """What takes long to import, and its tests need."""

    def record(self, place: Path, folder: Path) -> subprocess.Popen[bytes]:
        """Start the tests of a copy of the project, and write what they execute into ``folder``."""
        times, data, settings = (folder / f"{self.name}.{kind}" for kind in ("times", "lines", "settings"))
        source = f"\n    {place / 'gclint'}\n    {place / 'rules'}"
        settings.write_text(_SETTINGS.format(source=source, data=data), encoding="utf-8")
        command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest", "-q"]
        with (folder / f"{self.name}.log").open("wb") as log:
            return subprocess.Popen(
                [*command, "-p", recorder.__name__, "-p", "no:cacheprovider", *self.arguments],
                cwd=place,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    recorder.TIMES: str(times),
                    "PYTHONPATH": str(place),
                    "OMP_NUM_THREADS": "1",
                },
            )

    def is_recorded(self, folder: Path) -> bool:
        """Tell whether a folder has what the tests execute."""
        return (folder / f"{self.name}.lines").exists()

    def combine(self, folder: Path) -> None:
        """Put together what the processes of the tests have written.

        Raises:
            RecordingFailed: they have written nothing.
        """
        data = coverage.Coverage(data_file=folder / f"{self.name}.lines", config_file=False)
        try:
            data.combine([str(path) for path in folder.glob(f"{self.name}.lines.*")])
        except coverage.CoverageException as error:
            raise RecordingFailed(f"{folder / self.name}.log: the tests have run nothing: {error}") from error
        data.save()


class Reach:
    """Which tests execute what, as it was recorded."""

    def __init__(self, suites: Sequence[Suite], place: Path, folder: Path) -> None:
        self._suites = suites
        self._place = place
        self._data = {}
        self._seconds: dict[str, float] = {}
        for suite in suites:
            self._data[suite.name] = coverage.CoverageData(str(folder / f"{suite.name}.lines"))
            self._data[suite.name].read()
            times = (folder / f"{suite.name}.times").read_text(encoding="utf-8").splitlines()
            self._seconds |= dict(json.loads(line) for line in times)

    def seconds(self, test: str) -> float:
        """Return the CPU time that a test takes while it is recorded."""
        return self._seconds[test]

    def tests(self, mutant: Mutant, budget: float) -> list[str]:
        """Return the tests to run against a mutant, as many as fit into ``budget`` seconds.

        Those come first that go different ways through the module, then through the function; of those that
        go the same way the quickest.
        """
        lines = self._lines(mutant.key.file)
        reached = self._executing(lines, mutant.body if mutant.is_run_on_import else mutant.lines)
        reached = reached or self._executing(lines, mutant.body)
        ways: Counter[frozenset[int]] = Counter()
        order: list[tuple[int, int, int, str]] = []
        for test in sorted(reached, key=lambda each: (self._seconds[each], each)):
            module = frozenset(lines[test])
            function = module.intersection(mutant.body)
            order.append((ways[module], ways[function] if ways[module] == 0 else 0, len(order), test))
            if module != function:
                ways[module] += 1
            ways[function] += 1
        chosen: list[str] = []
        left = budget
        for *_, test in sorted(order):
            if self._seconds[test] <= left or not chosen:
                chosen.append(test)
                left -= self._seconds[test]
        return chosen

    def runs_on_import(self, mutant: Mutant) -> bool:
        """Tell whether a mutant's code is executed outside of tests, where they are collected."""
        return not self._lines(mutant.key.file).get(_OUTSIDE, set()).isdisjoint(mutant.lines)

    @staticmethod
    def _executing(lines: Mapping[str, set[int]], place: range) -> list[str]:
        return [
            test for test, executed in lines.items() if test != _OUTSIDE and not executed.isdisjoint(place)
        ]

    @lru_cache(maxsize=4)  # noqa: B019
    def _lines(self, file: str) -> Mapping[str, set[int]]:
        """Return the lines of a file that each test executes."""
        (suite,) = (each for each in self._suites if each.is_of_worker == (room(file) == WORKER))
        found: dict[str, set[int]] = {}
        executed = self._data[suite.name].contexts_by_lineno(str((self._place / file).resolve()))
        for line, contexts in executed.items():
            for test in contexts:
                if test in self._seconds or test == _OUTSIDE:
                    found.setdefault(test, set()).add(line)
        return found
