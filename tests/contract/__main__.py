"""The contract of safe fixes, by generation: ``python3 -m tests.contract --models 3000 --seed 0``.

Exits with 1 if a safe fix breaks a promise, or too few of the models that are repairable by construction are
repaired.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.contract.counterexamples import Counterexample, counterexamples, write
from tests.contract.grammar import draw, once_broken, shape_of
from tests.contract.releases import RELEASES, python_of_release
from tests.contract.simplification import singles
from tests.contract.tables import SHARE, share, summary
from tests.contract.verdicts import Verdict, judge

_SECONDS_BETWEEN_LINES = 10.0


def main(arguments: Sequence[str]) -> int:
    """Draw models, judge what gclint makes of them, and print a table; return the exit status."""
    options = _options().parse_args(arguments)
    for release in options.releases:
        python_of_release(release)
    shapes = [shape_of(each) for each in options.shape]
    if options.singles:
        shapes = singles()
    if not shapes:
        shapes = [*once_broken(), *(draw(options.seed, number) for number in range(options.models))]
    with ProcessPoolExecutor(options.jobs) as pool:
        verdicts: list[Verdict] = []
        begun = shown = time.monotonic()
        jobs = pool.map(judge, shapes, [tuple(options.releases)] * len(shapes))
        for number, of_model in enumerate(jobs, start=1):
            verdicts += of_model
            if number == len(shapes) or time.monotonic() - shown > _SECONDS_BETWEEN_LINES:
                shown = time.monotonic()
                broken = sum(bool(each.broken) for each in verdicts)
                print(f"{number} of {len(shapes)} models, {broken} broken, {shown - begun:.0f} s", flush=True)
        found: list[Counterexample] = []
        for each in counterexamples(verdicts, pool, options.jobs):
            found.append(each)
            print(f"\n{each}", flush=True)
            if options.found is not None:
                write(each, len(found), options.found)
    print(f"\n{summary(verdicts, found)}")
    invalid = any(each.invalid for each in verdicts)
    enough = bool(options.shape or options.singles) or all(
        share(verdicts, release) >= SHARE for release in options.releases
    )
    return int(bool(found) or invalid or not enough)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests.contract", description=__doc__)
    parser.add_argument("--models", type=int, default=3000, metavar="N", help="how many models to draw")
    parser.add_argument("--seed", type=int, default=0, help="which models to draw")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes at once"
    )
    parser.add_argument(
        "--releases", nargs="+", default=RELEASES, choices=RELEASES, help="where to train them"
    )
    parser.add_argument("--shape", action="append", default=[], help="judge this model, and no others")
    parser.add_argument("--singles", action="store_true", help="judge every feature by itself, and no others")
    parser.add_argument("--found", type=Path, metavar="DIR", help="write counterexamples below this folder")
    return parser


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
