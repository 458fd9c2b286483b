"""What an expression may be, and what a change of it in place would change."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gclint.model.notes import Kind, Root
from gclint.model.reading import Cell, Members

if TYPE_CHECKING:
    from gclint.model.frames import Frame
    from gclint.model.spaces import Space

OWN = Root(Kind.STATE, "the block")
"""What the object holds whose ``forward`` is followed."""
OF_SETTINGS = Root(Kind.SHARED, "its settings")


class Value(NamedTuple):
    """What an expression may be.

    Attributes:
        things: one of these; none of them means that it is never evaluated.
        roots: what a change in place would change; nothing if it is new.
    """

    things: frozenset[Thing] = frozenset()
    roots: frozenset[Root] = frozenset()


@dataclass(frozen=True)
class Unknown:
    """Anything; ``what`` it comes from, in words."""

    what: str
    is_argument: bool = False
    """Whether it is an argument of a ``forward``, where a tensor is given."""
    is_constant: bool = False
    """Whether it is known to require no grad."""
    maker: str = ""
    """The class of another package that has made it, of which nothing is known."""


@dataclass(frozen=True)
class Plain:
    """Something that nothing changes: a number, a text, a type of tensors."""


@dataclass(frozen=True)
class Turn(Plain):
    """A number that is another one in each turn of a loop."""

    loop: ast.Call
    """The call of ``range`` or ``enumerate`` that the loop goes over."""
    added: Constant | ModelSetting | None = None
    """What it was shifted by."""


@dataclass(frozen=True)
class Constant:
    """A literal."""

    value: str | int | float | bool | bytes | None


class Origin(NamedTuple):
    """Where a gradient originates."""

    node: ast.expr
    """A parameter that is read, or a call of a module with parameters."""
    space: Space


@dataclass(frozen=True)
class Tensor:
    """A tensor, or what computations with some give."""

    is_constant: bool = False
    """Whether it is known to require no grad."""
    is_inside: bool = False
    """Whether it came out of a block inside of a container."""
    sources: tuple[Origin | Unknown, ...] = ()
    """What its gradient comes from, as far as somebody asks: if there are origins, then from nothing else."""


@dataclass(frozen=True)
class ModelSetting:
    """Settings of a model, or one of them."""

    is_any: bool = False
    """Whether it is an item of one, which may be another one each time."""


@dataclass(frozen=True, eq=False)
class Class:
    """A class whose code is available."""

    node: ast.ClassDef
    space: Space = field(repr=False)
    frame: Frame | None = field(repr=False, default=None)
    """Where it is defined, if that is in a function."""


@dataclass(frozen=True, eq=False)
class Object:
    """An object of a class whose code is available; those that are made with the same values are one."""

    kind: Class
    attributes: Attributes = field(default_factory=lambda: Attributes(), repr=False)
    """What is assigned, as far as it was followed."""
    buffers: Members = field(default_factory=Members, repr=False)
    """The names of what was registered as a buffer."""
    nesting: Mapping[Class, int] = field(default_factory=dict, repr=False)
    """How many objects of a class it is made with that are made with each other, itself included."""


class Function(NamedTuple):
    """A function or lambda."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    space: Space
    frame: Frame | None = None
    """Where it is defined, if that is in a function."""
    owner: Class | None = None


class Bound(NamedTuple):
    """A method with its object."""

    function: Function
    receiver: Value
    owner: Class
    """The class from which the object's are searched by ``super()``."""


@dataclass(frozen=True)
class Super:
    """What ``super()`` gives."""

    receiver: Value
    behind: Class
    of: Class


@dataclass(frozen=True)
class External:
    """A name of another package."""

    name: str


class Imported(NamedTuple):
    """A name that an import statement binds."""

    module: str
    level: int
    name: str | None
    """None for the module itself."""
    space: Space


@dataclass(frozen=True)
class Module:
    """A module of the project."""

    space: Space = field(repr=False)


@dataclass(frozen=True)
class Made:
    """What a class of another package makes."""

    name: str
    is_frozen: bool = False
    """Whether none of its parameters requires grad."""


@dataclass(frozen=True)
class Returned:
    """What a certain call of another package gives, or what that holds, where calls are told apart."""

    name: str
    """The dotted name of what is called."""
    node: ast.expr = field(repr=False)
    path: tuple[str, ...] = ()
    """The attributes by which it is reached; ``[]`` stands for any item."""


@dataclass(frozen=True)
class Method:
    """A method of an object whose class is not in the project."""

    receiver: Value
    name: str


@dataclass(frozen=True)
class Fixed:
    """A tuple."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Field:
    """What a dict holds under a name, where names are told apart."""

    name: str
    value: Value


@dataclass(frozen=True)
class Given:
    """What callers that are not followed pass to further parameters, whatever their names are."""

    node: ast.arg


class Attributes:
    """What the attributes of an object may be.

    One that is new changes nothing for code that was followed, unless its name was asked for before.
    """

    def __init__(self) -> None:
        """Hold none."""
        self._held: dict[str, Value] = {}
        self._cells: defaultdict[str, Cell] = defaultdict(Cell)
        """What has asked for names."""
        self._all = Cell()
        """What has asked for all of them."""

    def __contains__(self, name: str) -> bool:
        """Tell whether there is an attribute of this name."""
        return self.get(name) is not None

    def get(self, name: str) -> Value | None:
        """Return what an attribute may be; None if there is none."""
        self._cells[name].read()
        return self._held.get(name)

    def values(self) -> Iterable[Value]:
        """Return what all attributes may be."""
        self._all.read()
        return tuple(self._held.values())

    def put(self, name: str, value: Value) -> bool:
        """Add what an attribute may be, and tell whether that is new for something."""
        before = self._held.get(name)
        after = self._held[name] = value if before is None else join((before, value))
        if after == before:
            return False
        is_awaited = self._all.grow()
        return (name in self._cells and self._cells[name].grow()) or is_awaited

    def clear(self) -> None:
        """Forget all of them."""
        self._held.clear()
        self._cells.clear()
        self._all = Cell()


class Box(Cell):
    """A container that may get more; one stands for all that the same place in the code makes.

    What is put in changes nothing for code that was followed, unless something of it was read before.
    """

    def __init__(self, kind: str) -> None:
        """Make an empty one."""
        super().__init__()
        self.kind = kind
        self._rest = NEVER
        self._first: tuple[Value, ...] = ()
        self._named: dict[str, Value] = {}

    def named(self, name: str) -> Value | None:
        """Return an item that is also an attribute of this name; None if there is none."""
        self.read()
        return self._named.get(name)

    @property
    def item(self) -> Value:
        """Any of the items."""
        self.read()
        return join((*self._first, self._rest)) if self._first else self._rest

    @property
    def rest(self) -> Value:
        """Any of the items, of which those that are known to be in front need not be one."""
        self.read()
        return self._rest

    @property
    def first(self) -> tuple[Value, ...]:
        """What the first items are, as far as that is known of all containers that the place makes."""
        self.read()
        return self._first

    def clear(self) -> None:
        """Forget what was put in."""
        self._rest, self._first, self._named = NEVER, (), {}
        self.readers.clear()

    def put(self, value: Value) -> bool:
        """Add what an item may be, and tell whether that is new for something."""
        before, self._rest = self._rest, join((self._rest, value))
        return self._rest != before and self.grow()

    def name(self, name: str, value: Value) -> bool:
        """Add what an attribute, or any for ``ANY``, may be; tell whether that is new for something."""
        before = self._named.get(name, NEVER)
        after = self._named[name] = join((before, value))
        return after != before and self.grow()

    def lead(self, items: Iterable[Value], *, is_new: bool) -> bool:
        """Add what may come first, in order, and tell whether that is new for something.

        Args:
            items: what comes first in one container that the place makes.
            is_new: whether it is the only one.
        """
        before, given = self._first, tuple(items)
        self._first = given if is_new else tuple(map(join, zip(before, given, strict=False)))
        left = (*before[len(self._first) :], *given[len(self._first) :])
        is_more = self._first != before and self.grow()
        return self.put(join((self._rest, *left))) or is_more


@dataclass(frozen=True)
class Partial:
    """A function with some of its arguments."""

    function: Value
    positional: tuple[Value, ...]
    named: tuple[tuple[str, Value], ...]


class Call(NamedTuple):
    """The arguments of a call."""

    positional: tuple[Value, ...] = ()
    named: tuple[tuple[str, Value], ...] = ()
    rest: Value | None = None
    """Any item of what ``*`` unpacks."""
    options: Value | None = None
    """Any item of what ``**`` unpacks."""

    def all(self) -> tuple[Value, ...]:
        """Return all values that are passed."""
        found = (*self.positional, *[value for _, value in self.named]) if self.named else self.positional
        loose = self.rest is not None or self.options is not None
        return (*found, *filter(None, (self.rest, self.options))) if loose else found

    def argument(self, index: int, name: str = "") -> Value | None:
        """Return what is passed at a place or under a name."""
        if index < len(self.positional):
            return self.positional[index]
        return dict(self.named).get(name)

    def without_first(self) -> Call:
        """Return what is passed behind the first argument."""
        return Call(self.positional[1:], self.named, self.rest, self.options)

    def joined(self, other: Call) -> Call:
        """Return what passes the values of either call; the other one if they do not pass them alike."""
        shapes = [
            (len(one.positional), [name for name, _ in one.named], one.rest is None, one.options is None)
            for one in (self, other)
        ]
        if shapes[0] != shapes[1]:
            return other
        return Call(
            tuple(join(each) for each in zip(self.positional, other.positional, strict=True)),
            tuple(
                (name, join((one, value)))
                for (name, one), (_, value) in zip(self.named, other.named, strict=True)
            ),
            None if self.rest is None or other.rest is None else join((self.rest, other.rest)),
            None if self.options is None or other.options is None else join((self.options, other.options)),
        )


Thing: TypeAlias = (
    Unknown
    | Plain
    | Constant
    | Tensor
    | ModelSetting
    | Class
    | Object
    | Function
    | Bound
    | Super
    | External
    | Imported
    | Module
    | Made
    | Returned
    | Method
    | Fixed
    | Box
    | Partial
    | Field
    | Given
)

NEVER = Value()
PLAIN = Value(frozenset((Plain(),)))
TENSOR = Value(frozenset((Tensor(),)))
CONSTANT = Value(frozenset((Tensor(is_constant=True),)))
NONE = Value(frozenset((Constant(None),)))
_MOST_THINGS = 40


def of(*things: Thing, roots: Iterable[Root] = ()) -> Value:
    """Return a value that is one of these."""
    return Value(frozenset(things), frozenset(roots))


def unknown(what: str, roots: Iterable[Root] = ()) -> Value:
    """Return a value of which only its origin is known."""
    return of(Unknown(what), roots=roots)


def join(values: Iterable[Value]) -> Value:
    """Return what may be any of these."""
    several = dict.fromkeys(values)
    several.pop(NEVER, None)
    if len(several) < 2:
        return next(iter(several), NEVER)
    things = frozenset().union(*[value.things for value in several])
    if len(things) > _MOST_THINGS:
        things = frozenset((Unknown("one of many things"),))
    return Value(things, frozenset().union(*[value.roots for value in several]))


def each_of(value: Value) -> list[tuple[Thing, Value]]:
    """Return what a value may be, each with the value that is only that."""
    if len(value.things) == 1:
        return [(each, value) for each in value.things]
    return [(each, Value(frozenset((each,)), value.roots)) for each in value.things]


def with_roots(value: Value, roots: Iterable[Root]) -> Value:
    """Return a value that is also a part of these, unless nothing can change it."""
    more = frozenset(roots)
    if not more or all(
        isinstance(each, (Plain, Constant, Class, Function, External)) for each in value.things
    ):
        return value
    return Value(frozenset(_inside(each, more) for each in value.things), value.roots | more)


def _inside(thing: Thing, roots: frozenset[Root]) -> Thing:
    """Return something that is called with the same roots for what it is called with."""
    if isinstance(thing, Bound):
        return Bound(thing.function, with_roots(thing.receiver, roots), thing.owner)
    if isinstance(thing, Method):
        return Method(with_roots(thing.receiver, roots), thing.name)
    if isinstance(thing, Partial):
        return Partial(
            with_roots(thing.function, roots),
            tuple(with_roots(each, roots) for each in thing.positional),
            tuple((name, with_roots(each, roots)) for name, each in thing.named),
        )
    return thing
