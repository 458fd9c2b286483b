"""A trace of what a run reads from disk, so that a later run can check whether it would read the same.

Each access is recorded as a fact, which is a question (a kind, a path, and sometimes a detail), and its
answer, which is a short text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

Signature = tuple[int, int, int, int]
"""A file's size, modification time, change time and inode: any write changes at least one of them."""


class FileFact(NamedTuple):
    """A question about the file system."""

    kind: str
    path: str
    detail: str = ""


class Trace:
    """The questions that a run asked, and the answers."""

    def __init__(self) -> None:
        self.answers: dict[FileFact, str] = {}
        self.signatures: dict[str, Signature | None] = {}
        """The signatures of the files and folders that were read; None if they cannot be relied on later."""
        self.phases: dict[FileFact, str] = {}
        """The phase in which each question was asked; questions of the check itself have none."""
        self._fresh: list[FileFact] = []
        self.is_torn = False
        """Whether a file changed during the run, so that the trace cannot be used."""

    def see(self, path: str, seen: Signature | None) -> None:
        """Record the signature that a file or folder has while it is read."""
        if self.signatures.setdefault(path, seen) != seen:
            self.signatures[path] = None

    def note(self, fact: FileFact, answer: str) -> None:
        """Record an answer."""
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
            # It was asked in several phases, so it belongs to none of them.
            del self.phases[fact]
            self._fresh.append(fact)

    def news(self) -> News:
        """Return what was recorded since the last call, for another process."""
        found = [_NewFact(fact, self.answers[fact], self.phases.get(fact, "")) for fact in self._fresh]
        paths = {fact.path for fact in self._fresh} & self.signatures.keys()
        self._fresh = []
        return found, {path: self.signatures[path] for path in paths}, self.is_torn

    def learn(self, news: News) -> None:
        """Add what another process has recorded."""
        found, signatures, is_torn = news
        for fact, answer, name in found:
            with phase(name):
                self.note(fact, answer)
        for path, seen in signatures.items():
            self.see(path, seen)
        self.is_torn |= is_torn


class _NewFact(NamedTuple):
    """A fact and its answer, to be sent to another process."""

    fact: FileFact
    answer: str
    phase: str


News = tuple["list[_NewFact]", "dict[str, Signature | None]", bool]
_trace: Trace | None = None
_phase = ""


@contextmanager
def traced() -> Iterator[Trace]:
    """Yield a trace of what the code inside reads."""
    global _trace
    before, _trace = _trace, Trace()
    try:
        yield _trace
    finally:
        _trace = before


def current() -> Trace | None:
    """Return the current trace, if one is being recorded."""
    return _trace


def begin() -> Trace:
    """Start to record; worker processes do this if their parent records."""
    global _trace
    _trace = _trace or Trace()
    return _trace


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Assign what the code inside reads to a phase, which every run executes again."""
    global _phase
    before, _phase = _phase, name
    try:
        yield
    finally:
        _phase = before
