"""What following a function has read, so that it is followed anew only once some of that has become more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Protocol


class Variables(Protocol):
    """The variables of a function while it is followed."""

    @property
    def names(self) -> Mapping[str, object]:
        """What they are."""

    @property
    def reading(self) -> Reading | None:
        """That of the function."""


class Reading:
    """One time that a function was followed."""

    current: ClassVar[Reading | None] = None
    """That of the function that is being followed, if any."""

    def __init__(self, epoch: int) -> None:
        """Start without having read anything; in another ``epoch``, everything may be different."""
        self._epoch = epoch
        self.is_active = False
        """Whether the function is being followed right now."""
        self._is_valid = True
        self._callers: set[Reading] = set()
        self._names: dict[tuple[Variables, str], object] = {}
        """What variables of functions around it were; None for one that was not bound."""

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Take what is read meanwhile as read by it, and what it reads as read by what calls it."""
        before, Reading.current, self.is_active = Reading.current, self, True
        try:
            yield
        finally:
            Reading.current, self.is_active = before, False
            self.use()

    def use(self) -> None:
        """Take note that the function which is being followed needs the result."""
        if Reading.current is not None and Reading.current is not self:
            self._callers.add(Reading.current)
            for (frame, name), value in self._names.items():
                Reading.current.read(frame, name, value)
            if not self._is_valid:
                Reading.current.expire()

    def read(self, frame: Variables, name: str, value: object) -> None:
        """Take note of what a variable is, unless it is one of the function itself."""
        if frame.reading is not self:
            self._names[frame, name] = value

    def holds(self, epoch: int) -> bool:
        """Tell whether following the function once more would show nothing else."""
        return (
            self._is_valid
            and self._epoch == epoch
            and all(frame.names.get(name) == value for (frame, name), value in self._names.items())
        )

    def expire(self) -> None:
        """Take note that something is more than what was read, which what needs the result has to know."""
        waiting = [self]
        while waiting:
            each = waiting.pop()
            if each._is_valid:
                each._is_valid = False
                waiting += each._callers


class Cell:
    """Something that may become more while code is followed."""

    def __init__(self) -> None:
        """Start unread."""
        self._readers: set[Reading] = set()
        self._was_read = False
        """Whether it was read outside of all functions."""

    def read(self) -> None:
        """Take note that the function which is being followed needs it."""
        if Reading.current is None:
            self._was_read = True
        else:
            self._readers.add(Reading.current)

    def grow(self) -> bool:
        """Take note that it has become more, and tell whether anything has read it before."""
        readers, self._readers = self._readers, set()
        for each in readers:
            each.expire()
        return bool(readers) or self._was_read
