"""A trace of what a run reads of the disk, by which a later run tells whether it would read the same.

Each look at the disk is a fact: a question (its kind, a path, and sometimes a detail), and the answer as a
short text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

Signature = tuple[int, int, int, int]
"""A file's size, times of writing and of change, and number: what no write leaves as it was."""


class Fact(NamedTuple):
    """A question to the disk."""

    kind: str
    path: str
    detail: str = ""


class Trace:
    """What was asked, and what the answers were."""

    def __init__(self) -> None:
        self.answers: dict[Fact, str] = {}
        self.signatures: dict[str, Signature] = {}
        """Those of the files that were read, where their times may speak for them later."""
        self.phases: dict[Fact, str] = {}
        """What a fact was asked for first; the rest is of the lint itself."""
        self.layout_free: dict[str, str] = {}
        """What stands for Python files but for their layout, where verdicts may depend on them."""
        self.shown: frozenset[str] | None = None
        """The files whose layout may show in what is printed; None where any may."""
        self._fresh: list[Fact] = []
        self.is_torn = False
        """Whether something changed while it was looked at, so that nothing can be said of the run."""

    def note(self, fact: Fact, answer: str) -> None:
        """Remember an answer."""
        if fact not in self.answers:
            self.answers[fact] = answer
            self._fresh.append(fact)
            if _phase:
                self.phases[fact] = _phase
            return
        if self.answers[fact] != answer:
            self.is_torn = True
        before = self.phases.get(fact, "")
        if before and before != _phase:
            # What is read for several things belongs to all of them: nothing is known of it by its phase.
            del self.phases[fact]
            self._fresh.append(fact)

    def news(self) -> News:
        """Return what was noted since this was last asked for, as another process can take it up."""
        found = [
            _News(
                fact,
                self.answers[fact],
                self.phases.get(fact, ""),
                self.signatures.get(fact.path),
                self.layout_free.get(fact.path),
            )
            for fact in self._fresh
        ]
        self._fresh = []
        return found, self.is_torn

    def learn(self, news: News) -> None:
        """Take up what another process has noted."""
        for fact, answer, name, seen, layout_free in news[0]:
            with phase(name):
                self.note(fact, answer)
            if seen is not None:
                self.signatures.setdefault(fact.path, seen)
            if layout_free is not None:
                self.layout_free[fact.path] = layout_free
        self.is_torn |= news[1]


class _News(NamedTuple):
    """A fact as another process is told of it."""

    fact: Fact
    answer: str
    phase: str
    signature: Signature | None
    layout_free: str | None


News = tuple["list[_News]", bool]
_trace: Trace | None = None
_phase = ""


@contextmanager
def traced() -> Iterator[Trace]:
    """Yield what the code inside reads."""
    global _trace
    before, _trace = _trace, Trace()
    try:
        yield _trace
    finally:
        _trace = before


def current() -> Trace | None:
    """Return what notes at present, if something does."""
    return _trace


def begin() -> Trace:
    """Note from now on, as a process does that works for one that does."""
    global _trace
    _trace = _trace or Trace()
    return _trace


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Let what the code inside reads be known as read for something that is done anew by every run."""
    global _phase
    before, _phase = _phase, name
    try:
        yield
    finally:
        _phase = before
