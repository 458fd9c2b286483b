"""The content of the page in words and numbers: no HTML, and nothing that has to be looked up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

State = Literal["works", "partly", "fails", "not run", "none"]
"""The state of a cell; ``partly`` works in one mode, and ``none`` does not apply."""

Outcome = Literal["passed", "failed", "repaired", "not run"]
"""The outcome of a row; ``repaired`` failed before a repair that a run has proven."""

OUTCOMES: tuple[Outcome, ...] = ("failed", "repaired", "not run", "passed")
"""All outcomes, the most urgent first."""


STANDARD = "scenarios"
"""The heading above the columns of the scenarios."""


@dataclass(frozen=True)
class Origin:
    """How a page was made."""

    command: str
    """The command as it was typed."""
    made: datetime
    repeat: str = "gclint verify"
    """The command that runs files in the same way, without the files."""

    @property
    def moment(self) -> str:
        """The time at which it was made, as text."""
        return self.made.strftime("%Y-%m-%d %H:%M %Z").strip()


@dataclass(frozen=True)
class Fact:
    """A name and its value."""

    name: str
    value: str


@dataclass(frozen=True)
class Column:
    """A way to train that classes were run in."""

    key: str
    group: str
    """The heading above it."""
    title: str
    detail: str = ""
    """The data, if the same setting is run with several."""

    @property
    def name(self) -> str:
        """Its name within the group."""
        return f"{self.title}, {self.detail}" if self.detail else self.title


@dataclass(frozen=True)
class Cell:
    """The result of one class in one column."""

    state: State
    text: str = ""
    """A sign, or the letters of the modes that fail."""
    label: str = ""
    """The same in words."""


@dataclass(frozen=True)
class Line:
    """A line of source code."""

    number: int
    text: str
    is_meant: bool


@dataclass(frozen=True)
class Excerpt:
    """A place in a source, with its lines."""

    place: str
    lines: tuple[Line, ...] = ()
    missing: str = ""
    """Why there are no lines."""


@dataclass(frozen=True)
class DiffLine:
    """A line of a unified diff."""

    kind: Literal["file", "hunk", "added", "removed", "same"]
    text: str


@dataclass(frozen=True)
class Run:
    """What a class did before a repair, and does after it."""

    summary: str
    more: tuple[str, ...] = ()
    """What failed."""


@dataclass(frozen=True)
class Repair:
    """A change of the source, and the verdict of runs."""

    title: str
    outcome: Literal["proven", "refused", "suggested"]
    summary: str
    """Its outcome, in a line."""
    reasons: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    diff: tuple[DiffLine, ...] = ()
    command: str = ""
    """The command that makes it, if it has not been made."""


@dataclass(frozen=True)
class Story:
    """Failures of one class that have one cause."""

    title: str
    message: str
    explanation: str
    conditions: tuple[str, ...]
    """The modes and scenarios."""
    parameters: tuple[str, ...]
    sites: tuple[Excerpt, ...]
    difference: tuple[Excerpt, ...]
    """Where the forward pass and its recomputation first differ."""
    operation: str = ""
    """The operation there."""


@dataclass(frozen=True)
class Block:
    """One block of a stack."""

    name: str
    state: State
    label: str


@dataclass(frozen=True)
class Stack:
    """Blocks that run one after the other."""

    name: str
    blocks: tuple[Block, ...]
    summary: str


@dataclass(frozen=True)
class Site:
    """A call that runs blocks."""

    place: str
    block: str
    calls: int
    recomputed: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Measure:
    """The cost of steps in one mode."""

    mode: str
    saved: str
    share: float
    """The share of what is saved without checkpointing."""
    seconds: str
    peak: str


@dataclass(frozen=True)
class Trial:
    """One scenario, in words."""

    name: str
    cells: tuple[Cell, ...]
    """One for each mode."""
    saved: tuple[str, ...]
    """The bytes saved for backward, by mode."""


@dataclass(frozen=True)
class Fate:
    """Set-ups with the same outcome."""

    state: State
    title: str
    message: str
    setups: tuple[Fact, ...]
    """Their names, with the blocks that were recomputed."""
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class SetUpGroup:
    """The set-ups of one kind, and which of them to use."""

    name: str
    advice: str
    has_way: bool
    """Whether one of them works."""
    fates: tuple[Fate, ...]


@dataclass(frozen=True)
class Detail:
    """Everything about one class."""

    path: str
    reason: str = ""
    """Why it was not run."""
    setting: str = ""
    """The setting that is proven to work."""
    stories: tuple[Story, ...] = ()
    earlier: tuple[Story, ...] = ()
    """What failed before the repair."""
    repairs: tuple[Repair, ...] = ()
    stacks: tuple[Stack, ...] = ()
    sites: tuple[Site, ...] = ()
    measures: tuple[Measure, ...] = ()
    trials: tuple[Trial, ...] = ()
    setups: tuple[SetUpGroup, ...] = ()
    remarks: tuple[Fact, ...] = ()
    commands: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Row:
    """A model class."""

    key: str
    """The fragment of its address."""
    name: str
    model: str
    outcome: Outcome
    kinds: tuple[str, ...]
    """The kinds of its failures, to filter by."""
    blocks: str
    """How many are recomputed, and of how many."""
    share: float | None
    """What is saved for backward with checkpointing, as a share of what is saved without."""
    saved: str
    """The same in bytes."""
    cells: tuple[Cell, ...]
    detail: Detail
    text: str
    """The text that a search looks through."""


@dataclass(frozen=True)
class Page:
    """The whole page."""

    title: str
    facts: tuple[Fact, ...]
    lead: str = ""
    """The overall result, in a sentence."""
    problems: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    repairs: tuple[Repair, ...] = ()
    findings: tuple[Excerpt, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """The headings above columns, each with the number of columns under it."""
        return tuple(Counter(column.group for column in self.columns).items())

    @property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """The kinds of failures, the most frequent first."""
        counts = Counter(kind for row in self.rows for kind in row.kinds)
        return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0])))

    @property
    def outcomes(self) -> tuple[tuple[Outcome, int], ...]:
        """The outcomes that occur, with the number of rows."""
        counts = Counter(row.outcome for row in self.rows)
        return tuple((each, counts[each]) for each in OUTCOMES if counts[each])
