"""Models on which a safe fix breaks a promise, as small as they can be, one of each kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from tests.contract.packages import package
from tests.contract.verdicts import Verdict, minimised


@dataclass(frozen=True)
class Counterexample:
    """A smallest model of its kind."""

    verdict: Verdict
    occurrences: int
    """How many of the models that were drawn have all its features, and break a promise that it breaks."""

    def __str__(self) -> str:
        lines = [f"{self.verdict.shape}  [{self.verdict.release}, {self.occurrences} models]"]
        shown: dict[tuple[int, str], list[str]] = {}
        for promise, place, how in self.verdict.broken:
            shown.setdefault((promise, how), []).append(place)
        for (promise, how), places in shown.items():
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            lines.append(f"    promise {promise}: {places[0]}{more}: {how}")
        return "\n".join(lines)


def counterexamples(verdicts: Sequence[Verdict], pool: Executor, jobs: int) -> Iterator[Counterexample]:
    """Yield the kinds of broken promises, each with its smallest model."""
    broken = sorted((each for each in verdicts if each.broken), key=lambda each: len(each.shape.special))
    smallest: list[Verdict] = []
    waiting = broken
    while waiting:
        waiting = [each for each in waiting if not any(_explains(one, each) for one in smallest)]
        for verdict in pool.map(minimised, waiting[:jobs]):
            if not any(_explains(one, verdict) for one in smallest):
                smallest.append(verdict)
                yield Counterexample(verdict, sum(_explains(verdict, each) for each in broken))
        waiting = waiting[jobs:]


def _explains(smaller: Verdict, larger: Verdict) -> bool:
    """Tell whether a model breaks no other promise than one that has fewer features."""
    return smaller.shape.special.items() <= larger.shape.special.items() and bool(
        smaller.promises & larger.promises
    )


def write(each: Counterexample, number: int, folder: Path) -> None:
    """Write a counterexample into a folder of its own, and a line into the index of all."""
    special = each.verdict.shape.special
    name = f"{number:02}_" + re.sub(r"\W+", "_", "_".join(special.values()) or "simplest")[:60]
    for file, text in package(each.verdict.shape).files.items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / name / "README").write_text(f"{each}\n", encoding="utf-8")
    with (folder / "INDEX.md").open("a", encoding="utf-8") as index:
        index.write(f"{name}: {each}\n\n")
