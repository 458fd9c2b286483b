"""Sets up and runs the checks: ``python3 -m tests.everything``, and all of them with ``--full``.

Needs Python, pip and PyPI. Makes a virtual environment in ``.cache/tests``, installs gclint with what its
tests need, and runs the formatter, the linter, the type checker, the quick tests, a fixed sample of the
others, and last a part of the models of a release. With ``--full`` all tests run, as in continuous
integration. It says at the start how long all of it takes, and after each step how long the rest does: as
long as here the last time, or as was measured on two cores.

The sample is the same every time: of the cases of each test one in twenty, and at least one. So every file,
every function and every marker has its share, and what is made of many cases is thinned out. The cases of a
test are ordered by a checksum of their names, and the first are taken.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.environment import CACHE, PROJECT, EnvironmentUnavailable, announce, fresh_environment, python_of

_ONE_IN = 20
_MEMORY = CACHE / "everything.json"
"""How many seconds each step took here when it passed the last time."""


@dataclass(frozen=True)
class Step:
    """One of the things to do."""

    command: tuple[str, ...]
    """What Python runs as a module; nothing for the environment itself."""
    seconds: float
    """What it took on two cores that did nothing else."""

    @property
    def name(self) -> str:
        """What to call it."""
        return shlex.join(self.command) or "install gclint and what its tests need into .cache/tests"


def steps(*, full: bool) -> tuple[Step, ...]:
    """Return what is done, in its order: what is quick and often fails first, the sweep last."""
    some = () if full else ("--one-in", str(_ONE_IN))
    # What tests of a file share is made once, and each process has enough to do until the end.
    spread = ("-n", "auto", "--dist", "loadgroup")
    return (
        Step((), 60),
        Step(("ruff", "check", "."), 1),
        Step(("ruff", "format", "--check", "."), 1),
        Step(("mypy",), 45),
        Step(("pytest", "-q", *spread), 120),
        Step(("pytest", "-q", "-m", f"({_others()}) and not sweep", *some, *spread), 2400 if full else 1000),
        Step(("pytest", "-q", "-m", "sweep", *some), 380 if full else 60),
    )


def _others() -> str:
    """Return the expression for the tests that are not quick: those that plain ``pytest`` leaves out."""
    configuration = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    quick = re.search(r'^addopts = .*"-m", "([^"]*)"', configuration, re.MULTILINE)
    assert quick is not None
    return " or ".join(each.removeprefix("not ") for each in quick[1].split(" and "))


class Times:
    """How long steps take."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        self._known: dict[str, float] = {}
        with suppress(OSError, ValueError, AttributeError, TypeError):
            remembered = json.loads(memory.read_text(encoding="utf-8")).items()
            self._known = {str(name): float(seconds) for name, seconds in remembered}

    def expected(self, remaining: Sequence[Step]) -> float:
        """Return how many seconds some steps will take."""
        return sum(self._known.get(step.name, step.seconds) for step in remaining)

    def source(self, of: Sequence[Step]) -> str:
        """Say where the expectation comes from."""
        known = sum(step.name in self._known for step in of)
        if known == len(of):
            return "as the last time here"
        measured = "as measured on two cores"
        return f"{measured}, and here the last time" if known else measured

    def learn(self, step: Step, seconds: float) -> None:
        """Remember how long a step took."""
        self._known[step.name] = round(seconds, 1)
        with suppress(OSError):  # The next time knows less then.
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            self._memory.write_text(json.dumps(self._known, indent=1), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks, also those after one that failed; return the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.everything", description="Run the checks.")
    parser.add_argument("--full", action="store_true", help="run all tests")
    to_do = steps(full=parser.parse_args(arguments).full)
    times, began = Times(_MEMORY), time.monotonic()
    announce(f"{len(to_do)} steps, {minutes(times.expected(to_do))} in all, {times.source(to_do)}")
    failed = []
    for number, step in enumerate(to_do):
        left = minutes(times.expected(to_do[number:]))
        announce(f"{number + 1} of {len(to_do)}, {left} left: {step.name}")
        start = time.monotonic()
        has_passed = _run(step)
        if has_passed:
            times.learn(step, time.monotonic() - start)
        else:
            failed.append(step.name)
        if not (has_passed or step.command):
            break
    outcome = f"failed: {'; '.join(failed)}" if failed else "everything passed"
    announce(f"{outcome} (in {minutes(time.monotonic() - began).removeprefix('about ')})")
    return int(bool(failed))


def _run(step: Step) -> bool:
    """Do one thing; return whether it went as it should."""
    folder = CACHE / "tests"
    if step.command:
        return subprocess.run([python_of(folder), "-m", *step.command], cwd=PROJECT).returncode == 0
    try:
        fresh_environment(folder, "-c", "constraints.txt", "-e", ".[test,verify]")
    except EnvironmentUnavailable as error:
        announce(str(error))
        return False
    return True


def minutes(seconds: float) -> str:
    """Return a time in words."""
    whole = round(seconds / 60)
    return "less than a minute" if seconds < 50 else f"about {whole} minute{'s' * (whole != 1)}"


if __name__ == "__main__":
    raise SystemExit(main())
