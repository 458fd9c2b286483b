"""What is known of a place, in words, each with where it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gclint.finding import Step
from gclint.network.evaluation.classes import ClassInfo


@dataclass(frozen=True)
class Fact:
    """A sentence or clause, where it can be read, and what belongs to it."""

    text: str
    place: tuple[Path, int] | None = None
    """A file and an offset in its text."""
    inner: tuple[Fact, ...] = ()
    data: Mapping[str, object] = field(default_factory=dict)
    """The same for programs, where a sentence is not enough."""

    @classmethod
    def of(cls, step: Step) -> Fact:
        """Return a step of a story as a fact."""
        return cls(step.message, (step.path, step.start))


@dataclass(frozen=True)
class Section:
    """The facts about one side of a place."""

    name: str
    """For programs, such as ``bases``."""
    title: str
    facts: tuple[Fact, ...]


def class_place(info: ClassInfo) -> tuple[Path, int]:
    """Return where a class begins."""
    return info.file.path, info.definition.header
