"""Releases of transformers, repaired as a user does it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.ecosystem.releases import copy_of_release
from tests.ecosystem.reported import MODELS, Reported, run_gclint

RELEASES = ("4.52.4", "4.57.6", "5.23.0")


@dataclass(frozen=True)
class Repaired:
    """A release before and after ``--fix``, and after doing that again."""

    before: Path
    after: Path
    changed: tuple[str, ...]
    """What the first run changed, below the models."""
    changed_again: tuple[str, ...]
    left: tuple[Reported, ...]
    left_again: tuple[Reported, ...]


def repair(version: str, tree: Path, workplace: Path, *options: str) -> Repaired:
    """Repair a copy of the release in ``tree`` twice, below ``workplace``."""
    copy = copy_of_release(version, workplace).parent
    first = _texts(copy / MODELS)
    left = run_gclint(copy, "--fix", *options)
    second = _texts(copy / MODELS)
    left_again = run_gclint(copy, "--fix", *options)
    third = _texts(copy / MODELS)
    return Repaired(
        tree / MODELS,
        copy / MODELS,
        tuple(name for name in first if first[name] != second.get(name)),
        tuple(name for name in second if second[name] != third.get(name)),
        left,
        left_again,
    )


def _texts(models: Path) -> dict[str, bytes]:
    return {path.relative_to(models).as_posix(): path.read_bytes() for path in models.rglob("*.py")}
