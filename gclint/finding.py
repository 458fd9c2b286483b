"""What a rule says about a file, and how it would repair it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path


class Applicability(Enum):
    """Whether a fix may be applied unattended."""

    SAFE = "safe"
    """Behaviour without checkpointing is unchanged, and with it becomes right."""
    PROVABLE = "when proven"
    """It rests on what a run saw and the text does not say; applied where a run proves it."""
    UNSAFE = "unsafe"
    """Someone must look; applied only with ``--unsafe-fixes``."""

    def joined(self, other: Applicability) -> Applicability:
        """Return what holds for two fixes that are made together: what the more doubtful one asks for."""
        order = [*Applicability]
        return max(self, other, key=order.index)


class Evidence(Enum):
    """What training the model for a moment says about a finding."""

    CONFIRMED = "confirmed by run"
    CONTRADICTED = "contradicted by run"


@dataclass(frozen=True, order=True)
class Edit:
    """Replace ``[start, end)`` of a file's text by ``content``; offsets count characters."""

    path: Path
    start: int
    end: int
    content: str


class Part(Enum):
    """What a piece of code is that a fix puts right."""

    BLOCK = "block"
    CALL = "call site"
    BRANCH = "legacy branch"

    @property
    def plural(self) -> str:
        """The word for several."""
        return "legacy branches" if self is Part.BRANCH else f"{self.value}s"


@dataclass(frozen=True)
class Repair:
    """A piece of code that a fix puts right, at ``[start, end)`` of the text of the file at ``path``."""

    part: Part
    path: Path
    start: int
    end: int


@dataclass(frozen=True, order=True)
class Duty:
    """Something that is left to do by hand once a fix is made."""

    path: Path
    """The file that it is about, which is not among the given ones."""
    text: str
    """In words, such as "modeling_x.py has to be generated anew"."""


@dataclass(frozen=True)
class Fix:
    """Edits that belong together: all of them are made, or none."""

    message: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE
    reason: str | None = None
    """Why the fix is not safe; given for every other one."""
    repairs: tuple[Repair, ...] = ()
    """What the edits put right; fixes of several findings may share some of it."""
    duties: tuple[Duty, ...] = ()
    """What the edits leave to do."""

    def __post_init__(self) -> None:
        if (self.applicability is Applicability.SAFE) != (self.reason is None):
            raise ValueError("a fix says why it is not safe if it is not, and only then")


@dataclass(frozen=True)
class Refusal:
    """Why there is no fix, in words that follow "no fix: "."""

    reason: str


@dataclass(frozen=True)
class Heir:
    """What another file makes of the class or call that a finding is about: one like it, or a run of it."""

    path: Path
    symbol: str
    defines: bool = True
    """Whether the file has a class or call of its own for it."""


@dataclass(frozen=True)
class Step:
    """A place that a finding's story comes by, at ``[start, end)`` of the text of the file at ``path``."""

    path: Path
    start: int
    end: int
    message: str
    """What is there, or happens there, as a clause of its own: "`self.layers` holds `Block`"."""


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
    remedy: Fix | Refusal
    """How it is repaired, or why it is not."""
    subject: tuple[Path, int, int] | None = None
    """Where the class is written that it is about, if that is another file."""
    heirs: tuple[Heir, ...] = ()
    """The same defect in files that are generated from this one."""
    evidence: Evidence | None = None
    """What a run says about it; None where there was no run, or it says nothing."""
    story: tuple[Step, ...] = field(default=(), compare=False)
    """Why it is one, step by step: the stack, what fills it, the call, where a gradient comes from."""

    @property
    def fix(self) -> Fix | None:
        """The fix, where the remedy is one."""
        return self.remedy if isinstance(self.remedy, Fix) else None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of the fix; none where there is no fix."""
        return self.remedy.edits if isinstance(self.remedy, Fix) else ()

    def refused(self, reason: str) -> Finding:
        """Return this finding with a reason why it is not repaired in place of a fix."""
        return replace(self, remedy=Refusal(reason))


def in_reading_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by file and place."""

    def place(finding: Finding) -> tuple[str, int, int, str, str]:
        return str(finding.path), finding.start, finding.end, finding.code, finding.message

    return tuple(sorted(findings, key=place))


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
