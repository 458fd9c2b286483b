"""Sets up and runs the checks, in three rings: ``python3 -m tests.everything``.

Needs Python, pip and PyPI. Makes a virtual environment in ``.cache/tests``, installs gclint with what its
tests need, and runs the formatter, the linter, the type checker and tests:

- The first ring is for whoever changes something: all quick tests, and of what takes longer a draw that is
  the same each time. At most ten minutes.
- ``--full`` runs what continuous integration runs: all kinds of tests, with draws of what has thousands of
  cases. At most 40 minutes.
- ``--nightly`` runs all cases, whole releases and packages, thousands of generated models, and mutants.

It says at the start how long all of it takes, and after each step how long the rest does, as measured on two
cores.
"""

from __future__ import annotations

import argparse
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from tests.environment import CACHE, PROJECT, EnvironmentUnavailable, announce, fresh_environment, python_of


@dataclass(frozen=True)
class Step:
    """One of the things to do."""

    command: tuple[str, ...]
    """What Python runs as a module; nothing for the environment itself."""
    seconds: float
    """What it took on two cores that did nothing else."""
    purpose: str
    """What it does, in words."""

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.purpose}: {shlex.join(self.command)}" if self.command else self.purpose


_SPREAD = ("-n", "auto")
_LONGEST = 80 * 60
"""How many seconds CI may take: it ends what takes longer, and shows nothing of that."""
_LONGEST_WORD = 90
"""How many seconds what is stopped has to say what it has found."""
_QUICK = (
    Step((), 65, "install gclint and what its tests need into .cache/tests"),
    Step(("ruff", "check", "."), 1, "lint"),
    Step(("ruff", "format", "--check", "."), 1, "look at the format"),
    Step(("mypy",), 45, "check the types"),
    Step(("pytest", "-q", *_SPREAD), 260, "run the quick tests"),
)
"""What every ring begins with."""


def first() -> tuple[Step, ...]:
    """Return what the first ring does, in its order: what is quick and often fails first."""
    return (
        *_QUICK,
        _compared("real files", seconds=15),
        Step(("pytest", "-q", "-m", "first", *_SPREAD), 75, "run some models"),
    )


def full() -> tuple[Step, ...]:
    """Return what the first two rings do."""
    others = f"({_others()}) and not nightly"
    return (
        *_QUICK,
        _compared("real files", "odd files", "contract", seconds=105),
        Step(("pytest", "-q", "-m", f"{others} and not sweep", *_SPREAD), 1575, "run the other tests"),
        Step(("pytest", "-q", "-m", f"{others} and sweep"), 135, "run models of a release"),
    )


def nightly(day: date) -> tuple[Step, ...]:
    """Return what is done each night: models that no other day draws, and the mutants that are known."""
    seed = ("--seed", str(day.toordinal()))
    return (
        *_QUICK,
        _compared(seconds=400),
        Step(("pytest", "-q", "-m", f"({_others()}) and not sweep", *_SPREAD), 3000, "run all other tests"),
        Step(("pytest", "-q", "-m", "sweep"), 700, "run models of a release"),
        Step(("tests.contract", "--models", "3000", *seed), 1500, "repair and train generated models"),
        Step(("tests.contract.kinds",), 600, "repair and train models of each kind of twist"),
        Step(("tests.mutants",), 5400, "change gclint, and see that a test fails"),
    )


def _compared(*samples: str, seconds: float) -> Step:
    """Return the step that compares what gclint says about samples, by default about all."""
    options = (option for sample in samples for option in ("--sample", sample))
    return Step(
        ("tests.verdicts", "compare", *options), seconds, "compare what gclint says with what it said"
    )


def _others() -> str:
    """Return the expression for the tests that are not quick: those that plain ``pytest`` leaves out."""
    configuration = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    quick = re.search(r'^addopts = .*"-m", "([^"]*)"', configuration, re.MULTILINE)
    assert quick is not None
    return " or ".join(each.removeprefix("not ") for each in quick[1].split(" and "))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks, also those after one that failed; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.everything", description="Run the checks.")
    rings = parser.add_mutually_exclusive_group()
    rings.add_argument("--full", action="store_true", help="also what continuous integration runs")
    rings.add_argument("--nightly", action="store_true", help="all cases, and further draws")
    options = parser.parse_args(arguments)
    to_do = full() if options.full else nightly(date.today()) if options.nightly else first()
    began = time.monotonic()
    announce(f"{len(to_do)} steps, {minutes(expected(to_do))} in all, as measured on two cores")
    failed = []
    for number, step in enumerate(to_do):
        announce(f"{number + 1} of {len(to_do)}, {minutes(expected(to_do[number:]))} left: {step.name}")
        has_passed = _run(step, began + _LONGEST if options.full else None)
        if not has_passed:
            failed.append(step.name)
        if not (has_passed or step.command):
            break
    outcome = f"failed: {'; '.join(failed)}" if failed else "everything passed"
    announce(f"{outcome} (in {minutes(time.monotonic() - began).removeprefix('about ')})")
    return int(bool(failed))


def _run(step: Step, end: float | None) -> bool:
    """Do one thing until a time of the monotonic clock, at most; return whether it went as it should."""
    folder = CACHE / "tests"
    if step.command:
        left = None if end is None else max(0.0, end - time.monotonic())
        try:
            return exit_status([str(python_of(folder)), "-m", *step.command], left) == 0
        except subprocess.TimeoutExpired:
            announce(f"stopped: all steps together have taken {minutes(_LONGEST)}")
            return False
    try:
        fresh_environment(folder, "-c", "constraints.txt", "-e", ".[test,verify]")
    except EnvironmentUnavailable as error:
        announce(str(error))
        return False
    return True


def exit_status(command: Sequence[str], seconds: float | None) -> int:
    """Run a command until it ends, or is interrupted: then pytest says which tests have failed so far.

    Raises:
        subprocess.TimeoutExpired: it took longer.
    """
    # What was started in the background ignores interruptions, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, cwd=PROJECT) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LONGEST_WORD)
            raise
        finally:
            process.kill()


def expected(remaining: Sequence[Step]) -> float:
    """Return how many seconds some steps will take."""
    return sum(step.seconds for step in remaining)


def minutes(seconds: float) -> str:
    """Return a time in words."""
    whole = round(seconds / 60)
    return "less than a minute" if seconds < 50 else f"about {whole} minute{'s' * (whole != 1)}"


if __name__ == "__main__":
    raise SystemExit(main())
