"""Facts about a place in the code, as text with the places that show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gclint.finding import StoryStep
from gclint.network.evaluation.classes import ClassInfo


@dataclass(frozen=True)
class Fact:
    """A sentence or clause, the place that shows it, and facts that belong to it."""

    text: str
    place: tuple[Path, int] | None = None
    """A file and an offset in its text."""
    inner: tuple[Fact, ...] = ()
    data: Mapping[str, object] = field(default_factory=dict)
    """The same as fields for JSON, if programs need more than the sentence."""

    @classmethod
    def of(cls, step: StoryStep) -> Fact:
        """Return a step of a story as a fact."""
        return cls(step.message, (step.path, step.start))


@dataclass(frozen=True)
class Section:
    """The facts about one aspect of a place."""

    name: str
    """The key in JSON, such as ``bases``."""
    title: str
    facts: tuple[Fact, ...]


def class_place(info: ClassInfo) -> tuple[Path, int]:
    """Return the file of a class and the offset of its header."""
    return info.file.path, info.definition.header
