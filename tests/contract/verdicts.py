"""The verdict on one generated model: was it repaired, and does the repair keep the promises?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contract.grammar import Shape
from tests.contract.packages import package
from tests.contract.releases import RELEASES, worker
from tests.contract.repair import Repaired, repair, takes_target
from tests.contract.repairable import is_repairable
from tests.contract.simplification import simpler

Broken = tuple[int, str, str]
"""A promise, where it is broken, and how."""


@dataclass(frozen=True)
class Verdict:
    """What came of a model under one release."""

    shape: Shape
    release: str
    is_fixed: bool
    """Whether a safe fix was made."""
    is_repairable: bool
    findings: tuple[str, ...]
    broken: tuple[Broken, ...]
    invalid: str | None = None
    """Why the model itself cannot be trained, if so: then the generator is wrong."""

    @property
    def promises(self) -> frozenset[int]:
        """The promises that are broken."""
        return frozenset(promise for promise, _, _ in self.broken)


def judge(shape: Shape, releases: Iterable[str] = RELEASES, place: str | None = None) -> list[Verdict]:
    """Repair a model and train it, under each release.

    Args:
        shape: the model's.
        releases: those to train it under.
        place: the only scenario and way to look at, besides what it is compared with.
    """
    verdicts = []
    written = package(shape) if place is None else package(shape).only(place)
    repaired: Repaired | None = None
    for release in releases:
        with tempfile.TemporaryDirectory(prefix="contract-") as name:
            folder = Path(name)
            # The same for each release, as long as gclint cannot be told which one it is.
            if repaired is None or takes_target():
                repaired = repair(written.files, folder / "repaired", release)
            is_fixed = repaired.files != written.files
            answer: dict[str, Any] = {"broken": []}
            if is_fixed:
                for package_name, files in (("before", written.files), ("after", repaired.files)):
                    (folder / package_name).mkdir()
                    for file, text in files.items():
                        (folder / package_name / file).write_text(text, encoding="utf-8")
                answer = worker(release).train(folder, written.under(release))
        broken = tuple((int(promise), place, how) for promise, place, how in answer.get("broken", ()))
        verdicts.append(
            Verdict(
                shape,
                release,
                is_fixed,
                is_repairable(shape, release),
                repaired.findings,
                broken,
                answer.get("invalid"),
            )
        )
    return verdicts


def minimised(verdict: Verdict) -> Verdict:
    """Return the verdict on a model with as few features as still break one of the same promises."""
    smallest = verdict
    promise, place, _ = min(verdict.broken)
    tried = {verdict.shape}
    while True:
        for shape in simpler(smallest.shape):
            if shape in tried:
                continue
            tried.add(shape)
            other = judge(shape, [verdict.release], place)[0]
            if promise in other.promises:
                smallest = other
                break
        else:
            return judge(smallest.shape, [verdict.release])[0]
