"""What blocks receive from the code that runs them, and what that code does with what comes out of them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gclint.code.file import SourceFile
from gclint.code.names import names
from gclint.code.project import Project
from gclint.code.walk import last_name
from gclint.model import known
from gclint.model.attributes import new_spaces
from gclint.model.emptied import Emptied
from gclint.model.frames import Frame
from gclint.model.gradients import is_constant
from gclint.model.notes import Kind, Root
from gclint.model.objects import TooLong
from gclint.model.spaces import Space, Spaces
from gclint.model.surroundings import Around, Block
from gclint.model.values import (
    NEVER,
    NONE,
    OWN,
    Bound,
    Box,
    Call,
    Class,
    Constant,
    Fixed,
    Function,
    Imported,
    Method,
    ModelSetting,
    Object,
    Partial,
    Tensor,
    Thing,
    Unknown,
    Value,
    join,
    of,
)
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS, USE_CACHE

_ROUNDS = 4
_MOST_STEPS = 300_000
_SEQUENCES = {
    "tuple": frozenset(("tuple",)),
    "list": frozenset(("list",)),
    "Sequence": frozenset(("tuple", "list")),
}
"""The kinds of sequences by the names of their classes in tests."""
_INTEGERS = names("ids id mask masks position positions index indices lengths size sizes shape shapes labels")
"""The last words of names of arguments that require no grad."""


@dataclass(frozen=True)
class Received:
    """What a parameter of a block may get from one call."""

    block: Block
    """The class whose ``forward`` it is."""
    parameter: str
    file: SourceFile
    row: int
    """The line of the call."""
    holds_gradients: bool
    """Whether it may be a container with a tensor that requires grad."""
    is_pile: bool
    """Whether it is a container that may hold a tensor."""
    is_mixed: bool
    """Whether something that requires grad may have been put into what seems to require none, on the way."""
    may_require_grad: bool
    """Whether it may be computed from what requires grad."""
    is_by_keyword: bool

    @property
    def may_lose_gradient(self) -> bool:
        """Whether it may require grad, and is passed by keyword."""
        return self.may_require_grad and self.is_by_keyword


@dataclass
class Records:
    """What was seen of some blocks."""

    received: list[Received] = field(default_factory=list)
    computes: bool = False
    """Whether something is computed with what a block returns inside of a container."""
    around: list[Around] = field(default_factory=list)
    """What the code around blocks does that is not the same once they are recomputed."""
    is_complete: bool = True
    """Whether all code was followed to the end."""


def records(
    project: Project,
    files: Iterable[SourceFile],
    blocks: Collection[Block],
) -> Records:
    """Follow what some modules run, with any arguments, and return what the blocks get there.

    Args:
        project: the files of a run.
        files: the modules.
        blocks: the classes, by file and name; only what their own ``forward`` gets is recorded.
    """
    found = Records()
    for file in files:
        spaces = new_spaces(project)
        nodes = (spaces.of(home).class_node(name) for home, name in blocks)
        reader = _Recorder(spaces.of(file), frozenset(each for each in nodes if each is not None))
        try:
            for _ in range(_ROUNDS):
                version = reader.spaces.version
                reader.run_all()
                if version == reader.spaces.version:
                    break
            else:
                found.is_complete = False
        except (TooLong, RecursionError):
            found.is_complete = False
        found.is_complete &= reader.is_complete
        found.received += reader.judged()
        found.computes |= reader.computes
        found.around += reader.around
        spaces.forget()
    return found


def _differentiates(function: Function) -> bool:
    """Tell whether a function asks autograd for gradients, which may be those of a model that it gets."""
    return any(
        each.attr == "autograd" if isinstance(each, ast.Attribute) else _is_limited(each)
        for each in ast.walk(function.node)
    )


def _is_limited(node: ast.AST) -> bool:
    """Tell whether a backward pass only computes the gradients of some tensors."""
    if not isinstance(node, ast.Call) or last_name(node.func) != "backward":
        return False
    return len(node.args) > 3 or any(each.arg == "inputs" for each in node.keywords)


class _Key(NamedTuple):
    """Which argument of which call is recorded."""

    block: Block
    file: SourceFile
    row: int
    parameter: str
    by_keyword: bool


@dataclass
class _Effects:
    """What following a function has shown."""

    is_mixed: bool = False
    kept: set[str] = field(default_factory=set)
    """The attributes that are given what seems to require no grad."""
    read: set[str] = field(default_factory=set)
    """The attributes that are read."""
    recorded: set[_Key] = field(default_factory=set)

    def add(self, other: _Effects) -> None:
        """Add what following another one has shown."""
        self.is_mixed |= other.is_mixed
        self.kept |= other.kept
        self.read |= other.read
        self.recorded |= other.recorded


class _Recorder(Emptied):
    """Follows all of a module, and records calls of some classes."""

    def __init__(self, space: Space, blocks: frozenset[ast.ClassDef]) -> None:
        super().__init__(space.spaces, is_quiet=True, most_steps=_MOST_STEPS)
        self.space = space
        self.blocks = blocks
        self.received: dict[_Key, Value] = {}
        self.computes = False
        """Whether something is computed with what was inside of a container."""
        self._marks = _Marks(space.spaces)
        self._is_setting = False
        self._is_mixed = False
        """Whether what requires grad was put into something that all runs have."""
        self._effects = _Effects()
        self._known: dict[object, _Effects] = {}
        """What functions have done that were entered with some values."""
        self._runs: list[_Effects] = []

    def run_all(self) -> None:
        """Follow what may run a block: methods of what holds one, and functions that may make that."""
        for value in [self.space.value(name) for name in list(self.space.names())]:
            for thing in () if value is None else value.things:
                if isinstance(thing, Function) and thing.space is self.space:
                    if self._makes_one(thing) or _differentiates(thing):
                        self.run_function(thing, self.space)
                elif isinstance(thing, Class) and thing.space is self.space and thing.node not in self.blocks:
                    self._run_methods(thing)

    def _makes_one(self, function: Function) -> bool:
        """Tell whether a function names a class."""
        words = {each.id for each in ast.walk(function.node) if isinstance(each, ast.Name)}
        return any(isinstance(each, Class) for name in words for each in self._named(name, self.space))

    def _named(self, name: str, space: Space) -> Iterator[Thing]:
        """Yield what a name of a module may be, also where it is imported."""
        for each in (space.value(name) or NEVER).things:
            yield from space.resolve(each).things if isinstance(each, Imported) else (each,)

    def _holds_block(self, made: Value) -> bool:
        waiting, met = [made], set[int]()
        while waiting:
            for thing in waiting.pop().things:
                if id(thing) in met:
                    continue
                met.add(id(thing))
                if isinstance(thing, Object):
                    if self.is_block([of(thing)]):
                        return True
                    waiting += thing.attributes.values()
                elif isinstance(thing, (Box, Fixed)):
                    waiting += [self.item(of(thing))]
                elif isinstance(thing, (Bound, Method)):
                    waiting.append(thing.receiver)
        return False

    def _run_methods(self, kind: Class) -> None:
        made = self.make_anyhow(kind, self.space.frame)
        if self._holds_block(made):
            names = dict.fromkeys(("forward", *self.spaces.members[kind]))
            others = [each for each in names if each not in known.REPLACING_METHODS]
            self.run_methods(kind, Value(made.things, frozenset((OWN,))), self.space, others)

    def argument(self, node: ast.arg, default: ast.expr | None, frame: Frame) -> Value:
        """Return what is known of an argument by its name, or by the module that it is said to be."""
        said = getattr(node.annotation, "id", "")
        for each in self._named(said, frame.space) if said else ():
            if isinstance(each, Class) and self.is_module(each):
                made = self.make_anyhow(each, frame)
                return Value(made.things, argument(node.arg).roots)
        return argument(node.arg)

    def enter(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None = None
    ) -> Value:
        """Follow a function, and record the arguments of a block."""
        key = self.entry(function, call, owner)
        outer, self._effects = self._effects, self._known.setdefault(key, _Effects())
        try:
            return self._recorded(function, call, node, frame, owner)
        finally:
            outer.add(self._effects)  # All that is known of it: it may have been followed before.
            self._effects = outer
            if not self.stack:
                self._effects = _Effects()
                self._runs.append(outer)

    def _recorded(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None
    ) -> Value:
        is_forward = getattr(function.node, "name", "") == "forward"
        if owner is None or not is_forward or not self.is_block(call.positional[:1]):
            return super().enter(function, call, node, frame, owner)
        row = frame.space.file.position(frame.space.offset(node)).row
        block = owner.space.file, owner.node.name
        for name, value, by_keyword in _bound(function.node, call):
            key = _Key(block, frame.space.file, row, name, by_keyword)
            self.received[key] = join((self.received.get(key, NEVER), value))
            self._effects.recorded.add(key)
        return self._marks.of(super().enter(function, call, node, frame, owner))

    def judged(self) -> Iterator[Received]:
        """Yield what was recorded, without the values, which hold on to all that was followed."""
        mixing = [each for each in self._runs if each.is_mixed]
        kept = {name for each in mixing for name in each.kept}
        mixed = {key for each in self._runs if each.is_mixed or each.read & kept for key in each.recorded}
        for key, value in self.received.items():
            is_pile = any(
                isinstance(each, _PILES) and _holds_tensor(of(each), set()) for each in value.things
            )
            is_mixed = self._is_mixed or key in mixed
            yield Received(
                key.block,
                key.parameter,
                key.file,
                key.row,
                holds_gradients=_holds_gradients(value),
                is_pile=is_pile,
                is_mixed=is_mixed,
                may_require_grad=_may_require_grad(value, is_mixed=is_mixed),
                is_by_keyword=key.by_keyword,
            )

    def is_block(self, receivers: Iterable[Value]) -> bool:
        """Tell whether values may be objects of one of the blocks."""
        kinds = [each.kind for value in receivers for each in value.things if isinstance(each, Object)]
        return any(
            isinstance(one, Class) and one.node in self.blocks for kind in kinds for one in self.line(kind)
        )

    def call(self, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a call gives; where it may run a block, what else it may be is judged by itself."""
        blocks = frozenset(each for each in function.things if self.is_block([of(each)]))
        return super().call(Value(blocks, function.roots) if blocks else function, call, node, frame)

    def deny(
        self, call: Call, node: ast.expr, frame: Frame, kind: Kind = Kind.UNKNOWN, external: str = ""
    ) -> Value:
        """Note that nothing is known of what a call does; it may run a block that it gets."""
        result = super().deny(call, node, frame, kind, external)
        if not self._is_reading:
            self.mix(self._receiver(node, frame), call.all())
        for value in () if self._is_setting else call.all():
            if self.is_block(map(_receiver, value.things)):
                self.call(value, Call(rest=result), node, frame)
        return result

    def mixed(self, target: Value) -> None:
        """Take note that what requires grad is put into something, of this run alone if only it has that."""
        self._effects.is_mixed = True
        self._is_mixed |= any(each != OWN and each.kind is not Kind.MADE for each in target.roots)

    def set_attribute(self, value: Value, name: str, given: Value, node: ast.AST, frame: Frame) -> None:
        """Assign an attribute, of which other runs may read what is put into it."""
        if self.stack and getattr(self.stack[-1], "name", "") != "__init__":
            kept = (each for each in given.things if isinstance(each, (Tensor, Fixed, Box, Object)))
            if any(is_constant(of(each)) for each in kept):
                self._effects.kept.add(name)
        if any(isinstance(each, ModelSetting) for each in value.things):
            self.mix(value, (given,))
        super().set_attribute(value, name, given, node, frame)

    def attribute(
        self, value: Value, name: str, node: ast.AST, frame: Frame, *, is_optional: bool = False
    ) -> Value:
        """Return an attribute, which another run may have given what requires grad."""
        self._effects.read.add(name)
        return super().attribute(value, name, node, frame, is_optional=is_optional)

    def set_by_name(self, call: Call, node: ast.expr, frame: Frame, *, is_raw: bool = False) -> Value:
        """Assign an attribute by a name, which runs nothing, whatever the name is."""
        self._is_setting = True
        try:
            return super().set_by_name(call, node, frame, is_raw=is_raw)
        finally:
            self._is_setting = False

    _call_setattr = set_by_name

    def narrow(self, test: ast.expr, frame: Frame, *, holds: bool) -> None:
        """Take from a name what it cannot be where a test holds; also whether it is a list or a tuple."""
        super().narrow(test, frame, holds=holds)
        name, kinds = _asked_for(test)
        if name in frame.names:
            value = frame.names[name]
            kept = (each for each in value.things if _may_be(each, kinds, is_one=holds))
            frame.names[name] = Value(frozenset(kept), value.roots)

    def tensor(self, values: Iterable[Value], roots: Iterable[Root] = ()) -> Value:
        """Return a tensor that is computed from these, and record it if one was inside of a container."""
        values = tuple(values)
        if any(_is_inside(each, 3) for value in values for each in value.things):
            self.computes = True
        return super().tensor(values, roots)


def argument(name: str) -> Value:
    """Return what is known of an argument by its name: nobody trains with a cache while checkpointing."""
    if name in CACHE_ARGUMENTS:
        return of(Constant(False)) if name == USE_CACHE else NONE
    is_number = name.rpartition("_")[2] in _INTEGERS
    return of(Unknown(name, is_argument=True, is_constant=is_number), roots=(Root(Kind.INPUT, name),))


def _asked_for(test: ast.expr) -> tuple[str, frozenset[str]]:
    """Return the name of which a test asks whether it is a list or a tuple, and which; or no name."""
    is_asking = isinstance(test, ast.Call) and getattr(test.func, "id", "") == "isinstance"
    if not isinstance(test, ast.Call) or not is_asking or len(test.args) != 2:
        return "", frozenset()
    tested, classes = test.args
    each = classes.elts if isinstance(classes, ast.Tuple) else [classes]
    kinds = [_SEQUENCES.get(getattr(one, "id", "")) for one in each]
    is_known = all(kind is not None for kind in kinds)
    return getattr(tested, "id", "") if is_known else "", frozenset().union(*filter(None, kinds))


def _may_be(thing: Thing, kinds: frozenset[str], *, is_one: bool) -> bool:
    """Tell whether something may be a list or tuple of these kinds, or may be something else than one."""
    kind = "tuple" if isinstance(thing, Fixed) else thing.kind if isinstance(thing, Box) else ""
    if kind in kinds:
        return is_one
    return not (is_one and isinstance(thing, (Tensor, Constant, Box, Fixed)))


def _receiver(thing: Thing) -> Value:
    """Return of what something is a method, or otherwise the thing."""
    if isinstance(thing, (Bound, Method)):
        return thing.receiver
    if isinstance(thing, Partial):
        return join(map(_receiver, thing.function.things))
    return of(thing)


def _bound(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, call: Call
) -> Iterator[tuple[str, Value, bool]]:
    """Yield what each parameter gets, or further arguments by their names, and whether it is by keyword."""
    parameters = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    for name, value in zip(parameters[1:], call.positional[1:], strict=False):
        yield name, value, False
    for name, value in call.named:
        yield name, value, True
    taken = {*parameters[: len(call.positional)], *(name for name, _ in call.named)}
    others = [each for each in (*parameters, *(one.arg for one in node.args.kwonlyargs)) if each not in taken]
    for loose in (call.rest, call.options):
        if loose is not None:
            yield from ((name, loose, loose is call.options) for name in (*others, ""))


def _may_require_grad(value: Value, *, is_mixed: bool) -> bool:
    """Tell whether something may require grad, beside what users pass to the model."""
    things = [each for each in value.things if not (isinstance(each, Unknown) and each.is_argument)]
    return (is_mixed and _holds_tensor(of(*things), set())) or not is_constant(of(*things))


_PILES = (Fixed, Box, Object)


def _holds_tensor(value: Value, met: set[int]) -> bool:
    """Tell whether something may be a tensor, or hold one."""
    for each in value.things:
        if isinstance(each, (Tensor, Unknown, ModelSetting)):
            return True
        if isinstance(each, _PILES) and id(each) not in met:
            met.add(id(each))
            if any(_holds_tensor(one, met) for one in _inner(each)):
                return True
    return False


def _inner(pile: Fixed | Box | Object) -> Iterable[Value]:
    if isinstance(pile, Fixed):
        return pile.items
    return pile.attributes.values() if isinstance(pile, Object) else (pile.item,)


class _Marks:
    """The containers that blocks return, with their tensors known as such."""

    def __init__(self, spaces: Spaces) -> None:
        self._spaces = spaces
        self._inside: dict[Box, Box] = {}
        self._results: dict[Box, Box] = {}
        self._active: set[Box] = set()

    def of(self, value: Value) -> Value:
        """Return what a block returns, with its tensors in containers behind the first item known as such."""
        return Value(frozenset(map(self._result, value.things)), value.roots)

    def _result(self, thing: Thing) -> Thing:
        if isinstance(thing, Fixed):
            return Fixed(tuple(self._behind_first(thing.items)))
        if isinstance(thing, Box) and thing.kind == "tuple" and thing.first:
            first = self._behind_first(thing.first)
            return self._marked(self._results, thing, first, self._inner(thing.rest, is_inside=False))
        return thing

    def _marked(self, known: dict[Box, Box], box: Box, first: Iterable[Value], rest: Value) -> Box:
        is_new = box not in known
        marked = known.setdefault(box, Box(box.kind))
        has_changed = marked.lead(first, is_new=is_new)
        if marked.put(rest) or has_changed:
            self._spaces.version += 1
        return marked

    def _behind_first(self, items: Sequence[Value]) -> Iterator[Value]:
        yield from items[:1]
        yield from (self._inner(each, is_inside=False) for each in items[1:])

    def _inner(self, value: Value, *, is_inside: bool) -> Value:
        return Value(frozenset(self._thing(each, is_inside) for each in value.things), value.roots)

    def _thing(self, thing: Thing, is_inside: bool) -> Thing:
        if isinstance(thing, Tensor) and is_inside and not thing.is_constant:
            return Tensor(is_inside=True)
        if isinstance(thing, Fixed):
            return Fixed(tuple(self._inner(each, is_inside=True) for each in thing.items))
        if isinstance(thing, Box):
            if thing in self._active:  # It holds itself.
                return self._inside.setdefault(thing, Box(thing.kind))
            self._active.add(thing)
            first = [self._inner(each, is_inside=True) for each in thing.first]
            marked = self._marked(self._inside, thing, first, self._inner(thing.rest, is_inside=True))
            self._active.discard(thing)
            return marked
        return thing


def _is_inside(thing: Thing, depth: int) -> bool:
    if isinstance(thing, Tensor):
        return thing.is_inside
    if depth and isinstance(thing, Fixed):
        return any(_is_inside(each, depth - 1) for item in thing.items for each in item.things)
    return (
        bool(depth)
        and isinstance(thing, Box)
        and any(_is_inside(each, depth - 1) for each in thing.item.things)
    )


def _holds_gradients(value: Value) -> bool:
    return any(
        isinstance(each, (Fixed, Box, Object)) and not is_constant(Value(frozenset((each,))))
        for each in value.things
    )
