"""Classes, what their objects hold, and what is done to it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence

from gclint.code.names import names
from gclint.model import known, tensors
from gclint.model.frames import Frame
from gclint.model.gradients import Recording, is_constant, records, type_of
from gclint.model.notes import Kind, Note, Root
from gclint.model.reading import ANY, Cell, Reading, note_assignment
from gclint.model.spaces import Space, Spaces
from gclint.model.values import (
    CONSTANT,
    NEVER,
    OF_SETTINGS,
    OWN,
    PLAIN,
    TENSOR,
    Bound,
    Box,
    Call,
    Class,
    Constant,
    External,
    Fixed,
    Function,
    Made,
    Method,
    ModelSetting,
    Module,
    Object,
    Partial,
    Plain,
    Super,
    Tensor,
    Thing,
    Unknown,
    Value,
    each_of,
    join,
    of,
    unknown,
    with_roots,
)

_MOST_STEPS = 150_000
_RESULTS = ("values", "indices")
"""The names of the two tensors that an operation such as ``sort`` gives."""
_MOST_NESTED = 1
"""How many objects of a class that hold each other are told apart."""
_FIGURES = names("shape dtype device ndim is_cuda layout itemsize nbytes names")
_SAME = names("T mT H mH real imag data")
_SIZES = names(
    """
    kernel_size stride padding dilation groups in_features out_features in_channels out_channels num_features
    embedding_dim num_embeddings padding_idx eps normalized_shape num_heads embed_dim head_dim
    """
)
_LEFT = names("weight bias padding_idx requires_grad in_features out_features training")
"""The attributes of torch's modules whose assignment leaves what these do as it is."""
_WEIGHTS = names("weight bias in_proj_weight in_proj_bias running_mean running_var")
_SETTINGS = frozenset(("cfg", "args", "hparams"))
"""The names of arguments that are settings as a whole."""
_SPACELESS = (Plain, Constant, Tensor, ModelSetting, Made, External)
"""What is the same wherever it was read."""
_OF_INIT = of(Plain(), Unknown("an argument of `__init__`"))
ITERATOR = "iterator"
"""The kind of containers whose items are used up."""
_FIXED = ("tuple", ITERATOR)
"""The kinds of containers that get no other items once they are made."""
_OF_FUNCTIONS = frozenset(("__name__", "__qualname__", "__doc__", "__module__"))
TAKING_ITEMS = frozenset(("__getitem__", "__next__"))
"""Special methods of containers that code may call itself."""
_SAFE = (Plain, Constant, Function, Class, External, Module)


class Pending(Cell):
    """What a function gives that was entered and not yet left, as far as that is known."""

    def __init__(self, value: Value) -> None:
        """Start with what was known before."""
        super().__init__()
        self.value = value
        self._was_asked = False

    def asked(self) -> Value:
        """Return what is known, for the function itself."""
        self.read()
        self._was_asked = True
        return self.value

    def settled(self, result: Value) -> bool:
        """Take what following the function has shown, and tell whether it need not be followed once more."""
        before, was_asked = self.value, self._was_asked
        self.value, self._was_asked = join((before, result)), False
        if self.value == before:
            return True
        self.grow()
        return not was_asked


class TooLong(Exception):
    """The code is too long to follow."""


class Objects:
    """Knows classes and objects."""

    def __init__(self, spaces: Spaces, *, is_quiet: bool = False, most_steps: int = _MOST_STEPS) -> None:
        """Start without any notes.

        Args:
            spaces: the modules.
            is_quiet: whether nothing is to be noted, since only what is made matters.
            most_steps: after how many statements and expressions it gives up.
        """
        self.spaces = spaces
        self.notes: dict[Note, None] = {}
        self.quiet = self._least_quiet = int(is_quiet)
        self.stack: list[ast.AST] = []
        """The functions that are being followed."""
        self.calls: list[Call] = []
        """What each of them is called with."""
        self.entered: dict[object, tuple[Reading, Value]] = {}
        """What functions give that were entered with certain values."""
        self._lines: dict[Class, tuple[Class | str | None, ...]] = {}
        self._frames: dict[object, Frame] = {}
        """The names of what was entered, so that functions which it defines are the same ones each time."""
        self.tests: dict[ast.expr, list[ast.expr] | None] = {}
        """What tests call that are about settings; None for those that may be about more."""
        self.is_running = False
        """Whether it follows what is run, and not what makes it."""
        self.subject: frozenset[Thing] = frozenset()
        """The object whose ``forward`` is followed."""
        self.active: dict[object, Pending] = {}
        """What was entered and not yet left."""
        self.is_complete = True
        """Whether all was followed to the end."""
        self.caught = 0
        """In how many bodies of ``try`` statements it is that handle errors."""
        self.unrecorded = 0
        """In how many contexts it is in which no gradients are recorded."""
        self.perhaps_unrecorded = 0
        """In how many it is of which that is not known."""
        self._steps = 0
        self._most_steps = most_steps

    @property
    def is_first(self) -> bool:
        """Whether it follows something the first time; outside of functions only if it notes anything."""
        return not self.quiet or (bool(self.stack) and self.quiet == self._least_quiet)

    def frame_of(self, key: object, space: Space, parent: Frame | None, owner: Class | None) -> Frame:
        """Return the names of what is entered, with nothing bound; one for each ``key``."""
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = Frame(space, parent, owner)
            self.spaces.frames.append(found)
        found.clear()
        found.reading = Reading.current
        return found

    # -- what is noted

    def count(self, steps: int = 1) -> None:
        """Count steps; raise :class:`TooLong` beyond the most."""
        self._steps += steps
        if self._steps > self._most_steps:
            raise TooLong

    def note(self, what: str, node: ast.AST | None, frame: Frame, kind: Kind = Kind.UNKNOWN) -> None:
        """Note what a function does; ``what`` is that of a note."""
        if not self.quiet:
            owner = next((each.owner.node.name for each in frame.around() if each.owner is not None), None)
            function = next(
                (each for each in reversed(self.stack) if isinstance(each, ast.FunctionDef)), None
            )
            name = "a lambda" if function is None else function.name
            where = f"{owner}.{name}" if owner else name
            file = frame.space.file
            row = 0 if node is None else file.position(frame.space.offset(node)).row
            self.notes[Note(kind, what, where, file, row)] = None

    def give_up(self, what: str, node: ast.AST, frame: Frame) -> None:
        """Take note that something is not followed to the end, also where nothing else is noted."""
        self.is_complete = False
        self.note(what, node, frame)

    def change(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Note that a value is changed in place, if that outlives the call."""
        for root in sorted(value.roots):
            self.note(root.what, node, frame, root.kind)

    def may_change(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Note that a value may be changed in place, of which nothing is known."""
        if value.roots:
            self.note("goes over something of which nothing is known", node, frame)

    def tensor(self, values: Iterable[Value], roots: Iterable[Root] = ()) -> Value:
        """Return a tensor that is computed from these."""
        given = tuple(values)
        if self.unrecorded or is_constant(*given):
            return Value(CONSTANT.things, frozenset(roots))
        things = TENSOR.things | CONSTANT.things if self.perhaps_unrecorded else TENSOR.things
        return Value(things, frozenset(roots))

    def mix(self, target: Value, values: Iterable[Value]) -> None:
        """Follow that values are put into another one in place."""
        is_known = any(isinstance(each, (Tensor, Unknown)) and each.is_constant for each in target.things)
        if (is_known or any(isinstance(each, ModelSetting) for each in target.things)) and not is_constant(
            *values
        ):
            self.mixed(target)

    def mixed(self, target: Value) -> None:
        """Take note that something that requires grad is put into what is known to require none."""

    @staticmethod
    def may_change_in_place(value: Value) -> bool:
        """Tell whether an augmented assignment may change what a name was before."""
        return any(isinstance(each, (Tensor, Unknown, Box, Object, Made)) for each in value.things)

    def read_global(self, node: ast.Name, found: Value, frame: Frame) -> Value:
        """Return a value of a module, and note it if it may change between two readings."""
        name, space = node.id, frame.space
        if all(map(_is_safe, found.things)):
            if not self.quiet and space.usage.may_rebind(name):
                self.note(f"reads `{name}`, which functions assign", node, frame)
            return found
        if all(isinstance(each, Made) and each.name == "logging.Logger" for each in found.things):
            return found
        if not self.quiet and any(not isinstance(each, (*_SAFE, ModelSetting)) for each in found.things):
            is_kept = all(map(_is_kept, found.things))
            if not is_kept or name in space.usage.touched or space.usage.may_rebind(name):
                self.note(f"reads the global `{name}`, which may change meanwhile", node, frame)
        return with_roots(found, (Root(Kind.GLOBAL, name),))

    def read_kept(self, name: str, found: Value, node: ast.AST, frame: Frame) -> None:
        """Note a variable of a function that was run when a module or an object was made."""
        if self.quiet:
            return  # Nothing would be noted.
        if name in frame.space.usage.rebound or not all(
            isinstance(each, (*_SAFE, ModelSetting)) for each in found.things
        ):
            self.note(f"reads `{name}` of a function around it, which may change meanwhile", node, frame)

    # -- containers

    def box(self, node: ast.AST, kind: str) -> Box:
        """Return the container that is made at a place."""
        return self.spaces.boxes.setdefault((node, kind), Box(kind))

    def fill(self, box: Box, value: Value) -> None:
        """Add what an item may be."""
        if box.kind not in _FIXED:
            self.lead(box, (), is_new=False)
        self._put(box, value)

    def _put(self, box: Box, value: Value) -> None:
        if any(each is box for each in value.things):
            value = Value(value.things - {box}, value.roots)
        if box.put(value):
            self.spaces.version += 1

    def lead(self, box: Box, items: Sequence[Value], *, is_new: bool) -> None:
        """Say what comes first in a container, as far as that is known of all that the place makes."""
        if box.lead(items, is_new=is_new):
            self.spaces.version += 1

    def led(self, node: ast.AST, kind: str, values: Iterable[Value], first: Sequence[Value]) -> Value:
        """Return the container that is made at a place, with these among its items and these in front."""
        is_new = (node, kind) not in self.spaces.boxes
        box = self.box(node, kind)
        for each in values:
            self._put(box, each)
        self.lead(box, first, is_new=is_new)
        return of(box)

    def item(self, value: Value, index: int | None = None) -> Value:
        """Return an item of a value: a certain one, or any."""
        found = [with_roots(self._item(each, index), value.roots) for each in value.things]
        return join(found)

    def _item(self, thing: Thing, index: int | None) -> Value:
        if isinstance(thing, Fixed):
            if index is not None and -len(thing.items) <= index < len(thing.items):
                return thing.items[index]
            return NEVER if index is not None else join(thing.items)
        if isinstance(thing, Box):
            first = () if index is None or index < 0 or thing.kind == ITERATOR else thing.first[index:]
            return first[0] if first else thing.item
        if isinstance(thing, External):
            if thing.name in known.TABLES:
                return of(Made(known.COMPUTING_OBJECT))
            return unknown(f"an item of `{thing.name}`")
        if isinstance(thing, ModelSetting) and index is None:
            return of(ModelSetting(is_any=True))
        if isinstance(thing, (Tensor, ModelSetting, Plain, Unknown)):
            return of(thing)
        if isinstance(thing, Constant):
            return PLAIN if isinstance(thing.value, (str, bytes)) else NEVER
        if isinstance(thing, Class):
            return of(thing)
        if isinstance(thing, Object) and not self.unknown_base(thing.kind):
            if any(each in known.HOLDING_BASES for each in self.line(thing.kind)):
                return join(thing.attributes.values())
            is_pile = any(self.find(thing.kind, each) for each in ("__getitem__", "__iter__"))
            return unknown("an item") if is_pile or ANY in thing.attributes else NEVER  # It raises an error.
        return unknown("an item")

    def under(self, name: str, value: Value) -> Value:
        """Return what a dict holds that has a value under a name."""
        return value

    def unpacked(self, value: Value) -> Value:
        """Return what ``**`` takes out of a value."""
        return self.item(value)

    def consume(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Note that items of something are used up."""
        is_iterator = any(isinstance(each, Box) and each.kind == ITERATOR for each in value.things)
        is_unknown = any(isinstance(each, (Unknown, Made)) and not is_argument(each) for each in value.things)
        if is_iterator:
            self.change(value, node, frame)
        elif is_unknown:
            self.may_change(value, node, frame)

    def described(
        self, descriptor: Value, receiver: Value, owner: Class, node: ast.AST, frame: Frame
    ) -> Value:
        """Follow a descriptor that is read, and return what it may give."""
        raise NotImplementedError

    def ask(self, value: Value, node: ast.AST, frame: Frame) -> None:
        """Follow all special methods that a function may run which gets a value."""
        raise NotImplementedError

    def _members(self, kind: Class) -> Iterator[str]:
        for each in self.line(kind):
            if isinstance(each, Class):
                yield from self.spaces.members.get(each, {})

    def iterate(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """Return what a loop over a value goes over."""
        self.consume(value, node, frame)
        others = Value(frozenset(each for each in value.things if not isinstance(each, Object)), value.roots)
        keys = [
            PLAIN
            for each in value.things
            if isinstance(each, Box) and each.kind in ("dict", "torch.nn.ModuleDict")
        ]
        return join((self.item(others), self.gone_over(value, node, frame), *keys))

    def gone_over(self, value: Value, node: ast.AST, frame: Frame) -> Value:
        """Follow the methods that give the items of an object, and return the items."""
        raise NotImplementedError

    def parts(self, thing: Object, node: ast.AST, *, is_deep: bool = False, is_named: bool = False) -> Box:
        """Return a dict or list of the modules that an object holds; ``is_deep`` if also those in them."""
        box = self.box(node, "dict" if not is_named else "list")
        waiting, seen = [thing], [of(thing)] if is_deep else []
        met = {thing}
        while waiting:
            for value in waiting.pop().attributes.values():
                if not all(isinstance(each, (Object, Made, Box, Unknown)) for each in value.things):
                    continue
                seen.append(value)
                inner = [
                    one
                    for each in value.things
                    for one in (each.item.things if isinstance(each, Box) else [each])
                ]
                seen += [of(each) for each in inner] if is_deep else []
                more = [each for each in inner if isinstance(each, Object) and each not in met]
                waiting += more if is_deep else []
                met.update(more)
        for value in seen:
            self.fill(box, of(Fixed((PLAIN, value))) if is_named else value)
        return box

    # -- classes

    def class_of(self, node: ast.ClassDef, space: Space, frame: Frame | None) -> Class:
        """Return the class of a definition."""
        made = self.spaces.classes.get((node, frame))
        if made is not None:
            return made
        made = self.spaces.classes[node, frame] = Class(node, space, frame)
        self.spaces.members[made] = {}
        inner = Frame(space, frame or space.frame, made, outlives=True, is_of_class=True)
        self.spaces.frames.append(inner)
        self.quiet += 1
        try:
            self.body(node.body, inner)
        finally:
            self.quiet -= 1
        self.spaces.members[made].update(inner.names)
        return made

    def body(self, statements: Sequence[ast.stmt], frame: Frame) -> None:
        """Follow statements."""
        raise NotImplementedError

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression."""
        raise NotImplementedError

    def quietly(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression once more, which was followed before."""
        raise NotImplementedError

    def call(self, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Follow a call."""
        raise NotImplementedError

    def enter(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None = None
    ) -> Value:
        """Follow a function."""
        raise NotImplementedError

    def bases(self, kind: Class) -> list[Class | str | None]:
        """Return the bases of a class: those of other packages by name, None for one that is not known."""
        found: list[Class | str | None] = []
        home = kind.frame or kind.space.frame
        for each in kind.node.bases:
            self.quiet += 1
            try:
                things = self.value(each.value if isinstance(each, ast.Subscript) else each, home).things
            finally:
                self.quiet -= 1
            (only,) = things if len(things) == 1 else (None,)
            found.append(
                only if isinstance(only, Class) else only.name if isinstance(only, External) else None
            )
        return found

    def line(self, kind: Class) -> tuple[Class | str | None, ...]:
        """Return a class with all of its bases, in the order in which they are searched."""
        if kind not in self._lines:
            self._lines[kind] = (kind,)
            found: list[Class | str | None] = [kind]
            for base in self.bases(kind):
                found += self.line(base) if isinstance(base, Class) else [base]
            self._lines[kind] = tuple(reversed(dict.fromkeys(reversed(found))))
        return self._lines[kind]

    def is_module(self, kind: Class) -> bool:
        """Tell whether a class is a module of torch."""
        return any(
            isinstance(each, str) and (each in known.MODULE_BASES or self.is_plain_module(each))
            for each in self.line(kind)
        )

    @staticmethod
    def is_plain_module(name: str) -> bool:
        """Tell whether a name is that of a class of modules that keep no state."""
        parent, _, last = name.rpartition(".")
        is_known = name in known.MODULES or (parent == "torch.nn" and last in tensors.MODULES)
        return is_known and last not in known.UNREPEATABLE

    def unknown_base(self, kind: Class) -> bool:
        """Tell whether a class may have more than its code shows."""
        return any(not self.is_usual(each, kind) for each in kind.node.keywords) or any(
            not isinstance(each, Class)
            and each not in known.MODULE_BASES | known.OTHER_BASES
            and not (each is not None and self.is_plain_module(each))
            for each in self.line(kind)
        )

    def is_usual(self, keyword: ast.keyword, kind: Class) -> bool:
        """Tell whether an argument of a class's header leaves the class as its code shows it."""
        if keyword.arg != "metaclass":
            return False
        self.quiet += 1
        try:
            made = self.value(keyword.value, kind.frame or kind.space.frame)
        finally:
            self.quiet -= 1
        return all(isinstance(each, External) and each.name in known.METACLASSES for each in made.things)

    def find(self, kind: Class, name: str, behind: Class | None = None) -> tuple[Value, Class] | None:
        """Return what a class has under a name, and the class that defines it."""
        line = self.line(kind)
        # A base that is not known is None, too.
        start = line.index(behind) + 1 if behind is not None and behind in line else 0
        for each in line[start:]:
            if isinstance(each, Class):
                members = self.spaces.members.get(each)
                if members is not None and name in members:
                    return members[name], each
        return None

    def decorated(self, value: Value, decorators: Sequence[ast.expr], frame: Frame) -> Value:
        """Return what decorators make of a function or class."""
        for each in reversed(decorators):
            target = each.func if isinstance(each, ast.Call) else each
            if isinstance(target, ast.Attribute) and target.attr in ("setter", "getter", "deleter"):
                return self.value(target.value, frame)
            made = self.value(target, frame)
            names = {one.name if isinstance(one, External) else "" for one in made.things}
            is_of_gradients = records(made, each) in (Recording.ON, Recording.OFF)
            if is_of_gradients or (names and names <= known.DECORATORS):
                for given in _given(each) if self.is_first else ():
                    self.value(given, frame)
                continue
            value = self.call(self.value(each, frame), Call((value,)), each, frame)
        return value

    # -- objects

    def object_of(self, kind: Class, call: Call) -> tuple[Object, bool]:
        """Return the object that is made with these values, and whether it is new.

        What wraps objects of its own class again and again has no end: all of these are one object.
        """
        key: tuple[Class, Call | None] = (kind, call)
        if key in self.spaces.objects:
            return self.spaces.objects[key], False
        nesting = _nesting(call.all())
        nesting[kind] = nesting.get(kind, 0) + 1
        if nesting[kind] > _MOST_NESTED:
            key = (kind, None)
            nesting[kind] = _MOST_NESTED
        is_new = key not in self.spaces.objects
        made = self.spaces.objects.setdefault(key, Object(kind, nesting=nesting))
        self.spaces.objects[kind, call] = made
        return made, is_new

    def make(self, kind: Class, call: Call, node: ast.AST, frame: Frame) -> Value:
        """Return an object of a class that is made with these values."""
        made, _ = self.object_of(kind, call)
        if (
            self.unknown_base(kind)
            or self.find(kind, "__new__")
            or self.find(kind, "__getattr__")
            or self.find(kind, "__getattribute__")
        ):
            self.spoil(made, f"`{kind.node.name}`")
        if self.find(kind, "__post_init__") or any(map(_has_factory, kind.node.body)):
            self.spoil(made, f"`{kind.node.name}`")
            self.note(f"makes a `{kind.node.name}`, of which not all is followed", node, frame)
        init = self.find(kind, "__init__")
        if init is None:
            self.begin_inherited(made, call)
            for each in kind.node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and call.all():
                    self._put_attribute(made, each.target.id, join(call.all()))
        else:
            bound = self.bind_method(init[0], of(made), init[1], node, frame)
            self.call(bound, call, node, frame)  # type: ignore[arg-type]
        return of(made)

    def begin_inherited(self, thing: Object, call: Call) -> None:
        """Take note of how an object is made by a class of another package that its own inherits from."""
        raise NotImplementedError

    def make_anyhow(self, kind: Class, frame: Frame) -> Value:
        """Return an object of a class that is made with any values."""
        init = self.find(kind, "__init__")
        functions = [] if init is None else [each for each in init[0].things if isinstance(each, Function)]
        given: dict[str, Value] = {}
        for function in functions:
            arguments = function.node.args
            for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs][1:]:
                is_settings = "config" in each.arg or each.arg in _SETTINGS
                given[each.arg] = of(ModelSetting(), roots=(OF_SETTINGS,)) if is_settings else _OF_INIT
        # Most of what classes pass on to their bases are settings; what is called of it is not known.
        loose = of(ModelSetting())
        return self.make(kind, Call((), tuple(sorted(given.items())), loose, loose), kind.node, frame)

    def spoil(self, thing: Object, by: str) -> None:
        """Forget what an object holds, since it may have been changed."""
        note_assignment(thing, ANY)
        if ANY not in thing.attributes:
            self._put_attribute(thing, ANY, unknown(f"what {by} has changed"))

    def _put_attribute(self, thing: Object, name: str, given: Value) -> None:
        if thing.attributes.put(name, given):
            self.spaces.version += 1

    def bind_method(self, value: Value, receiver: Value, owner: Class, node: ast.AST, frame: Frame) -> Value:
        """Return what a class has, as its objects have it."""
        found: list[Value] = []
        for thing in value.things:
            if not isinstance(thing, Function) or isinstance(thing.node, ast.Lambda):
                held = [each for each in (thing,) if isinstance(each, Object)]
                if any(self.find(each.kind, "__get__") for each in held):
                    self.note("reads what a descriptor of its own gives", node, frame)
                    found.append(self.described(of(thing), receiver, owner, node, frame))
                elif isinstance(thing, Function):
                    found.append(of(Bound(thing, receiver, owner)))
                else:
                    found.append(Value(frozenset((thing,)), value.roots))
                continue
            kinds = {_last(each) for each in thing.node.decorator_list}
            if "staticmethod" in kinds:
                found.append(of(thing))
            elif "property" in kinds or "cached_property" in kinds:
                given = self.enter(thing, Call((receiver,)), node, frame, owner=owner)
                is_plain = all(isinstance(each, (Plain, Constant, ModelSetting)) for each in given.things)
                if "cached_property" in kinds and not is_plain:
                    self.note("reads a property that is computed only once", node, frame)
                found.append(given)
            elif "classmethod" in kinds:
                kind = [each.kind for each in receiver.things if isinstance(each, Object)]
                found.append(of(Bound(thing, of(*kind), owner)))
            else:
                found.append(of(Bound(thing, receiver, owner)))
        return join(found)

    def set_attribute(self, value: Value, name: str, given: Value, node: ast.AST, frame: Frame) -> None:
        """Assign an attribute of whatever a value may be."""
        value = join(
            each.receiver if isinstance(each, Super) else Value(frozenset((each,)), value.roots)
            for each in value.things
        )
        self.record(value, node)
        self.mix(value, (TENSOR if name == "requires_grad" else given,))
        self.spaces.given[node] = join((self.spaces.given.get(node, NEVER), given))
        assigned = {(each, name) for each in value.things if isinstance(each, (Object, Class))}
        for each, _ in assigned:
            note_assignment(each, name)
        frame.age(assigned)
        for box in (each for each in value.things if isinstance(each, Box)):
            self.spaces.version += box.name(name, given)
        if frame.receiver is not None and value == frame.receiver:
            frame.give(f".{name}", given)  # Blocks that read it from elsewhere note that it is assigned.
            if any(each in self.subject or self._is_no_module(each) for each in value.things):
                self.change(value, node, frame)
            if not is_constant(given) and self._is_read_elsewhere(name, value, frame):
                self.note(name, node, frame, Kind.KEPT)
        else:
            self.change(value, node, frame)
        runs = any(isinstance(each, (Object, Function, Bound, Class)) for each in given.things)
        if runs and any(isinstance(each, Made) and _runs_parts(each.name) for each in value.things):
            self.hook(frame)  # A module of torch runs it in place of its own part.
        is_made = any(isinstance(each, Made) and self.is_plain_module(each.name) for each in value.things)
        if is_made and not (name.startswith("_") or name in _LEFT):
            self.hook(frame)  # It may do something else with that.
        for thing in value.things:
            if isinstance(thing, (External, Class)):
                name_of = thing.name if isinstance(thing, External) else thing.node.name
                self.note(name_of, node, frame, Kind.GLOBAL)
            if isinstance(thing, Object):
                if runs and any(isinstance(one, str) and _runs_parts(one) for one in self.line(thing.kind)):
                    self.hook(frame)
                self._put_attribute(thing, name, given)
            elif isinstance(thing, Class):
                held = self.spaces.members[thing]
                joined = join((held.get(name, NEVER), given))
                if joined != held.get(name):
                    held[name] = joined
                    self.spaces.begin_epoch()
            elif isinstance(thing, Box):
                self.fill(thing, given)  # A field of an output, which is one of its items.
            elif isinstance(thing, Tensor) and not (is_of_tensors(name) or is_constant(given)):
                self.note(name, node, frame, Kind.KEPT)  # No checkpoint looks at what a tensor has.

    def record(self, value: Value, node: ast.AST) -> None:
        """Record the classes of what has an attribute that is read or assigned at a place."""
        targets = self.spaces.targets.setdefault(node, set())
        for each in value.things:
            if isinstance(each, Object):
                targets.add(each.kind.node)
            elif isinstance(each, Class):
                targets.add(each.node)
            elif not isinstance(each, (ModelSetting, External, Module)):
                targets.add(each.what if isinstance(each, Unknown) else "")

    def name_used(self, names: frozenset[str] | None, value: Value, node: ast.AST) -> None:
        """Record the names, given as texts, of attributes of a value that may be read; None for any."""
        before = self.spaces.all_names_used.get(node, frozenset())
        if all(isinstance(each, (ModelSetting, External)) for each in value.things):
            names = frozenset()
        self.spaces.all_names_used[node] = None if names is None or before is None else before | names

    def _is_no_module(self, thing: Thing) -> bool:
        return isinstance(thing, Object) and not self.is_module(thing.kind)

    def _is_read_elsewhere(self, name: str, value: Value, frame: Frame) -> bool:
        """Tell whether another function than the one that is followed reads an attribute."""
        if self.quiet:
            return False  # Nothing would be noted.
        things = [each for each in value.things if isinstance(each, Object)]
        if things and all(name in each.buffers for each in things):
            return False  # Nobody expects a gradient from it.
        spaces = {frame.space, *(each.kind.space for each in things)}
        line = self._nodes(things)
        return any(
            function is not self.stack[-1] and may_be(space.targets.get(node), line)
            for space in spaces
            for node, function in space.usage.loaded[name]
        )

    def attribute(
        self, value: Value, name: str, node: ast.AST, frame: Frame, *, is_optional: bool = False
    ) -> Value:
        """Return an attribute of whatever a value may be."""
        self.record(value, node)
        is_hook = name.startswith("register_") and name.endswith("_hook")
        is_hook = is_hook or (name.startswith("_") and name.endswith("_hooks"))
        if is_hook and not any(getattr(each, "name", "") in known.HOOKING_METHODS for each in self.stack):
            self.hook(frame)
        found = [
            self._attribute(thing, alone, name, node, frame, is_optional) for thing, alone in each_of(value)
        ]
        return join(found)

    def hook(self, frame: Frame) -> None:
        """Take note that what is being made may run more than is seen, or what it holds."""
        owners = [each.owner for each in frame.around() if each.owner is not None]
        receivers = (thing for each in self.calls for one in each.positional[:1] for thing in one.things)
        owners += [each.kind for each in receivers if isinstance(each, Object)]
        self.spaces.version += self.spaces.hooked.add(*(each.node for each in owners))

    def _attribute(
        self, thing: Thing, value: Value, name: str, node: ast.AST, frame: Frame, is_optional: bool
    ) -> Value:
        if isinstance(thing, Object):
            return self._of_object(thing, value, name, node, frame, is_optional)
        if isinstance(thing, Class):
            return self._of_class(thing, name, node, frame)
        if isinstance(thing, Super):
            found = self.find(thing.of, name, thing.behind)
            if found is None and name == "__call__" and self.is_module(thing.of):
                found = self.find(thing.of, "forward")  # The one of torch runs it.
            if found is not None:
                return self.bind_method(found[0], thing.receiver, found[1], node, frame)
            return of(Method(thing.receiver, name))
        if isinstance(thing, External):
            return of(External(f"{thing.name}.{name}"), roots=value.roots)
        if isinstance(thing, Module):
            return self._of_module(thing.space, value, name, node, frame)
        if (
            not self.quiet
            and name in frame.space.usage.stored
            and not isinstance(thing, (Function, Bound))
            and name not in _SAME
        ):
            self.note(f"reads `{name}` of something, which is assigned after it is made", node, frame)
        if isinstance(thing, Made):
            return self._of_made(thing, value, name)
        if isinstance(thing, ModelSetting):
            if not self.quiet and frame.space.usage.has_namespace:
                self.note(f"reads the setting `{name}`, which may change meanwhile", node, frame)
            return of(Method(value, name)) if name in known.READING_METHODS else value
        if isinstance(thing, (Function, Bound, Partial)):
            if name not in _OF_FUNCTIONS:
                self.note(f"reads `{name}` of a function", node, frame)
            return PLAIN if name in _OF_FUNCTIONS else unknown(f"`{name}` of a function")
        if name in _FIGURES:
            return type_of(thing) if name == "dtype" else PLAIN
        if isinstance(thing, Fixed) and name in _RESULTS:
            return thing.items[_RESULTS.index(name)] if len(thing.items) == len(_RESULTS) else NEVER
        if name == "data":
            return Value(CONSTANT.things, value.roots)
        if name in _SAME:
            return self.tensor((value,), value.roots)
        if name == "requires_grad" and value.roots == {OWN}:
            return PLAIN  # Of a parameter, which does not ask whether gradients are recorded.
        if name in known.ABOUT_GRADIENTS:
            self.note(name, node, frame, Kind.GRADIENTS)
            return unknown(f"`{name}`", value.roots)
        if isinstance(thing, Unknown) and not thing.is_argument:
            self.note(f"reads `{name}` of {what_of(thing)}, of which nothing is known", node, frame)
            return unknown(f"`{name}`", value.roots)
        if is_operation(name) or (isinstance(thing, (Box, Fixed)) and name in TAKING_ITEMS):
            return of(Method(value, name))
        if isinstance(thing, Plain):
            return Value(frozenset((thing, Tensor(is_constant=True))), value.roots)
        if isinstance(thing, Constant) and thing.value is None:
            return NEVER
        self.note(f"reads `{name}` of {what_of(thing)}, of which nothing is known", node, frame)
        named = [thing.named(each) for each in (name, ANY)] if isinstance(thing, Box) else []
        held = join(each for each in named if each is not None)
        return with_roots(held, value.roots) if held.things else unknown(f"`{name}`", value.roots)

    def _of_made(self, thing: Made, value: Value, name: str) -> Value:
        if thing.name in known.GENERATORS:
            return of(Method(value, name))
        if thing.name == "logging.Logger" or name in known.MODULE_READS | known.MODULE_SETTINGS:
            return of(Method(value, name))
        if name in ("forward", "__call__"):
            return of(Method(value, name))
        if name in _WEIGHTS:
            return Value(TENSOR.things, value.roots)
        if name in _SIZES:
            return PLAIN
        return Value(frozenset((Plain(), Made(known.PART))), value.roots)

    def _of_module(self, space: Space, value: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        found = space.value(name)
        if found is None:
            return unknown(f"`{name}`", value.roots)
        found = self.resolved(found)
        if not self.quiet and (
            not all(map(_is_safe, found.things))
            or name in frame.space.usage.stored
            or space.usage.may_rebind(name)
        ):
            self.note(f"reads the global `{name}`, which may change meanwhile", node, frame)
        return with_roots(found, (Root(Kind.GLOBAL, name),))

    def resolved(self, value: Value) -> Value:
        """Return a value with what is imported in place of the imports."""
        raise NotImplementedError

    def _of_class(self, kind: Class, name: str, node: ast.AST, frame: Frame) -> Value:
        if name in _OF_FUNCTIONS:
            return PLAIN
        found = self.find(kind, name)
        if found is None:
            self.note(f"reads `{kind.node.name}.{name}`, which is not known", node, frame)
            return unknown(f"`{kind.node.name}.{name}`")
        value, owner = found
        if any(isinstance(each, Function) for each in value.things):
            methods = [
                of(Bound(each, of(kind), owner))
                if isinstance(each, Function)
                and not isinstance(each.node, ast.Lambda)
                and "classmethod" in map(_last, each.node.decorator_list)
                else of(each)
                for each in value.things
            ]
            return join(methods)
        if not self.quiet and any(name in each.usage.stored for each in (kind.space, frame.space)):
            self.note(f"reads `{kind.node.name}.{name}`, which is assigned elsewhere", node, frame)
        return with_roots(value, (Root(Kind.SHARED, f"`{kind.node.name}.{name}`"),))

    def _note_if_assigned_later(self, name: str, thing: Object, node: ast.AST, frame: Frame) -> None:
        """Note that code assigns an attribute of something that is made, which matters while it runs.

        Before that, it only matters if something is assigned that can be called.
        """
        if self.quiet:
            return  # Nothing would be noted.
        spaces = [each for each in {frame.space, thing.kind.space} if name in each.usage.stored]
        if any(self._may_be_of(each, each.usage.stored[name], thing) for each in spaces):
            inside = set(ast.walk(self.stack[-1]))
            if any(place in inside for place in frame.space.usage.stored.get(name, ())):
                self.note(OWN.what, node, frame, OWN.kind)  # What it reads is what the last run left.
            else:
                self.note(f"reads `{name}` of an object, which is assigned after it is made", node, frame)

    def _set_up_elsewhere(self, name: str, thing: Object, frame: Frame) -> Iterator[Value]:
        """Yield what something else assigns to an attribute than what makes the object."""
        for space in {frame.space, thing.kind.space} if self.is_running else ():
            for node in space.usage.set_up.get(name, ()):
                if self._may_be_of(space, [node], thing):
                    given = space.reading.given.get(node, NEVER)
                    # What was read elsewhere has classes of its own, whose code is not followed here.
                    is_plain = given.things and all(isinstance(each, _SPACELESS) for each in given.things)
                    yield given if is_plain else unknown(f"`{name}`")

    def _may_be_of(self, space: Space, nodes: Collection[ast.AST], thing: Object) -> bool:
        """Tell whether what is assigned at some places of a module may be an attribute of an object."""
        line = self._nodes([thing]) if nodes else ()
        return any(may_be(space.targets.get(node), line) for node in nodes)

    def _nodes(self, things: Sequence[Object]) -> set[ast.ClassDef]:
        """Return the classes of objects, with their bases."""
        return {one.node for each in things for one in self.line(each.kind) if isinstance(one, Class)}

    def _of_object(
        self, thing: Object, value: Value, name: str, node: ast.AST, frame: Frame, is_optional: bool
    ) -> Value:
        if name == "__class__":
            return of(thing.kind)
        held = thing.attributes
        found = self.find(thing.kind, name)
        if found is not None and name not in held:
            self._note_if_assigned_later(name, thing, node, frame)
            held_elsewhere = self._set_up_elsewhere(name, thing, frame)
            result = join((self.bind_method(found[0], value, found[1], node, frame), *held_elsewhere))
            if any(isinstance(each, (Unknown, Made)) for each in found[0].things):
                self.note(f"reads `{name}` of a class, of which nothing is known", node, frame)
            if any(isinstance(each, Bound) for each in result.things):
                return result
            of_class = Root(Kind.SHARED, f"`{found[1].node.name}.{name}`")
            return with_roots(result, value.roots | {of_class})
        assigned = held.get(name)
        if assigned is not None:
            is_own = (
                frame.receiver is not None
                and value.roots == frame.receiver.roots
                and value.things <= frame.receiver.things
            )
            own = frame.own(name) if is_own else None
            if own is not None:
                return own  # It was assigned just now.
            if value.roots:
                self._note_if_assigned_later(name, thing, node, frame)
            more = [self.bind_method(found[0], value, found[1], node, frame)] if found else []
            more += self._set_up_elsewhere(name, thing, frame)
            return with_roots(join((assigned, *more)), value.roots)
        if self.is_module(thing.kind):
            if name == "training":
                return of(Constant(True))
            if name in ("config", "generation_config"):
                return of(ModelSetting(), roots=(OF_SETTINGS,))
            if name in ("device", "dtype"):
                return PLAIN
            if name == "__call__":
                return of(Method(value, name))
            if name == known.CHECKPOINT_FUNCTION:
                return of(External(known.CHECKPOINT))
            if name == "_modules":
                return of(self.parts(thing, node), roots=value.roots)
            if name == "base_model":  # The part that the class names by its prefix, or the model itself.
                return with_roots(join((of(thing), self.parts(thing, node).item)), value.roots)
            if any(isinstance(each, str) and self.is_plain_module(each) for each in self.line(thing.kind)):
                return self._of_made(Made("torch.nn.Module"), value, name)
            if ANY not in held or name in ("register_buffer", "register_parameter", "add_module"):
                is_method = name in known.MODULE_READS | known.MODULE_SETTINGS
                if is_method or name in (
                    "register_buffer",
                    "register_parameter",
                    "add_module",
                    "register_module",
                ):
                    return of(Method(value, name))
        if is_optional and ANY not in held:
            return NEVER
        self.note(f"reads `{name}` of a `{thing.kind.node.name}`, which is not known", node, frame)
        return unknown(f"`{name}`", value.roots)


def _nesting(values: Iterable[Value]) -> dict[Class, int]:
    """Return how deep objects of each class stand in each other in what some values are made of."""
    found: dict[Class, int] = {}
    waiting = [*values]
    while waiting:
        for thing in waiting.pop().things:
            if isinstance(thing, Object):
                for kind, count in thing.nesting.items():
                    found[kind] = max(count, found.get(kind, 0))
            elif isinstance(thing, Fixed):
                waiting += thing.items
            elif isinstance(thing, (Bound, Method, Super)):
                waiting.append(thing.receiver)
            elif isinstance(thing, Partial):
                waiting += (thing.function, *thing.positional, *(each for _, each in thing.named))
    return found


def _given(decorator: ast.expr) -> list[ast.expr]:
    """Return what is computed for a decorator besides itself."""
    if not isinstance(decorator, ast.Call):
        return []
    return [*decorator.args, *(each.value for each in decorator.keywords)]


def _has_factory(node: ast.stmt) -> bool:
    """Tell whether a statement of a class says how a field is made."""
    return isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call) and bool(node.value.keywords)


def _runs_parts(name: str) -> bool:
    """Tell whether a module of torch runs others that it holds."""
    return name.rpartition(".")[2].startswith(("Transformer", "MultiheadAttention"))


def may_be(found: Collection[ast.ClassDef | str] | None, line: Collection[ast.ClassDef]) -> bool:
    """Tell whether what was found at a place may be of some classes; None if it was never followed."""
    return found is None or any(isinstance(each, str) or each in line for each in found)


def what_of(thing: Thing) -> str:
    """Return in words what something is or comes from."""
    return thing.what if isinstance(thing, Unknown) else "something"


def is_argument(thing: Thing) -> bool:
    """Tell whether something is an argument of the ``forward`` that is followed, whatever that is."""
    return isinstance(thing, Unknown) and thing.is_argument


def _is_safe(thing: Thing) -> bool:
    """Tell whether nothing can change what something is."""
    if isinstance(thing, Partial):
        values = (thing.function, *thing.positional, *(each for _, each in thing.named))
        return all(_is_safe(each) for value in values for each in value.things)
    return isinstance(thing, _SAFE)


def _is_kept(thing: Thing) -> bool:
    """Tell whether something only changes where its name stands."""
    if isinstance(thing, Fixed):
        return all(map(_is_kept, (each for item in thing.items for each in item.things)))
    if isinstance(thing, Box):
        return all(map(_is_safe, thing.item.things))
    return isinstance(thing, (*_SAFE, ModelSetting, Tensor, Object))


def is_operation(name: str) -> bool:
    """Tell whether tensors or containers have a method of this name."""
    return (
        name in tensors.FRESH
        or name in tensors.VIEWS
        or name in tensors.CHANGING
        or name in tensors.METHODS_ONLY_READ
        or name in known.READING_METHODS
        or name in known.FILLING_METHODS
        or name in known.TAKING_METHODS
    )


def is_of_tensors(name: str) -> bool:
    """Tell whether a tensor has an attribute of this name, whatever it was computed from."""
    return is_operation(name) or name in _FIGURES or name in _SAME or name in known.ABOUT_GRADIENTS


def _last(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
