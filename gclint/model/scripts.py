"""What a training script does: which models and arguments it makes, and what it calls with them.

Scripts are followed like all other code, from module level through all functions. What calls of the training
libraries give is told apart by the place of the call, so that arguments are known to be those of a trainer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gclint.code.file import SourceFile
from gclint.code.names import names
from gclint.code.naming import names_model
from gclint.code.project import Project
from gclint.code.walk import walk
from gclint.model import known
from gclint.model.attributes import new_spaces
from gclint.model.cache_values import DICTS, CacheValues
from gclint.model.frames import Frame
from gclint.model.notes import Kind
from gclint.model.objects import TooLong
from gclint.model.spaces import Space, Spaces
from gclint.model.values import (
    NEVER,
    Box,
    Call,
    Class,
    Constant,
    External,
    Field,
    Fixed,
    Function,
    Imported,
    Returned,
    Thing,
    Value,
    of,
    unknown,
)

ITEM = "[]"
PACKAGES = known.TRAINING_PACKAGES | {"torch"}
"""The packages whose functions are known by their names, also where their code is among the given files."""
WRAPPERS = frozenset(
    ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")
)
_SAME = names("bfloat16 cpu cuda double eval float half requires_grad_ to train")
"""The methods of a model that return the model."""
_OTHER_FRAMEWORKS = ("Flax", "TF")
_OF_TRAINING = ("_wrap_model", "_inner_training_loop", "create_accelerator_and_postprocess", "train")
"""The methods of a trainer by which it may train otherwise."""
_CHANGING_ITEMS = frozenset(("__setitem__", "__delitem__"))
_MARK = " called "
"""How names of variables begin, which no code can have, for the calls that may have been made."""
_DEEPEST = 8
_ROUNDS = 4
_MOST_STEPS = 40_000
_UNKNOWN = unknown("an argument")


@dataclass(frozen=True)
class Done:
    """A call, or an assignment of an attribute, that a script makes."""

    name: str
    """The dotted name of the function; of a method or attribute, the name."""
    receiver: Returned | None
    """What has the method or attribute."""
    node: ast.AST
    file: SourceFile
    call: Call
    """The arguments; of an assignment, the value."""
    before: frozenset[ast.AST] = field(default=frozenset(), compare=False)
    """The calls of the function around it that may have been made before."""
    is_certain: bool = True
    """Whether nothing else may be called, or get the attribute, at this place."""
    is_tried: bool = False
    """Whether it is in a ``try`` statement that handles errors."""

    @property
    def path(self) -> tuple[str, ...]:
        """The attributes by which the script gets to what is called or assigned."""
        return (*(self.receiver.path if self.receiver else ()), self.name)


_Record: TypeAlias = "dict[tuple[ast.AST, str], list[Done]]"


class Script:
    """What the code of a file does, as far as it was followed."""

    def __init__(self, certain: dict[Box, dict[str, ast.expr | None]]) -> None:
        """Start with nothing; ``certain`` has the names that a dict is made with, whatever else it gets."""
        self.calls: _Record = {}
        """What is called, by the place: several calls where a function is entered with several values."""
        self.set: _Record = {}
        """Which attributes are assigned, by the place."""
        self._certain = certain
        self._contents: dict[Box, Value] = {}
        """What containers hold, once all is followed."""

    def finish(self, boxes: Iterable[Box]) -> None:
        """Keep what containers hold, which are cleared afterwards, and put what is recorded in order."""
        self._contents = {each: each.item for each in boxes}
        for found in (*self.calls.values(), *self.set.values()):
            found.sort(key=_row)  # What a place may get is followed in the order of a set.

    def called(self, *names: str) -> Iterator[Done]:
        """Yield the calls of functions with these dotted names, or of methods with these names.

        A place where different things may be called, or with different values, is left out.
        """
        for found in self.calls.values():
            if found[0].name in names and _is_one(found):
                yield found[0]

    def places(self, *names: str) -> Iterator[Sequence[Done]]:
        """Yield all that may be called at each place where it is a function with one of these names."""
        for found in self.calls.values():
            if found[0].name in names and all(each.is_certain for each in found):
                yield found

    def assigned(self, name: str) -> Iterator[Sequence[Done]]:
        """Yield all that may get an attribute of a name, at each place where it is assigned."""
        for found in self.set.values():
            if found[0].name == name and all(each.is_certain for each in found):
                yield found

    def about(self, things: Iterable[Returned]) -> Iterator[Done]:
        """Yield all that may be called or assigned of some things, or of their parts."""
        nodes = {each.node for each in things}
        for found in (*self.calls.values(), *self.set.values()):
            yield from (each for each in found if each.receiver and each.receiver.node in nodes)

    def items(self, thing: Thing) -> tuple[Value, ...]:
        """Return what a tuple or another container holds; nothing for anything else."""
        if isinstance(thing, Fixed):
            return thing.items
        return (self._contents.get(thing, _UNKNOWN),) if isinstance(thing, Box) else ()

    def taking(self, thing: Returned) -> Iterator[Done]:
        """Yield the calls that may get a thing itself, or a part of it."""
        for found in self.calls.values():
            yield from (each for each in found if any(self._may_hold(one, thing) for one in each.call.all()))

    def _may_hold(self, value: Value, thing: Returned, depth: int = 3) -> bool:
        """Return whether a value may be a thing, a part of it, or a container of these."""
        for each in value.things:
            if isinstance(each, Returned):
                if each.node is thing.node and each.path[: len(thing.path)] == thing.path:
                    return True
                continue
            inside = (each.value,) if isinstance(each, Field) else self.items(each)
            if depth and any(self._may_hold(one, thing, depth - 1) for one in inside):
                return True
        return False

    def argument(self, done: Done, *names: str, index: int | None = None) -> Value | None:
        """Return what a call passes under one of some names; None if nothing is passed for certain."""
        call = done.call
        if call.rest is not None:
            return _UNKNOWN
        if index is not None and index < len(call.positional):
            return call.positional[index]
        named = dict(call.named)
        for name in names:
            if name in named:
                return named[name]
        return None if call.options is None else self._within(call.options, names)

    def under(self, value: Value, name: str) -> Value | None:
        """Return what a dict has under a name; None if it has nothing there for certain."""
        return self._within(value, (name,))

    def written(self, value: Value, name: str) -> ast.expr | None:
        """Return the expression of what a dict has under a name, where the dict is written."""
        (only,) = value.things if len(value.things) == 1 else (None,)
        return self._certain.get(only, {}).get(name) if isinstance(only, Box) else None

    def _within(self, value: Value, names: Sequence[str]) -> Value | None:
        (only,) = value.things if len(value.things) == 1 else (None,)
        if not isinstance(only, Box) or only.kind not in DICTS:
            return _UNKNOWN
        items = self.items(only)[0].things
        if not all(isinstance(each, Field) for each in items):
            return _UNKNOWN
        found = [each for each in items if isinstance(each, Field) and each.name in names]
        if not found:
            return None
        certain = self._certain.get(only, {})
        return found[0].value if len(found) == 1 and found[0].name in certain else _UNKNOWN


def _row(done: Done) -> tuple[int, int]:
    """Return where what has the method or attribute was made."""
    node = None if done.receiver is None else done.receiver.node
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def script_of(project: Project, file: SourceFile) -> Script:
    """Return what the code of a file does; nothing if it is too long to follow."""
    readers: list[_ScriptReader] = []
    spaces = Spaces(project, lambda space: readers[0].module(space), new_spaces(project).search)
    reader = _ScriptReader(spaces)
    readers.append(reader)
    try:
        for _ in range(_ROUNDS):
            version = spaces.version
            reader.begin(spaces.of(file))
            if version == spaces.version:
                break
        reader.script.finish(spaces.boxes.values())
        return reader.script if reader.is_complete else Script({})
    except (TooLong, RecursionError):
        return Script({})
    finally:
        spaces.forget()


class _ScriptReader(CacheValues):
    """Follows a script, and records what it calls of the training libraries."""

    def __init__(self, spaces: Spaces) -> None:
        super().__init__(spaces, is_quiet=True, most_steps=_MOST_STEPS)
        self._certain: dict[Box, dict[str, ast.expr | None]] = {}
        self.script = Script(self._certain)
        self._begun = set[ast.AST]()
        """The functions that were entered."""
        self._decorated: list[Value] = []
        """The functions and classes of which an unknown decorator may make something else."""
        self._is_certain = True
        """Whether nothing else may be called by the call that is being followed."""

    def begin(self, space: Space) -> None:
        """Follow a module, and then those of its functions that nothing in it calls, with any arguments."""
        nodes = () if space.tree is None else walk(space.tree)
        used = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
        # What may be called here comes last, since only the others can be known to be called from elsewhere.
        named = [space.value(name) or NEVER for name in sorted(space.names(), key=used.__contains__)]
        for value in [*named, *self._decorated]:
            for thing in value.things:
                if isinstance(thing, Function) and thing.space is space and thing.node not in self._begun:
                    self.run_function(thing, space)
                elif isinstance(thing, Class) and thing.space is space:
                    made = self.make_anyhow(thing, space.frame)
                    members = [
                        key
                        for key, value in self.spaces.members[thing].items()
                        if not any(getattr(each, "node", None) in self._begun for each in value.things)
                    ]
                    self.run_methods(thing, made, space, members)

    def argument(self, node: ast.arg, default: ast.expr | None, frame: Frame) -> Value:
        """Return that nothing is known of what a caller passes who is not seen."""
        return unknown(f"`{node.arg}`")

    def _enter(self, function: Function, call: Call, inner: Frame) -> Value:
        self._begun.add(function.node)
        further = function.node.args.kwarg
        if further is not None:
            passed = dict.fromkeys([name for name, _ in call.named])
            box = self.box(further, "dict")
            self._certain[box] = {each: None for each in self._certain.get(box, passed) if each in passed}
        return super()._enter(function, call, inner)

    def decorated(self, value: Value, decorators: Sequence[ast.expr], frame: Frame) -> Value:
        """Return what decorators make of a function or class, which is followed all the same."""
        made = super().decorated(value, decorators, frame)
        if made != value and frame is frame.space.frame and value not in self._decorated:
            self._decorated.append(value)
        return made

    def resolved(self, value: Value) -> Value:
        """Return a value with what is imported by its name, in place of the imports.

        Other modules are not followed: what a finding rests on stands in the script itself.
        """
        imported = [each for each in value.things if isinstance(each, Imported)]
        names = (("." * each.level + each.module, each.name) for each in imported)
        external = (External(".".join(filter(None, parts))) for parts in names)
        return Value(value.things.difference(imported).union(external), value.roots) if imported else value

    # -- what is recorded

    def _record(
        self,
        where: _Record,
        name: str,
        receiver: Returned | None,
        call: Call,
        node: ast.AST,
        frame: Frame,
        *,
        is_certain: bool = True,
    ) -> None:
        is_asked = where is self.script.set or (
            receiver is None and name.partition(".")[0] in known.TRAINING_PACKAGES
        )
        marks = (each for each in frame.names if is_asked and each.startswith(_MARK))
        earlier = (thing for key in marks for thing in frame.names[key].things)
        before = frozenset(each.node for each in earlier if isinstance(each, Returned))
        done = Done(name, receiver, node, frame.space.file, call, before, is_certain, self.caught > 0)
        found = where.setdefault((node, name), [])
        if done not in found:
            found.append(done)
        if receiver is not None and isinstance(node, ast.expr):
            frame.give(f"{_MARK}{id(node)}", of(Returned(name, node)))

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        if name in DICTS:
            return self._dict(name, call, node)
        if name.partition(".")[0] not in PACKAGES:
            return super()._call_external(name, call, node, frame)
        self._record(self.script.calls, name, None, call, node, frame, is_certain=self._is_certain)
        if name in WRAPPERS or name.partition(".")[0] in known.TRAINING_PACKAGES:
            self._call_back(call, node, frame)
            return of(Returned(name, node))
        return super()._call_external(name, call, node, frame)

    def _call(self, thing: Thing, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        self._is_certain = _are_alike(function)
        if not isinstance(thing, Returned):
            return super()._call(thing, function, call, node, frame)
        if not thing.path:
            self._record(self.script.calls, "__call__", thing, call, node, frame)
            return unknown("what a model gives")
        *path, name = thing.path
        receiver = Returned(thing.name, thing.node, tuple(path))
        self._record(self.script.calls, name, receiver, call, node, frame, is_certain=self._is_certain)
        if name in _SAME:
            return of(receiver)
        return of(Returned(".".join((thing.name, *thing.path)), node))

    def deny(
        self, call: Call, node: ast.expr, frame: Frame, kind: Kind = Kind.UNKNOWN, external: str = ""
    ) -> Value:
        """Record that something gets the arguments of which nothing is known."""
        self._record(self.script.calls, external, None, call, node, frame)
        result = super().deny(call, node, frame, kind, external)
        for each in (thing for value in call.all() for thing in value.things):
            if isinstance(each, Box):
                self.fill(each, _UNKNOWN)
        return result

    def make(self, kind: Class, call: Call, node: ast.AST, frame: Frame) -> Value:
        """Return an object; a subclass of a trainer that is made like one counts as one."""
        base = next((each for each in self.line(kind) if isinstance(each, str)), None)
        if base is None or not base.endswith("Trainer") or not isinstance(node, ast.expr):
            return super().make(kind, call, node, frame)
        if self.find(kind, "__init__") or any(self.find(kind, each) for each in _OF_TRAINING):
            return super().make(kind, call, node, frame)
        return self._call_external(base, call, node, frame)

    def set_attribute(self, value: Value, name: str, given: Value, node: ast.AST, frame: Frame) -> None:
        """Assign an attribute, and record that."""
        for each in value.things:
            receiver = each if isinstance(each, Returned) else None
            certain = _are_alike(value)
            self._record(self.script.set, name, receiver, Call((given,)), node, frame, is_certain=certain)
        super().set_attribute(value, name, given, node, frame)

    def special(
        self, value: Value, names: Sequence[str], node: ast.AST, frame: Frame, *given: Value
    ) -> Value:
        """Follow special methods, and record what changes an item."""
        for each in value.things if _CHANGING_ITEMS.intersection(names) else ():
            if isinstance(each, Returned):
                self._record(self.script.set, ITEM, each, Call(given), node, frame)
        return super().special(value, names, node, frame, *given)

    # -- what libraries give

    def _attribute(
        self, thing: Thing, value: Value, name: str, node: ast.AST, frame: Frame, is_optional: bool
    ) -> Value:
        if isinstance(thing, Returned):
            return _part(thing, name)
        if name == known.CHECKPOINT_FUNCTION:
            return _UNKNOWN  # It has its arguments from where checkpointing was enabled.
        return super()._attribute(thing, value, name, node, frame, is_optional)

    def _item(self, thing: Thing, index: int | None) -> Value:
        if isinstance(thing, Returned):
            return _part(thing, ITEM)
        return super()._item(thing, index)

    # -- dicts, of which it matters what they have for certain

    def _value_dict(self, node: ast.Dict, frame: Frame) -> Value:
        made = super()._value_dict(node, frame)
        given = zip(node.keys, node.values, strict=True)
        literal = [(key.value, value) for key, value in given if isinstance(key, ast.Constant)]
        self._note_names(made, {key: value for key, value in literal if isinstance(key, str)})
        return made

    def _dict(self, name: str, call: Call, node: ast.expr) -> Value:
        made = super()._dict(name, call, node)
        keywords = node.keywords if isinstance(node, ast.Call) else ()
        self._note_names(made, {each.arg: each.value for each in keywords if each.arg})
        return made

    def _note_names(self, made: Value, names: Mapping[str, ast.expr]) -> None:
        for each in made.things:
            if isinstance(each, Box):
                self._certain[each] = dict(names)

    def unpacked(self, value: Value) -> Value:
        """Return what ``**`` takes out of a value: a dict as it is, since it matters which one."""
        return value if _is_dict(value) else super().unpacked(value)

    def given_loosely(self, name: str, loose: Sequence[Value]) -> list[Value]:
        """Return what a parameter may get of what a call unpacks."""
        taken = [CacheValues.unpacked(self, each) if _is_dict(each) else each for each in loose]
        return super().given_loosely(name, taken)


def _are_alike(value: Value) -> bool:
    """Return whether a value is one thing, or the same part of one of several models of transformers."""
    returned = [each for each in value.things if isinstance(each, Returned)]
    return len(value.things) == 1 or (
        len(returned) == len(value.things)
        and len({each.path for each in returned}) == 1
        and all(is_model(Returned(each.name, each.node)) for each in returned)
    )


def _is_one(found: Sequence[Done]) -> bool:
    return len(found) == 1 and found[0].is_certain


def only_thing(value: Value | None) -> Thing | None:
    """Return what a value is; None if it may be different things."""
    things = NEVER.things if value is None else value.things
    return next(iter(things)) if len(things) == 1 else None


def only_returned(value: Value | None) -> Returned | None:
    """Return what a value is, if that is what a certain call has given."""
    found = only_thing(value)
    return found if isinstance(found, Returned) else None


def is_literally(value: Value | None, literal: object) -> bool:
    """Return whether a value is a certain literal, and nothing else."""
    found = only_thing(value)
    return isinstance(found, Constant) and found.value is literal


def is_model(thing: Returned | None) -> bool:
    """Return whether a call of transformers has given a model of torch, and this is the model itself."""
    if thing is None or thing.path:
        return False
    package, kind, maker = _split(thing.name)
    return (
        package == "transformers"
        and maker in known.MODEL_MAKERS
        and names_model(kind, is_librarys=True)
        and not kind.startswith(_OTHER_FRAMEWORKS)
    )


def class_of_model(thing: Returned) -> str:
    """Return the name of the class whose method or constructor has given a model."""
    return _split(thing.name)[1]


def _split(name: str) -> tuple[str, str, str]:
    """Return the package, the class and the method of a dotted name; a constructor counts as a maker."""
    package, *inner = name.split(".")
    if len(inner) > 1 and inner[-1] in known.MODEL_MAKERS:
        return package, inner[-2], inner[-1]
    return package, inner[-1] if inner else "", "from_config"


def _part(thing: Returned, name: str) -> Value:
    if len(thing.path) >= _DEEPEST:
        return unknown("a part of a part")
    return of(Returned(thing.name, thing.node, (*thing.path, name)))


def _is_dict(value: Value) -> bool:
    found = only_thing(value)
    return isinstance(found, Box) and found.kind in DICTS
