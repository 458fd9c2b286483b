"""The names of a function while it is interpreted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gclint.model.reading import Reading
from gclint.model.values import Class, Value, join

if TYPE_CHECKING:
    from gclint.model.spaces import Space


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
        self.names = {
            name: join(way[name] for way in ways if name in way)
            for name in names
            # An attribute counts only where every way assigns it.
            if is_settled or not name.startswith(".") or all(name in way for way in ways)
        }
