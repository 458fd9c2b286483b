"""The names of a function while it is interpreted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gclint.model.reading import ANY, Assigned, Reading
from gclint.model.values import Class, Unknown, Value, join, of

if TYPE_CHECKING:
    from gclint.model.spaces import Space

_BY_ANOTHER = Unknown("what another function assigns")


@dataclass(eq=False)
class Frame:
    """What the names of a function, a class's body or a module may be at one place of it."""

    space: Space
    parent: Frame | None = None
    owner: Class | None = None
    """The class whose method it is."""
    receiver: Value | None = None
    """What its first parameter is, if it is a method."""
    outlives: bool = False
    """Whether it was entered where a module or an object is made, so that calls share it."""
    reading: Reading | None = None
    """That of the function, or of the one around a comprehension."""
    names: dict[str, Value] = field(default_factory=dict)
    given: dict[str, Value] = field(default_factory=dict)
    """What functions inside of it have bound its names to, whenever that was."""
    declared: dict[str, Frame | None] = field(default_factory=dict)
    """The names that a ``global`` or ``nonlocal`` statement says are those of another frame."""
    returned: list[Value] = field(default_factory=list)
    is_dead: bool = False
    """Whether the place is never reached."""
    is_of_class: bool = False
    """Whether it is the body of a class."""
    is_of_comprehension: bool = False
    """Whether it has the variables of a comprehension, in which other names are those of the function."""
    loops: list[tuple[list[dict[str, Value]], list[dict[str, Value]]]] = field(default_factory=list)
    """For each loop around the place, with what it is left, and with what it begins again."""

    trails: list[list[dict[str, Value]]] = field(default_factory=list)
    """For each ``try`` around the place, what names were bound to in it."""

    @property
    def is_followed(self) -> bool:
        """Whether it is that of a function which is being followed."""
        return self.reading is not None and self.reading.is_active

    def clear(self) -> None:
        """Forget what was followed, to follow the function once more."""
        self.names, self.declared, self.returned, self.is_dead = {}, {}, [], False
        self.loops, self.trails, self.receiver = [], [], None

    def around(self) -> Iterator[Frame]:
        """Yield the frame and those of the functions that it is defined in."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent

    def give(self, name: str, value: Value) -> None:
        """Let a name, or with a dot an attribute of the receiver, be a value from here on."""
        self.names[name] = value
        for trail in self.trails:
            trail.append({name: value})

    def own(self, name: str) -> Value | None:
        """Return what an attribute of the receiver was given here, unless it may be another one by now."""
        found = self.names.get(f".{name}")
        return None if found is None or _BY_ANOTHER in found.things else found

    def age(self, assigned: Collection[Assigned]) -> None:
        """Take note that other functions have assigned attributes, also of what encloses this one."""
        for each in self.around() if assigned else ():
            receivers = () if each.receiver is None else each.receiver.things
            given = {f".{name}" for thing, name in assigned if thing in receivers}
            if f".{ANY}" in given:
                given = {name for name in each.names if name.startswith(".")}
            for name in sorted(given.intersection(each.names)):
                each.give(name, join((each.names[name], of(_BY_ANOTHER))))

    def age_all(self) -> None:
        """Take note that any attribute of the receiver may have been assigned."""
        for each in self.around():
            if each.receiver is not None:
                each.age({(thing, ANY) for thing in each.receiver.things})

    def merge(self, ways: list[dict[str, Value]], *, is_settled: bool = False) -> None:
        """Go on with what the names may be after several ways, of which some are not taken.

        Args:
            ways: the names at the end of each.
            is_settled: whether it is the same one whenever the object is run.
        """
        self.is_dead = not ways
        if not ways:
            return
        names = {name for way in ways for name in way}
        merged: dict[str, Value] = {}
        for name in names:
            found = [way[name] for way in ways if name in way]
            # An attribute counts only where every way assigns it.
            if is_settled or len(found) == len(ways) or not name.startswith("."):
                is_one = len({*map(id, found)}) == 1  # Most names are left as they are.
                merged[name] = found[0] if is_one else join(found)
        self.names = merged
