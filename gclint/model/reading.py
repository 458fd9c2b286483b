"""What following a function has read, so that it is followed anew only once some of that has become more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Protocol, TypeAlias


class Variables(Protocol):
    """The variables of a function while it is followed."""

    @property
    def names(self) -> Mapping[str, object]:
        """What they are."""

    @property
    def reading(self) -> Reading | None:
        """That of the function."""


_Variable: TypeAlias = "tuple[Variables, str]"
Assigned: TypeAlias = "tuple[object, str]"
"""An object or class, and the name of an attribute of it that is assigned."""
ANY = "*"
"""Stands for the names of all attributes."""


class Reading:
    """One time that a function was followed."""

    current: ClassVar[Reading | None] = None
    """That of the function that is being followed, if any."""

    def __init__(self, epoch: int) -> None:
        """Start without having read anything; in another ``epoch``, everything may be different."""
        self.is_active = False
        """Whether the function is being followed right now."""
        self.bound: dict[_Variable, object] = {}
        """What it has bound variables of functions around it to."""
        self.assigned: set[Assigned] = set()
        """The attributes that it has assigned."""
        self._epoch = epoch
        self._is_valid = True
        self._callers: set[Reading] = set()
        self._read: dict[_Variable, object] = {}
        """What these were when they were read first; None for one that was not bound."""

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
            self._hand_on(Reading.current)

    def answer(self, pending: Cell) -> None:
        """Take note that what has asked for the result before it was known needs it."""
        asked = pending.readers - {self}
        waiting, met = [*asked], {self}
        while waiting:
            each = waiting.pop()
            if each not in met:
                met.add(each)
                self._hand_on(each)
                waiting += each._callers
        self._callers |= asked

    def _hand_on(self, caller: Reading) -> None:
        for (frame, name), value in self._read.items():
            caller.read(frame, name, value)
        for (frame, name), value in self.bound.items():
            caller.bind(frame, name, value)
        caller.assigned |= self.assigned
        if not self._is_valid:
            caller.expire()

    def read(self, frame: Variables, name: str, value: object) -> None:
        """Take note of what a variable is, unless it is one of the function itself."""
        if frame.reading is not self:
            self._read.setdefault((frame, name), value)

    def bind(self, frame: Variables, name: str, value: object) -> None:
        """Take note of what a variable is bound to, unless it is one of the function itself."""
        if frame.reading is not self:
            self.bound[frame, name] = value

    def holds(self, epoch: int) -> bool:
        """Tell whether following the function once more would show nothing else, and change nothing."""
        return (
            self._is_valid
            and self._epoch == epoch
            and all(
                frame.names.get(name) == value
                for variables in (self._read, self.bound)
                for (frame, name), value in variables.items()
            )
        )

    def expire(self) -> None:
        """Take note that something is more than what was read, which what needs the result has to know."""
        waiting = [self]
        while waiting:
            each = waiting.pop()
            if each._is_valid:
                each._is_valid = False
                waiting += each._callers


def read(frame: Variables, name: str) -> None:
    """Take note that the function which is being followed reads a variable."""
    current = Reading.current
    if current is not None and frame.reading is not current:  # Most are its own.
        current.read(frame, name, frame.names.get(name))


def note_binding(frame: Variables, name: str) -> None:
    """Take note that the function which is being followed has bound a variable."""
    if Reading.current is not None:
        Reading.current.bind(frame, name, frame.names.get(name))


def note_assignment(thing: object, name: str) -> None:
    """Take note that the function which is being followed assigns an attribute."""
    if Reading.current is not None:
        Reading.current.assigned.add((thing, name))


def bindings() -> Mapping[_Variable, object]:
    """Return what the function that is being followed has bound of functions around it, so far."""
    return {} if Reading.current is None else dict(Reading.current.bound)


class Cell:
    """Something that may become more while code is followed."""

    def __init__(self) -> None:
        """Start unread."""
        self.readers: set[Reading] = set()
        """The functions that have read it."""
        self._was_read = False
        """Whether it was read outside of all functions."""

    def read(self) -> None:
        """Take note that the function which is being followed needs it."""
        if Reading.current is None:
            self._was_read = True
        else:
            self.readers.add(Reading.current)

    def grow(self) -> bool:
        """Take note that it has become more, and tell whether anything has read it before."""
        readers, self.readers = self.readers, set()
        for each in readers:
            each.expire()
        return bool(readers) or self._was_read


class Members(Cell):
    """A set that may get more."""

    def __init__(self) -> None:
        """Hold nothing."""
        super().__init__()
        self._held = set[object]()

    def __contains__(self, item: object) -> bool:
        """Tell whether something is in it."""
        self.read()
        return item in self._held

    def __len__(self) -> int:
        """Return how many are in it."""
        self.read()
        return len(self._held)

    def add(self, *items: object) -> bool:
        """Add something, and tell whether that is new for what has asked before."""
        is_new = not self._held.issuperset(items)
        self._held.update(items)
        return is_new and self.grow()
