"""What stands on the page, in words and numbers: no HTML, and nothing that has to be looked up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

State = Literal["works", "partly", "fails", "not run", "none"]
"""What a cell says; ``partly`` works in one mode, and ``none`` stands where there is nothing to run."""

Outcome = Literal["passed", "failed", "repaired", "not run"]
"""What a row says; ``repaired`` failed before a repair that a run has proven."""

OUTCOMES: tuple[Outcome, ...] = ("failed", "repaired", "not run", "passed")
"""All of them, the most urgent first."""


STANDARD = "scenarios"
"""The heading above the columns of the verifier's own scenarios."""


@dataclass(frozen=True)
class Origin:
    """What a page is made by."""

    command: str
    """As it was typed."""
    made: datetime
    repeat: str = "gclint verify"
    """The command that runs files in the same way, without the files."""

    @property
    def moment(self) -> str:
        """When it was made, for people."""
        return self.made.strftime("%Y-%m-%d %H:%M %Z").strip()


@dataclass(frozen=True)
class Fact:
    """A name and what there is to know under it."""

    name: str
    value: str


@dataclass(frozen=True)
class Column:
    """A way to train that classes were run in."""

    key: str
    group: str
    """The heading that it stands under."""
    title: str
    detail: str = ""
    """The data, where the same setting is run with several."""

    @property
    def name(self) -> str:
        """What it is called within its group."""
        return f"{self.title}, {self.detail}" if self.detail else self.title


@dataclass(frozen=True)
class Cell:
    """What came of one class in one column."""

    state: State
    text: str = ""
    """What stands in it: a sign, or the letters of the modes that fail."""
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
    """A place in a source, with what is written there."""

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

    said: str
    more: tuple[str, ...] = ()
    """What failed."""


@dataclass(frozen=True)
class Repair:
    """A change of the source, and what runs say about it."""

    title: str
    outcome: Literal["proven", "refused", "suggested"]
    said: str
    """What became of it, in a line."""
    reasons: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    diff: tuple[DiffLine, ...] = ()
    command: str = ""
    """What makes it, where it is not made yet."""


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
    """Where the forward pass and its recomputation part."""
    operation: str = ""
    """What was done there."""


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
    said: str


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
    """What steps of one mode cost."""

    mode: str
    saved: str
    share: float
    """Of what is saved without checkpointing."""
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
    """Set-ups of which the same is to be said."""

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
    """Whether there is one to use."""
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
    """What its address ends with."""
    name: str
    model: str
    outcome: Outcome
    kinds: tuple[str, ...]
    """What is wrong with it, in kinds to filter by."""
    blocks: str
    """How many are recomputed, and of how many."""
    share: float | None
    """What is saved for backward with checkpointing, as a part of what is without."""
    saved: str
    """The same in bytes."""
    cells: tuple[Cell, ...]
    detail: Detail
    text: str
    """What a search looks through."""


@dataclass(frozen=True)
class Chart:
    """A picture, and what it shows in words."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Table:
    """Numbers by rows."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The first of each says what the others are about."""
    note: str = ""


@dataclass(frozen=True)
class Depth:
    """What has been saved for the backward pass when a block has run."""

    mode: str
    block: int
    """Its number in the order of the run, from 1."""
    size: int
    said: str


@dataclass(frozen=True)
class Trade:
    """What an option saves, and what it costs."""

    name: str
    more: float
    """Further FLOPs, as a part of those without checkpointing."""
    size: int
    said: str


@dataclass(frozen=True)
class Page:
    """All of it."""

    title: str
    facts: tuple[Fact, ...]
    lead: str = ""
    """What comes of it all, in a sentence."""
    problems: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    repairs: tuple[Repair, ...] = ()
    findings: tuple[Excerpt, ...] = ()
    remarks: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    depths: tuple[Depth, ...] = ()
    trades: tuple[Trade, ...] = ()

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """The headings above columns, each with the number of columns under it."""
        counts: dict[str, int] = {}
        for column in self.columns:
            counts[column.group] = counts.get(column.group, 0) + 1
        return tuple(counts.items())

    @property
    def kinds(self) -> tuple[tuple[str, int], ...]:
        """What is wrong with classes, the most frequent first."""
        counts: dict[str, int] = {}
        for row in self.rows:
            for kind in row.kinds:
                counts[kind] = counts.get(kind, 0) + 1
        return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0])))

    @property
    def outcomes(self) -> tuple[tuple[Outcome, int], ...]:
        """How many rows say what; nothing that none says."""
        counts = {each: sum(row.outcome == each for row in self.rows) for each in OUTCOMES}
        return tuple((outcome, count) for outcome, count in counts.items() if count)
