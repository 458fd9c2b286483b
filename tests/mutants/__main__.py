"""Mutation tests: ``python3 -m tests.mutants``.

Draws mutants of gclint with a seed, runs the tests that execute the changed line against each, and says how
many are killed. Those that live are listed in ``survivors.toml``, each with a reason. All happens in copies
of the project: the quick tests for most of it, those that run models for the worker of the verifier.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tests.environment import CACHE, PROJECT
from tests.mutants.drawing import WORKER, draw, room
from tests.mutants.reach import Reach, RecordingFailed, Suite
from tests.mutants.survivors import FILE, entry, reasons
from tests.mutants.trying import Results, tried

_FOLDER = CACHE / "mutants"
_LEFT_OUT = shutil.ignore_patterns(".*cache", ".git", ".hypothesis", ".venv", "*.egg-info", "build", "dist")
_ENOUGH = 0.9
_SEED = 23
"""The one whose survivors have reasons."""
_TRANSFORMERS = ("transformers.modeling_utils", "transformers.modeling_layers", "transformers.masking_utils")
_RUN_MODELS = ("-m", "not nightly and not slow and not releases and not wheel and not precommit and not ray")


@click.command()
@click.option("--number", default=300, show_default=True, help="How many mutants.")
@click.option("--seed", default=_SEED, show_default=True)
@click.option("--only", default="", help="Mutants whose file and function contain this.")
@click.option("--seconds", default=40.0, show_default=True, help="How long the tests of one mutant may take.")
@click.option("--jobs", default=2, show_default=True)
@click.option("--again", is_flag=True, help="The copy of the last time, with what was recorded in it.")
def main(number: int, seed: int, only: str, seconds: float, jobs: int, again: bool) -> None:
    """Draw, run and print."""
    suites = (
        Suite("quick", is_of_worker=False, arguments=()),
        Suite(
            "torch",
            is_of_worker=True,
            arguments=(*_RUN_MODELS, "tests/decisions", "tests/verify"),
            modules=("torch", *_TRANSFORMERS),
        ),
    )
    place = _FOLDER / "0"
    if not again:
        shutil.rmtree(_FOLDER, ignore_errors=True)
        _copy(PROJECT, place)
    mutants = [each for each in draw(place, number, seed) if only in f"{each.key.file}:{each.key.function}"]
    work = {
        suite: [each for each in mutants if (room(each.key.file) == WORKER) == suite.is_of_worker]
        for suite in suites
    }
    needed = [suite for suite in suites if work[suite]]
    try:
        _record([suite for suite in needed if not suite.is_recorded(_FOLDER)], place)
    except RecordingFailed as error:
        sys.exit(str(error))
    reach = Reach(needed, place, _FOLDER)
    places = [place, *(_copy(place, _FOLDER / str(job)) for job in range(1, jobs))]
    results: Results = {}
    for suite in needed:
        results |= tried(work[suite], reach, places, seconds, suite.modules)
    sys.exit(_report(results, is_whole=not only and seed == _SEED))


def _record(suites: Sequence[Suite], place: Path) -> None:
    for suite in suites:
        click.echo(f"recording which tests execute which lines: {_FOLDER / suite.name}.log")
    for started in [suite.record(place, _FOLDER) for suite in suites]:
        started.wait()
    for suite in suites:
        suite.combine(_FOLDER)


def _copy(project: Path, place: Path) -> Path:
    """Copy the project to a place where Python imports it from."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(project, place, symlinks=True, ignore=_LEFT_OUT)
    place.joinpath(".cache").symlink_to(CACHE)
    if project == PROJECT:
        place.joinpath("gclint", "rules").symlink_to(Path("..", "rules"))
    return place


def _report(results: Results, *, is_whole: bool) -> int:
    """Print what lives and the sums of each area; return the exit status."""
    known = reasons(FILE.read_text(encoding="utf-8"))
    alive = [each for each, outcome in results.items() if not outcome.is_killed]
    new = [each for each in alive if each.key not in known]
    for mutant in new:
        click.echo(f"\n# line {mutant.lines.start}; {results[mutant].by}\n{entry(mutant.key)}", nl=False)
    gone = [key for key in known if is_whole and key not in {each.key for each in alive}]
    for key in gone:
        click.echo(f"\nno longer drawn, or killed by now: {key.file} {key.function}: {key.line}")
    click.echo()
    for place in sorted({room(each.key.file) for each in results}):
        own = [out.is_killed for each, out in results.items() if room(each.key.file) == place]
        click.echo(f"{place}: {sum(own)} of {len(own)} killed")
    share = 1 - len(alive) / max(len(results), 1)
    click.echo(
        f"{share:.1%} of {len(results)} killed; {len(alive)} alive, {len(new)} of them without a reason"
    )
    return int(share < _ENOUGH or (is_whole and bool(new or gone)))


if __name__ == "__main__":
    main()
