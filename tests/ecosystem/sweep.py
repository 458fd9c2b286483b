"""Every model of a release is run, and what came of it is written down: ``python3 -m tests.ecosystem.sweep``.

Makes an environment with the release in ``.cache/environments``, runs ``gclint verify`` over all of its
models there (an hour and a half on two cores), and writes the reviewed snapshot anew. Read the difference
before you commit it: each failure has to be a true statement about the model's source.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gclint.verify.results_file import read
from gclint.verify.worker.protocol import ClassResult
from tests.ecosystem.environments import release_environment
from tests.ecosystem.regenerate import SNAPSHOTS
from tests.environment import CACHE, EnvironmentUnavailable

RELEASE = "5.23.0"
"""The release whose sweep is kept."""
_REASON = 160
"""How much of the reason not to run a class is kept; what follows is detail."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Sweep, and write the snapshot; return 0 unless nothing could be run."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.ecosystem.sweep", description=__doc__)
    parser.add_argument("--resume", action="store_true", help="go on with a sweep that was interrupted")
    parser.add_argument("--device", default="auto", help="as for gclint verify")
    options = parser.parse_args(arguments)
    try:
        python = release_environment(RELEASE)
    except EnvironmentUnavailable as error:
        print(error, file=sys.stderr)
        return 2
    results = CACHE / "sweeps" / f"{RELEASE}.jsonl"
    status = sweep(python, results, "--device", options.device, *(["--resume"] if options.resume else []))
    if status not in (0, 1, 2):
        return 2
    found = read_sweep(results)
    snapshot(RELEASE).write_text(sweep_text(found), encoding="utf-8", newline="\n")
    print(summary(found))
    return 0


def sweep(python: Path, results: Path, *options: str) -> int:
    """Run all models that are installed for ``python``; return the exit status of ``gclint verify``."""
    command = [sys.executable, "-m", "gclint", "verify", "--python", str(python), "--model", "*"]
    return subprocess.run(
        [*command, "--results", str(results), *options], stdout=subprocess.DEVNULL
    ).returncode


def read_sweep(results: Path) -> list[ClassResult]:
    """Return what came of each class, by file and name."""
    _, found = read(results)
    return found.sorted()


def snapshot(version: str) -> Path:
    """Return where the outcomes of a release's classes are written down."""
    return SNAPSHOTS / f"verified-{version}.txt"


def sweep_text(results: Iterable[ClassResult]) -> str:
    """Return one line for each class and one for each of its failures, without what hangs on the machine."""
    return "".join(f"{line}\n" for result in results for line in _lines(result))


def summary(results: Sequence[ClassResult]) -> str:
    """Return how many classes passed, failed and were not run."""
    outcomes = Counter(result.outcome for result in results)
    covered = sum(result.outcome != "not run" and not result.not_covered for result in results)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
    return f"{len(results)} classes: {counts}; {covered} run with all their parts"


def _lines(result: ClassResult) -> Iterator[str]:
    path = Path(result.source)
    name = f"{path.parent.name}/{path.name} {result.name}"
    if result.outcome == "not run":
        reason = " ".join((result.reason or "").split())
        yield f"{name}: not run ({result.category}): {reason[:_REASON]}"
        return
    missing = f"; without {', '.join(result.not_covered)}" if result.not_covered else ""
    yield f"{name}: {result.outcome}{missing}"
    failures = {
        (failure.check, failure.mode, failure.scenario, failure.cause.value if failure.cause else "")
        for failure in result.failures
    }
    for check, mode, scenario, why in sorted(failures):
        yield f"    {check}, {mode}, {scenario}{f': {why}' if why else ''}"


if __name__ == "__main__":
    raise SystemExit(main())
