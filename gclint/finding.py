"""Findings of rules, with their fixes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from gclint.level import Level

RESERVED = "GC"
"""The codes of gclint's own rules begin with this, and no others do."""
_OWN_CODE = re.compile(r"[A-Z]{2,}[0-9]{3}")


def is_own_code(code: str) -> bool:
    """Return whether a code has the form of those of rules that are not part of gclint."""
    return _OWN_CODE.fullmatch(code) is not None and not code.startswith((RESERVED, "ALL"))


class Applicability(Enum):
    """Whether a fix can be made without a review."""

    SAFE = "safe"
    """Without checkpointing, behaviour is unchanged; with checkpointing, it is correct."""
    PROVABLE = "when proven"
    """It depends on what only a run can show, and is made only if a run proves it."""
    UNSAFE = "unsafe"
    """It needs a review, and is made only with ``--unsafe-fixes``."""

    def joined(self, other: Applicability) -> Applicability:
        """Return the applicability of two fixes that are made together: the less safe one."""
        order = [*Applicability]
        return max(self, other, key=order.index)


class Evidence(Enum):
    """What runs of the model say about a finding."""

    CONFIRMED = "confirmed by run"
    """The damage that its message names was seen: this gradient lost, this error raised."""
    UNSEEN = "run, but the damage was not seen"
    """The code that it is about did what it says, and nothing came of it in the runs."""
    CONTRADICTED = "contradicted by run"
    NOT_RUN = "not run"
    """No run came to the code that it is about."""


@dataclass(frozen=True, order=True)
class Edit:
    """Replace ``[start, end)`` of a file's text by ``content``; offsets count characters."""

    path: Path
    start: int
    end: int
    content: str


class RepairKind(Enum):
    """The kind of a piece of code that a fix repairs."""

    BLOCK = "block"
    CALL = "call site"
    BRANCH = "legacy branch"

    @property
    def plural(self) -> str:
        """The plural of the name."""
        return "legacy branches" if self is RepairKind.BRANCH else f"{self.value}s"


@dataclass(frozen=True)
class Repair:
    """A piece of code that a fix repairs, at ``[start, end)`` in the text of the file at ``path``."""

    part: RepairKind
    path: Path
    start: int
    end: int
    what: str = field(default="", compare=False)
    """What is done to it, such as "pass `x` by keyword"; empty where that goes without saying."""


@dataclass(frozen=True, order=True)
class Duty:
    """Something that must be done by hand after a fix."""

    path: Path
    """The file that it is about, which is not among the given ones."""
    text: str
    """A clause such as "modeling_x.py has to be regenerated"."""


@dataclass(frozen=True)
class Fix:
    """Edits that are made together or not at all."""

    message: str
    edits: tuple[Edit, ...]
    applicability: Applicability = Applicability.SAFE
    reason: str | None = None
    """Why the fix is not safe; None if and only if it is safe."""
    repairs: tuple[Repair, ...] = ()
    """The pieces of code that the edits repair; several fixes may have some in common."""
    duties: tuple[Duty, ...] = ()
    """What is left to do after the edits."""
    undecided: tuple[str, ...] = ()
    """Those of the reasons that no run takes away, since they may do harm in a step like no other."""

    def __post_init__(self) -> None:
        if (self.applicability is Applicability.SAFE) != (self.reason is None):
            raise ValueError("a fix must have a reason if and only if it is not safe")


@dataclass(frozen=True)
class Refusal:
    """Why there is no fix: a clause to follow "no fix: "."""

    reason: str


@dataclass(frozen=True)
class InheritedDefect:
    """The same defect in another file: a generated copy of the class or call, or a call of the class."""

    path: Path
    symbol: str
    defines: bool = True
    """Whether the file contains a copy of the class or call itself."""


@dataclass(frozen=True)
class StoryStep:
    """A step of a finding's story, at ``[start, end)`` in the text of the file at ``path``."""

    path: Path
    start: int
    end: int
    message: str
    """A clause about what is or happens there, such as "`self.layers` holds `Block`"."""


@dataclass(frozen=True)
class Finding:
    """One defect, at ``[start, end)`` in the text of the file at ``path`` (offsets in characters)."""

    code: str
    name: str
    message: str
    path: Path
    start: int
    end: int
    symbol: str
    remedy: Fix | Refusal
    """The fix, or the reason why there is none."""
    class_elsewhere: tuple[Path, int, int] | None = None
    """The file, start and end of the class that it is about, if that is defined in another file."""
    inherited_by: tuple[InheritedDefect, ...] = ()
    """The same defect in files that are generated from this one."""
    evidence: Evidence | None = None
    """Whether a run confirms or contradicts it; None if no run does."""
    level: Level = Level.ERROR
    formerly: tuple[str, ...] = ()
    """The codes under which earlier releases of gclint had it."""
    awaits: tuple[Path, int, int] | None = None
    """The class, by file, start and end, that has to become a checkpointing layer before this is a defect.

    The fix of the class sees to this as well, so it is not reported. None if it is a defect today.
    """
    story: tuple[StoryStep, ...] = field(default=(), compare=False)
    """The steps that explain it: the stack, what fills it, the call, where a gradient comes from."""

    @property
    def fix(self) -> Fix | None:
        """The fix, if there is one."""
        return self.remedy if isinstance(self.remedy, Fix) else None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of the fix; empty if there is none."""
        return self.remedy.edits if isinstance(self.remedy, Fix) else ()

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that users may know it by."""
        return (self.code, *self.formerly)

    @property
    def kind(self) -> str:
        """What is the same for all rules that look for one defect: the code that they had in common."""
        return self.codes[-1]

    def is_part_of(self, other: Finding) -> bool:
        """Return whether all code that the fix repairs is also, and not only, repaired by that of another."""
        own, others = (set(each.fix.repairs) if each.fix else set() for each in (self, other))
        return bool(own) and own < others

    def refused(self, reason: str) -> Finding:
        """Return this finding with a reason why it is not repaired, instead of a fix."""
        return replace(self, remedy=Refusal(reason))


def in_reading_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings sorted by file and place."""

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
    """Something that kept a file from being checked or written; it is reported to the user, never raised."""

    path: Path
    message: str
    position: Position | None = None
