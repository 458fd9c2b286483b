"""Defects planted in models of a release: ``python3 -m tests.verify.mutations``.

Changes a line in each of some models, drawn with a seed, runs them, and prints how many of the defects are
caught, how many with the right explanation, and which right changes raise an alarm.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from gclint.verify.run import verify
from gclint.verify.settings import RunSettings
from gclint.verify.sources import target_of
from gclint.verify.worker.protocol import ClassResult
from tests.environment import PROJECT
from tests.verify.mutations.drawing import Mutation, draw, passing_classes
from tests.verify.mutations.kinds import DEFECTS, RIGHT, UNKNOWN

_RELEASE = "5.23.0"
_SNAPSHOT = PROJECT / "tests" / "ecosystem" / "snapshots" / f"verified-{_RELEASE}.txt"
_FIND = "import transformers, os; print(os.path.dirname(transformers.__file__))"


@click.command()
@click.option("--each", default=2, show_default=True, help="How many models get each defect.")
@click.option("--right", default=2, show_default=True, help="How many get each change that is right.")
@click.option("--seed", default=0, show_default=True)
@click.option("--only", default="", help="Kinds whose names contain this.")
@click.option("--jobs", default=2, show_default=True)
def main(each: int, right: int, seed: int, only: str, jobs: int) -> None:
    """Draw, run and print."""
    import subprocess

    python = Path(sys.executable)
    folder = subprocess.run([python, "-c", _FIND], capture_output=True, text=True, check=True).stdout.strip()
    models = Path(folder, "models")
    passing = passing_classes(_SNAPSHOT)
    mutations = draw([kind for kind in DEFECTS if only in kind.name], models, passing, each, seed)
    used = {str(mutation.path.relative_to(models)) for mutation in mutations}
    left = {name: classes for name, classes in passing.items() if name not in used}
    mutations += draw([kind for kind in RIGHT if only in kind.name], models, left, right, seed)
    targets = []
    for mutation in mutations:
        target = target_of(mutation.path)
        targets.append(replace(target, source=replace(target.source, only=(mutation.model_class,))))
    texts = {mutation.path: mutation.text for mutation in mutations}
    results = verify(targets, RunSettings(python, device="cpu", jobs=jobs), texts=texts)
    if results.problem:
        sys.exit(results.problem)
    found = {Path(source): result for (source, _), result in results.classes.items()}
    print_table(mutations, found)


def print_table(mutations: list[Mutation], found: dict[Path, ClassResult]) -> None:
    """Print a line for each mutation, and the sums."""
    sums = {"explained": 0, "caught": 0, "missed": 0, "alarm": 0, "silent": 0}
    for mutation in mutations:
        result = found.get(mutation.path)
        verdict = _verdict(mutation, result)
        sums[verdict] += 1
        said = (
            "nothing"
            if result is None
            else result.reason
            or "; ".join(
                f"{each.cause.value if each.cause else UNKNOWN} ({each.mode}, {each.scenario}): {each.text}"
                for each in result.failures
            )
        )
        outcome = result.outcome if result else "?"
        where = f"{mutation.path.parent.name} {mutation.model_class}"
        print(f"{verdict}: {mutation.kind.name}: {where}: {outcome}: {said[:600]}")
    print(sums)


def _verdict(mutation: Mutation, result: ClassResult | None) -> str:
    kind = mutation.kind
    if kind.outcome == "passed":
        return "silent" if result is not None and result.outcome == "passed" else "alarm"
    if result is None or result.outcome != kind.outcome:
        return "caught" if result is not None and result.outcome != "passed" else "missed"
    if kind.outcome == "not run":
        return "explained" if kind.words in f"{result.reason} {result.category}" else "caught"
    right = any(
        (each.cause.value if each.cause else UNKNOWN) in kind.causes and kind.words in each.text
        for each in result.failures
    )
    return "explained" if right else "caught"


if __name__ == "__main__":
    main()
