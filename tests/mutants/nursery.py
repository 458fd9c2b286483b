"""Where mutants are tried: in a copy of the project, by processes that have imported what takes long.

Most mutants change what a function does when it is called: they are tried in forks of a process of pytest
that has collected all tests, with other code in that function. What runs while a module is imported is
changed in the copy, and imported anew.
"""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

import pytest

from tests.mutants.code import NotReplaceable, functions_below, replace_code
from tests.mutants.drawing import Mutant
from tests.mutants.trial import Outcome, Trial, TrialFailed, attempt, move

_HEAVY = ("libcst.matchers", "libcst.metadata", "hypothesis", "rich.console", "jinja2")
# The thread that watches a test is not there in a fork, and what waits for its end waits for ever.
_OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-m", ""),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning", "-W", "ignore::pytest.PytestConfigWarning"),
)

Next = Callable[[], "int | None"]
"""Returns the number of the next mutant; None where none is left."""
Tell = Callable[[int, Outcome], None]


@dataclass(frozen=True)
class Work:
    """A mutant, and the tests that are run against it."""

    mutant: Mutant
    tests: tuple[str, ...]
    seconds: float
    """How long they usually take."""
    is_cold: bool
    """Whether it has to be imported anew."""


class Nursery:
    """A copy of the project."""

    def __init__(self, place: Path, modules: Sequence[str]) -> None:
        """Make one.

        Args:
            place: where the copy is.
            modules: what to import before any test, such as torch.
        """
        self._place = place
        self._modules = modules
        self._log = place.with_suffix(".log")
        self._output = place.with_suffix(".output")

    def try_cold(self, work: Work) -> Outcome:
        """Try a mutant in the copy of its module; this process must not have imported gclint from there."""
        path = self._place / work.mutant.key.file
        original, times = path.read_bytes(), path.stat()
        path.write_bytes(work.mutant.text.encode())
        try:
            return attempt(lambda trial: self._run(trial, work.tests), work.seconds, self._log)
        finally:
            path.write_bytes(original)
            # What was compiled from the original stays valid.
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def try_warm(self, work: Sequence[Work], take: Next, tell: Tell) -> None:
        """Try mutants of functions, whose numbers in ``work`` are taken one by one."""
        tests = sorted({test.partition("::")[0] for each in work for test in each.tests})
        self._begin()
        attempts = _Attempts(work, take, tell, self._place, self._log)
        status = pytest.main([*_OPTIONS, f"--basetemp={self._place}.tmp", *tests], plugins=[attempts])
        if status:
            raise TrialFailed(f"{self._output} says why not all tests can be collected")

    def failing(self, tests: Sequence[str], seconds: float) -> list[str]:
        """Return which tests fail without a mutant."""

        def run(trial: Trial) -> None:
            self._begin()
            failures = _Failures()
            pytest.main([*_OPTIONS, *tests], plugins=[failures])
            trial.kill("\n".join(failures.found))

        return attempt(run, seconds, self._log).by.splitlines()

    def _begin(self) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"
        for name in (*_HEAVY, *self._modules):
            importlib.import_module(name)
        move(self._place)
        _redirect(self._output)

    def _run(self, trial: Trial, tests: Sequence[str]) -> None:
        move(self._place)
        _redirect(self._output)
        failures = _Failures()
        status = pytest.main([*_OPTIONS, "-x", f"--basetemp={self._place}.tmp", *tests], plugins=[failures])
        if status:
            trial.kill(failures.found[0] if failures.found else "nothing can be imported")


class _Failures:
    """A plugin of pytest that knows which tests have failed."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.found.append(report.nodeid)


class _Attempts:
    """A plugin of pytest that tries mutants in forks once all tests are collected."""

    def __init__(self, work: Sequence[Work], take: Next, tell: Tell, place: Path, log: Path) -> None:
        self._work = work
        self._take = take
        self._tell = tell
        self._place = place
        self._log = log
        self._trial: Trial | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for work in self._work:
            importlib.import_module(work.mutant.key.file.removesuffix(".py").replace("/", "."))
        functions = functions_below(str(self._place))
        # What is there is no garbage, and no fork has to look for any in it.
        gc.collect()
        gc.freeze()
        while (number := self._take()) is not None:
            work = self._work[number]
            chosen = [items[test] for test in work.tests if test in items]
            self._tell(number, self._outcome(work, chosen, functions))
        return True

    def _outcome(
        self, work: Work, items: Sequence[pytest.Item], functions: Sequence[FunctionType]
    ) -> Outcome:
        path = self._place / work.mutant.key.file

        def run(trial: Trial) -> None:
            try:
                replace_code(functions, str(path), path.read_text(encoding="utf-8"), work.mutant.text)
            except NotReplaceable:
                trial.kill(_COLD)
            self._trial = trial
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

        return attempt(run, work.seconds, self._log)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._trial is not None:
            self._trial.kill(report.nodeid)


_COLD = "cold"


def is_too_cold(outcome: Outcome) -> bool:
    """Tell whether a mutant could not be tried without importing it anew."""
    return outcome.by == _COLD


def _redirect(output: Path) -> None:
    """Write what is printed from now on into a file."""
    target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(target, stream)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
