"""What a rule says about a file, and how it would repair it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Applicability(Enum):
    """Whether a fix may be applied unattended."""

    SAFE = "safe"
    """Behaviour without checkpointing is unchanged, and with it becomes right."""
    UNSAFE = "unsafe"
    """Someone must look; applied only with ``--unsafe-fixes``."""


@dataclass(frozen=True, order=True)
class Edit:
    """Replace ``[start, end)`` of a file's text by ``content``; offsets count characters."""

    path: Path
    start: int
    end: int
    content: str


@dataclass(frozen=True)
class Fix:
    """Edits that belong together: all of them are made, or none."""

    message: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE
    reason: str | None = None
    """Why the fix is not safe; always given for an unsafe one."""


@dataclass(frozen=True)
class Heir:
    """What a generated file makes of the class or call that a finding is about."""

    path: Path
    symbol: str


@dataclass(frozen=True)
class Finding:
    """One defect, at ``[start, end)`` of the text of the file at ``path`` (character offsets)."""

    code: str
    name: str
    message: str
    path: Path
    start: int
    end: int
    symbol: str
    fix: Fix | None = None
    reason: str | None = None
    """Why there is no fix at all, where there is none."""
    subject: tuple[Path, int, int] | None = None
    """Where the class is written that it is about, if that is another file."""
    heirs: tuple[Heir, ...] = ()
    """The same defect in files that are generated from this one."""


@dataclass(frozen=True)
class Position:
    """A place in a text: ``row`` and ``column`` count from 1, columns in characters."""

    row: int
    column: int


@dataclass(frozen=True)
class Problem:
    """Something that kept a file from being checked or written; told to the user, never raised."""

    path: Path
    message: str
    position: Position | None = None
