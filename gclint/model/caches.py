"""What may be passed where only a cache is expected, as far as it can be followed.

Only what is known to be a cache is one: what users of a model pass under the name of one, None, what a class
of caches makes, and parts of these; as long as nothing else is put into it, anywhere in the code that leads
to the call. Anything else, such as a learned prompt or the memory of earlier segments, is part of what the
model computes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gclint.model import known, tensors
from gclint.model.attributes import new_spaces
from gclint.model.calls import CHECKPOINTS
from gclint.model.entries import Entries
from gclint.model.frames import Frame
from gclint.model.gradients import is_constant
from gclint.model.leading import Leading
from gclint.model.notes import Kind
from gclint.model.objects import ITERATOR, TooLong, is_operation
from gclint.model.spaces import Space
from gclint.model.texts import texts
from gclint.model.values import (
    NEVER,
    NONE,
    PLAIN,
    TENSOR,
    Bound,
    Box,
    Call,
    Class,
    Constant,
    External,
    Field,
    Fixed,
    Function,
    Given,
    Made,
    Method,
    Object,
    Partial,
    Plain,
    Setting,
    Thing,
    Unknown,
    Value,
    join,
    of,
    unknown,
)
from gclint.releases import EVER_NEUTRALISED
from gclint.source.file import SourceFile
from gclint.source.names import names
from gclint.source.project import Project
from gclint.source.walk import walk
from gclint.verify.worker.vocabulary import PLAIN_CACHES, USE_CACHE

_ROUNDS = 4
_MOST_STEPS = 300_000
DROPPED = EVER_NEUTRALISED - {USE_CACHE}
"""The keywords whose values the base class replaces by None."""
_ARGUMENT = re.compile(
    rf"(?:\w+_)?(?:{'|'.join(sorted(DROPPED))}|caches?|past)|{'|'.join(sorted(PLAIN_CACHES))}"
)
"""Matches the names under which a model receives a cache as an argument."""
_MAKING = re.compile(r"(?:\w+\.)*(?:[A-Z]\w*)?Cache(?:\.from_legacy_cache)?")
"""Matches what makes a cache: a class of caches, or its conversion from tuples."""
_CACHE = "cache"
"""The kind of a box that stands for a cache: its items are what is put into it."""
_DICTS = frozenset(("dict", "collections.OrderedDict", "collections.defaultdict"))
_FIGURES = names("shape dtype device ndim")
_COUNTS = names(
    "get_seq_length get_max_cache_shape get_max_length get_usable_length get_mask_sizes size dim numel"
)
"""Methods of caches and their tensors that give numbers."""
_OF_CHECKPOINTS = names("use_reentrant preserve_rng_state context_fn determinism_check debug early_stop")
"""What a checkpoint function takes for itself."""
_GIVING_ARGUMENTS = names("max min sum contextlib.nullcontext operator.attrgetter")
"""Functions that may give what they get, or a part of it."""
_CONVERTING = frozenset(("to", "to_legacy_cache"))
"""Methods of caches and their tensors that return the same in another form or place."""
_RESULT = of(Unknown("what a module gives", is_argument=True))
_HARMLESS = (Plain, Constant, Setting, External, Class)


_Assigned: TypeAlias = "Mapping[str, Sequence[ast.expr]]"


@dataclass(frozen=True)
class Doubt:
    """Why an expression may be something else than a cache."""

    file: SourceFile
    node: ast.expr
    """The first expression that is not known to be one."""


def doubts(
    project: Project,
    file: SourceFile,
    others: Iterable[SourceFile],
    arguments: Collection[ast.expr],
    runs: Mapping[ast.Call, Collection[str]],
    owners: Collection[str],
) -> Mapping[ast.expr, Doubt | None]:
    """Return for arguments of calls why they may be something else than a cache; None for caches.

    Args:
        project: the files of a run.
        file: the module with the calls.
        others: further modules that may run its code.
        arguments: the expressions, of which those behind ``**`` may hold a cache under its name.
        runs: calls of blocks, which use caches as such, with the names of the blocks.
        owners: the names of the classes whose methods contain the calls.
    """
    spaces = new_spaces(project)
    leading = Leading(owners, runs)
    reader = _Reader(spaces.of(file), arguments, runs, leading)
    try:
        reader.begin(map(spaces.of, (file, *others)))
        for _ in range(_ROUNDS):
            version = spaces.version
            reader.run_all()
            if version == spaces.version and not spaces.hooked:
                return dict(reader.judged())
    except (TooLong, RecursionError):
        pass
    finally:
        spaces.forget()
    return {each: Doubt(file, each) for each in arguments}


class _Reader(Entries):
    """Follows what leads to some calls, and records what is passed there."""

    def __init__(
        self,
        space: Space,
        arguments: Collection[ast.expr],
        runs: Mapping[ast.Call, Collection[str]],
        leading: Leading,
    ) -> None:
        super().__init__(space.spaces, is_quiet=True, most_steps=_MOST_STEPS)
        self.space = space
        self._arguments = arguments
        self._passed: dict[ast.expr, Value] = {}
        """What the arguments may be, and what these come from in their functions."""
        self._assigned: dict[ast.expr, _Assigned] = {}
        """What names are given in the functions of expressions."""
        self._filling: dict[Thing, Doubt] = {}
        """Where something else is put into caches."""
        self._calls: list[Doubt] = []
        """The calls that are being followed."""
        self._runs = runs
        self._leading = leading
        self._entries: dict[tuple[Class | Function, str], set[ast.AST]] = {}
        """The functions that are followed with any arguments, and the methods by their classes and names."""
        self._usual = set[Object]()
        """The modules that are made with settings and the like."""
        self._is_over = False
        """Whether nobody uses what the function gives that is being followed."""
        self._last = set[ast.AST]()
        """The calls behind which functions do not lead to the calls any more."""
        self._unmade: dict[Object, tuple[Call, ast.AST, Frame]] = {}
        """The modules that were made, and are followed only once one of their attributes is read."""

    # -- where to begin

    def begin(self, spaces: Iterable[Space]) -> None:
        """Find the functions and methods that others may run and that lead to the calls."""
        homes = [each for each in spaces if each.tree is not None]
        for space in homes:
            self._leading.read(space)
        for function in self._leading.own:
            nodes = set(walk(function))
            assigned = _assigned(nodes)
            for argument in self._arguments:
                if argument in nodes:
                    self._watch(argument, assigned)
        for space in homes:
            for name in sorted(self._leading.names.intersection(space.names())):
                for thing in (space.value(name) or NEVER).things:
                    if isinstance(thing, Function) and thing.space is space:
                        self._entries[thing, ""] = {thing.node}
                    elif isinstance(thing, Class) and thing.space is space:
                        self._begin_in(thing)
            # Whatever decorators make of a class.
            for node in space.tree.body if space.tree is not None else ():
                if isinstance(node, ast.ClassDef) and node.name in self._leading.names:
                    self._begin_in(self.class_of(node, space, None))

    def _begin_in(self, kind: Class) -> None:
        line = [each for each in self.line(kind) if isinstance(each, Class)]
        for name in dict.fromkeys(name for each in line for name in self.spaces.members[each]):
            found = self.find(kind, name)
            nodes: set[ast.AST] = {
                each.node for each in (found[0].things if found else ()) if isinstance(each, Function)
            }
            if any(map(self._leading.calls, nodes)):
                self._entries[kind, name] = nodes

    def run_all(self) -> None:
        """Follow the functions and methods that lead to the calls, with any arguments."""
        for thing, name in self._entries:
            if isinstance(thing, Function):
                self.run_function(thing, thing.space)
            else:
                self.run_methods(thing, self.make_anyhow(thing, thing.space.frame), thing.space, [name])

    def argument(self, node: ast.arg, default: ast.expr | None, frame: Frame) -> Value:
        """Return what users of a model pass: a cache under the name of one."""
        ways = [] if default is None else [self.value(default, frame)]
        return join((self._argument(node.arg, node), *ways))

    def further(self, node: ast.arg, frame: Frame) -> Value:
        """Return what users of a model pass to further parameters of what is called with it."""
        return of(Given(node))

    def _argument(self, name: str, node: ast.arg) -> Value:
        if name == USE_CACHE:
            return PLAIN
        if _ARGUMENT.fullmatch(name):
            return join((of(self.box(node, _CACHE)), NONE))
        return of(Unknown(name, is_argument=True))

    def enter(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None = None
    ) -> Value:
        """Follow a function: only as far as it leads to the calls where nobody uses what it gives."""
        outer = self._is_over
        self._is_over = not self.stack or (outer and node in self._last)
        if self.stack and self._is_over and self._is_followed_anyhow(function, call, node, frame):
            self._is_over = outer
            return _RESULT
        try:
            return super().enter(function, call, node, frame, owner)
        finally:
            self._is_over = outer

    def _is_followed_anyhow(self, function: Function, call: Call, node: ast.AST, frame: Frame) -> bool:
        """Tell whether a call shows no more than any call does, once its caches are taken for any caches."""
        arguments = function.node.args
        parameters = [*arguments.posonlyargs, *arguments.args]
        by_name = {each.arg: each for each in (*parameters, *arguments.kwonlyargs)}
        loose = [each for each in (call.rest, call.options) if each is not None]
        given = dict(zip(by_name, call.positional, strict=False)) | dict(call.named)
        if len(call.positional) > len(parameters) or not self._is_entry(function, call):
            return False
        for thing in (each for value in loose for each in value.things):
            if isinstance(thing, Field):
                given[thing.name] = join((given.get(thing.name, NEVER), thing.value))
            elif not isinstance(thing, Given):
                return False
        caches = {name for name in given if _ARGUMENT.fullmatch(name) and name != USE_CACHE}
        own = {parameters[0].arg} if function.owner is not None and parameters else set[str]()
        others = (value for name, value in given.items() if name not in caches | own)
        if not given.keys() <= by_name.keys() or any(map(self._may_hold, others)):
            return False
        written = {each.arg: each.value for each in getattr(node, "keywords", ())}
        for name in caches:
            self._calls += [Doubt(frame.space.file, written[name])] if name in written else []
            self._link(by_name[name], given[name])
            del self._calls[len(self._calls) - (name in written) :]
        return True

    def _is_entry(self, function: Function, call: Call) -> bool:
        """Tell whether a function is followed with any arguments."""
        if function.owner is None:
            return function.node in self._entries.get((function, ""), ())
        name = getattr(function.node, "name", "")
        return all(
            isinstance(each, Object)
            and function.node in self._entries.get((each.kind, name), ())
            and each in self._usual
            for value in call.positional[:1]
            for each in value.things
        )

    def _link(self, parameter: ast.arg, value: Value) -> None:
        """Take a cache that is passed and the one that any caller passes for the same."""
        cache = self.box(parameter, _CACHE)
        self.fill(cache, value if _is_cache(value) else join((value, TENSOR)))
        for thing in self._reached([value]):
            if isinstance(thing, Box):
                self.fill(thing, of(cache))

    def entry(self, function: Function, call: Call, owner: Class | None) -> object:
        """Return what is the same for calls of which following one is enough."""
        return super().entry(function, call, owner), self._is_over

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> Value:
        """Follow the body of a function, and return what it returns."""
        last = self._leading.last(self.stack[-1]) if self._is_over else None
        if last is None:
            return super().run(body, frame)
        self._last.update(self._leading.last_calls(last))
        self.body(body[: body.index(last) + 1], frame)
        return _RESULT

    # -- what is recorded

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """Follow an expression, and record it if it is passed."""
        result = super().value(node, frame)
        if node in self._passed:
            self._passed[node] = join((self._passed[node], result))
        return result

    def judged(self) -> Iterator[tuple[ast.expr, Doubt | None]]:
        """Yield what was passed, and why it may be something else than a cache."""
        for node in self._arguments:
            value = self._passed.get(node, NEVER)
            is_known = bool(value.things) and (_is_cache(value) or _has_caches(value))
            yield node, None if is_known else self._doubt(node, {node})

    def _doubt(self, node: ast.expr, met: set[ast.expr]) -> Doubt:
        """Return from where an expression may get something else than a cache, as far as that is known."""
        for each in self._sources(node):
            if each not in met and not _is_cache(self._passed.get(each, NEVER)):
                met.add(each)
                return self._doubt(each, met)
        value = self._passed.get(node, NEVER)
        causes = [self._filling[each] for each in self._reached([value]) if each in self._filling]
        return causes[0] if causes else Doubt(self.space.file, node)

    def _sources(self, node: ast.expr) -> Sequence[ast.expr]:
        """Return the expressions that another one is, or holds, as its function is written."""
        if isinstance(node, ast.Name):
            return self._assigned.get(node, {}).get(node.id, ())
        if isinstance(node, ast.IfExp):
            return node.body, node.orelse
        if isinstance(node, ast.BoolOp):
            return node.values
        if isinstance(node, ast.Subscript):
            return (node.value,)
        return node.elts if isinstance(node, (ast.Tuple, ast.List)) else ()

    def _watch(self, node: ast.expr, assigned: _Assigned) -> None:
        """Record what an expression is, and what it comes from."""
        if node not in self._passed:
            self._passed[node], self._assigned[node] = NEVER, assigned
            for each in self._sources(node):
                self._watch(each, assigned)

    def fill(self, box: Box, value: Value) -> None:
        """Add what an item may be, and keep where the first thing is put into a cache that makes it none."""
        if box.kind == _CACHE and self._calls and box not in self._filling and not _is_harmless(value):
            self._filling[box] = self._calls[-1]
        super().fill(box, value)

    def _value_call(self, node: ast.Call, frame: Frame) -> Value:
        if node not in self._runs or not self._leading.names.isdisjoint(self._runs[node]):
            self._calls.append(Doubt(frame.space.file, node))
            result = super()._value_call(node, frame)
            self._calls.pop()
            return result
        # What a block does with its cache is what a cache is for.
        for each in (node.func, *node.args, *(one.value for one in node.keywords)):
            self.value(each, frame)
        return _RESULT

    # -- what caches hold

    def mix(self, target: Value, values: Iterable[Value]) -> None:
        """Follow that values are put into another one in place."""
        caches = [cache for cache in map(_cache_of, target.things) if cache is not None]
        for value in values if caches else ():
            for cache in caches:
                self.fill(cache, value)

    def _in_cache(self, cache: Box, name: str, call: Call) -> Value:
        """Return what a method of a cache gives, which may put its arguments into it."""
        if name in _COUNTS or name in tensors.METHODS_ONLY_READ:
            return PLAIN
        if name in tensors.VIEWS or name in _CONVERTING:
            return of(cache)
        for each in call.all():
            self.fill(cache, each)
        return join((of(cache), TENSOR))

    def make(self, kind: Class, call: Call, node: ast.AST, frame: Frame) -> Value:
        """Return an object; a module is only followed once one of its attributes is read."""
        is_of_caches = self._is_of_caches(kind)
        if not is_of_caches and self.is_module(kind) and not any(map(self._may_hold, call.all())):
            made = self.spaces.objects.get((kind, call))
            if made is None:
                made = self.spaces.objects[kind, call] = Object(kind)
                self._unmade[made] = call, node, frame
                self._usual.add(made)
            return of(made)
        found = super().make(kind, call, node, frame)
        if not is_of_caches:
            return found
        learned = () if is_constant(found) else (TENSOR,)
        return self.filled(node, _CACHE, (*call.all(), *learned))

    def _follow(self, thing: Object) -> None:
        """Follow what makes a module, if that was not done yet."""
        unmade = self._unmade.pop(thing, None)
        if unmade is not None:
            super().make(thing.kind, *unmade)

    def spoil(self, thing: Object, by: str) -> None:
        """Forget what an object holds, unless it is taken for a cache anyway."""
        if not self._is_of_caches(thing.kind):
            super().spoil(thing, by)

    def _is_of_caches(self, kind: Class) -> bool:
        """Tell whether a class is one of caches, by its name and its bases or methods."""
        line = self.line(kind)
        bases = [each.node.name if isinstance(each, Class) else each or "" for each in line]
        is_derived = any(map(_MAKING.fullmatch, bases[1:]))
        has_update = any(name.startswith("update") for name in self._members(kind))
        return _MAKING.fullmatch(kind.node.name) is not None and (is_derived or has_update)

    def _may_hold(self, value: Value) -> bool:
        """Tell whether a cache may be reached from a value, or something that runs the calls."""
        return any(
            isinstance(each, (Box, Method, Function, Bound, Partial, Given, Field))
            or (isinstance(each, Fixed) and any(map(self._may_hold, each.items)))
            or (isinstance(each, Object) and self._may_lead(each))
            for each in value.things
        )

    def _may_lead(self, thing: Object) -> bool:
        return not self.is_module(thing.kind) or thing.kind.node.name in self._leading.names

    def _put_attribute(self, thing: Object, name: str, given: Value) -> None:
        """Assign an attribute; what may be given in place of a known module is taken to be alike."""
        self._follow(thing)
        held = join((thing.attributes.get(name) or NEVER, given))
        if any(isinstance(each, (Object, Made)) for each in held.things):
            known_ones = frozenset(each for each in given.things if not isinstance(each, (Unknown, Plain)))
            given = Value(known_ones, given.roots)
        super()._put_attribute(thing, name, given)

    # -- what is not known

    def deny(self, call: Call, node: ast.expr, frame: Frame, kind: Kind = Kind.UNKNOWN) -> Value:
        """Follow that anything is put into what an unknown function gets, and that it calls it."""
        result = super().deny(call, node, frame, kind)
        for thing in self._reached(call.all()):
            if isinstance(thing, Box):
                self.fill(thing, result)
        handed = self._callable(call)
        self.call(handed, Call(rest=result, options=result), node, frame)
        return join((result, handed))

    def _callable(self, call: Call) -> Value:
        """Return what may run the calls, or change something, of what a call passes."""
        return Value(
            frozenset(
                each
                for each in self._reached(call.all())
                if isinstance(each, (Function, Bound, Partial))
                or (isinstance(each, Object) and self._may_lead(each))
            )
        )

    def _reached(self, values: Iterable[Value]) -> list[Thing]:
        """Return what values are, and what they hold."""
        waiting, found = list(values), dict[Thing, None]()
        while waiting:
            for thing in waiting.pop().things:
                if thing in found:
                    continue
                found[thing] = None
                if isinstance(thing, Box):
                    waiting.append(thing.item)
                elif isinstance(thing, Fixed):
                    waiting += thing.items
                elif isinstance(thing, (Method, Bound)):
                    waiting.append(thing.receiver)
                elif isinstance(thing, Field):
                    waiting.append(thing.value)
                elif isinstance(thing, Partial):
                    waiting += (thing.function, *thing.positional, *(each for _, each in thing.named))
                elif isinstance(thing, Object) and not self.is_module(thing.kind):
                    waiting += thing.attributes.values()
        return list(found)

    def read_global(self, node: ast.Name, found: Value, frame: Frame) -> Value:
        """Return a value of a module, which any code may change."""
        return _changeable(super().read_global(node, found, frame))

    def _value_name(self, node: ast.Name, frame: Frame) -> Value:
        found = super()._value_name(node, frame)
        return _changeable(found) if frame.declared.get(node.id) is frame.space.frame else found

    def global_value(self, node: ast.Name, frame: Frame) -> Value:
        """Return what a name of the module may be; where it comes from is often not known of caches."""
        found = super().global_value(node, frame)
        if _MAKING.fullmatch(node.id) and all(isinstance(each, Unknown) for each in found.things):
            return of(External(node.id))
        return found

    def _of_module(self, space: Space, value: Value, name: str, node: ast.AST, frame: Frame) -> Value:
        return _changeable(super()._of_module(space, value, name, node, frame))

    def _of_class(self, kind: Class, name: str, node: ast.AST, frame: Frame) -> Value:
        if name == "__init__" and self.find(kind, name) is None:
            return of(External("object.__init__"))
        return _changeable(super()._of_class(kind, name, node, frame))

    def _of_object(
        self, thing: Object, value: Value, name: str, node: ast.AST, frame: Frame, is_optional: bool
    ) -> Value:
        """Return an attribute, which any code may have assigned unless the function just did."""
        found = self.find(thing.kind, name)
        if found is not None and all(isinstance(each, Function) for each in found[0].things):
            return super()._of_object(thing, value, name, node, frame, is_optional)
        self._follow(thing)
        if found is None and name in known.MODEL_METHODS:
            return of(Method(value, name))
        if name == "__dict__":
            self.spoil(thing, "`__dict__`")
            return of(self._all_of(thing, node))
        result = super()._of_object(thing, value, name, node, frame, is_optional)
        held = thing.attributes.get(name)
        is_own = frame.receiver is not None and value.things <= frame.receiver.things
        is_new = is_own and f".{name}" in frame.names and found is None and "*" not in thing.attributes
        if is_new and held is not None:
            return join((result, held))
        return _changeable(result)

    def _all_of(self, thing: Object, node: ast.AST) -> Box:
        """Return a dict of all attributes that are known, and of the methods."""
        self._follow(thing)
        methods = [
            of(Bound(each, of(thing), kind))
            for kind in self.line(thing.kind)
            if isinstance(kind, Class)
            for value in self.spaces.members[kind].values()
            for each in value.things
            if isinstance(each, Function)
        ]
        box = self.box(node, "dict")
        for each in (*thing.attributes.values(), *methods):
            self.fill(box, each)
        return box

    def parts(self, thing: Object, node: ast.AST, *, is_deep: bool = False, is_named: bool = False) -> Box:
        """Return a dict or list of the modules that an object holds; ``is_deep`` if also those in them."""
        self._follow(thing)
        return super().parts(thing, node, is_deep=is_deep, is_named=is_named)

    def _call_getattr(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        result = super()._call_getattr(call, node, frame)
        if len(call.positional) < 2 or texts(call.positional[1]) is not None:
            return result
        held = [each for each in call.positional[0].things if isinstance(each, Object)]
        return join((result, *(self._all_of(each, node).item for each in held)))

    def _call_vars(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        result = super()._call_vars(call, node, frame)
        held = [each for value in call.positional for each in value.things if isinstance(each, Object)]
        return join((result, *(of(self._all_of(each, node)) for each in held)))

    def _value_yield(self, node: ast.Yield, frame: Frame) -> Value:
        super()._value_yield(node, frame)
        return unknown("what is sent")

    def _value_yieldfrom(self, node: ast.YieldFrom, frame: Frame) -> Value:
        super()._value_yieldfrom(node, frame)
        return unknown("what a generator returns")

    # -- calls

    def call(self, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a call gives, after following what it may run."""
        for thing in function.things:
            if isinstance(thing, Box) and thing.kind == _CACHE:
                self._in_cache(thing, "__call__", call)
        return super().call(function, call, node, frame)

    def _call_object(self, thing: Object, receiver: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        if not self._may_lead(thing) and not any(map(self._may_hold, call.all())):
            return _RESULT
        self._follow(thing)
        return super()._call_object(thing, receiver, call, node, frame)

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        if _MAKING.fullmatch(name):
            return self.filled(node, _CACHE, call.all())
        if name in _DICTS:
            return self._dict(name, call, node)
        if name in CHECKPOINTS and call.positional:
            named = tuple(each for each in call.named if each[0] not in _OF_CHECKPOINTS)
            return self.call(
                call.positional[0], Call(call.positional[1:], named, call.rest, call.options), node, frame
            )
        if name in known.RUNNING_NOTHING:
            return of(Unknown(f"what `{name}` gives", is_argument=True))
        if name in _GIVING_ARGUMENTS:
            return join((super()._call_external(name, call, node, frame), self._callable(call)))
        parent, _, last = name.rpartition(".")
        is_fresh = last in tensors.FRESH or last in tensors.VIEWS or last in tensors.FUNCTIONAL
        is_changing = parent == "torch.nn.init" or (parent in known.TORCH and not is_fresh)
        if is_changing and any(_cache_of(each) for each in self._reached(call.all())):
            return self.deny(call, node, frame)
        return super()._call_external(name, call, node, frame)

    def _call_of_module(
        self, thing: Object, receiver: Value, name: str, call: Call, node: ast.expr, frame: Frame
    ) -> Value:
        if name in known.MODEL_METHODS:
            return of(Unknown(f"what `{name}` gives", is_argument=True))
        return super()._call_of_module(thing, receiver, name, call, node, frame)

    def _call_back(self, call: Call, node: ast.expr, frame: Frame) -> None:
        """Follow functions that are handed to one of another package; parts of caches are none."""
        for value in call.all():
            kept = (each for each in value.things if isinstance(each, (Function, Bound, Partial)))
            super()._call_back(Call((Value(frozenset(kept)),)), node, frame)

    def given_loosely(self, name: str, loose: Sequence[Value]) -> list[Value]:
        """Return what a parameter may get of what a call unpacks."""
        return [self._named(value, name) for value in loose]

    def _named(self, value: Value, name: str) -> Value:
        """Return what may stand under a name among the items of dicts."""
        found = [
            (each.value if each.name == name else NEVER)
            if isinstance(each, Field)
            else self._argument(name, each.node)
            if isinstance(each, Given)
            else of(each)
            for each in value.things
        ]
        return join(found)

    # -- containers

    def under(self, name: str, value: Value) -> Value:
        """Return what a dict holds that has a value under a name."""
        return of(Field(name, value))

    def fields(self, call: Call) -> Sequence[Value]:
        """Return what an object holds that is made with some arguments, with the names."""
        more = (each for each in (*call.positional, call.rest, call.options) if each is not None)
        return [*(of(Field(name, value)) for name, value in call.named), *more]

    def unpacked(self, value: Value) -> Value:
        """Return what ``**`` takes out of a value, with the names."""
        dicts = [each for each in value.things if isinstance(each, Box) and each.kind != _CACHE]
        others = Value(value.things.difference(dicts), value.roots)
        return join((*(each.item for each in dicts), self.item(others)))

    def item(self, value: Value, index: int | None = None) -> Value:
        """Return an item of a value: a certain one, or any."""
        return _without_names(super().item(value, index))

    def _item(self, thing: Thing, index: int | None) -> Value:
        if _cache_of(thing) is not None:
            return of(thing)
        if isinstance(thing, Object) and self.is_module(thing.kind):
            self._follow(thing)
            return join((super()._item(thing, index), of(thing), *thing.attributes.values()))
        return super()._item(thing, index)

    def at(self, value: Value, index: Value) -> Value:
        """Return the item of a value that stands at an index, or under a key."""
        keys = texts(index)
        if not keys:
            return super().at(value, index)
        return join(self._at(each, key) for each in value.things for key in sorted(keys))

    def _at(self, thing: Thing, key: str) -> Value:
        if isinstance(thing, Box) and (thing.kind in _DICTS or _is_output(thing)):
            return _without_names(self._named(thing.item, key))
        return self.item(of(thing))

    def _attribute(
        self, thing: Thing, value: Value, name: str, node: ast.AST, frame: Frame, is_optional: bool
    ) -> Value:
        cache = _cache_of(thing)
        if cache is not None:
            return PLAIN if name in _FIGURES else of(Method(of(cache), name))
        if isinstance(thing, Box) and _is_output(thing) and not is_operation(name):
            return self._at(thing, name)
        if isinstance(thing, Fixed) or (isinstance(thing, Box) and thing.kind not in known.STACKS):
            return of(Method(of(thing), name))
        return super()._attribute(thing, value, name, node, frame, is_optional)

    def set_attribute(self, value: Value, name: str, given: Value, node: ast.AST, frame: Frame) -> None:
        """Assign an attribute of whatever a value may be."""
        boxes = [each for each in value.things if isinstance(each, Box) and _is_output(each)]
        for each in boxes:
            self.fill(each, self.under(name, given))
        super().set_attribute(Value(value.things.difference(boxes), value.roots), name, given, node, frame)

    def _call_method(
        self, receiver: Value, thing: Thing, name: str, call: Call, node: ast.expr, frame: Frame
    ) -> Value:
        cache = _cache_of(thing)
        if cache is not None:
            return self._in_cache(cache, name, call)
        if isinstance(thing, Box) and (thing.kind in _DICTS or _is_output(thing)):
            return self._in_dict(thing, receiver, name, call, node, frame)
        if isinstance(thing, (Box, Fixed)) and not is_operation(name):
            self.deny(Call((receiver, *call.all())), node, frame)
            return unknown(f"what `{name}` gives")
        return super()._call_method(receiver, thing, name, call, node, frame)

    def _in_dict(
        self, box: Box, receiver: Value, name: str, call: Call, node: ast.expr, frame: Frame
    ) -> Value:
        """Return what a method of a dict gives."""
        key, *rest = call.positional or (NEVER,)
        if name in ("update", "__init__", "__ior__"):
            for each in (*call.positional, *([] if call.options is None else [call.options])):
                self.fill(box, self._items_of(each))
            for field in self.fields(Call(named=call.named)):
                self.fill(box, field)
            return NONE if name == "update" else receiver
        if name in ("setdefault", "__setitem__"):
            self.fill(box, self.under_any(key, join(rest)))
        if name in ("get", "pop", "setdefault", "__getitem__"):
            return join((self.at(receiver, key), *rest, *([NONE] if name == "get" else [])))
        if name == "copy":
            return receiver
        if is_operation(name):
            return super()._call_method(receiver, box, name, call, node, frame)
        self.deny(Call((receiver, *call.all())), node, frame)
        return unknown(f"what `{name}` gives")

    def _items_of(self, value: Value) -> Value:
        """Return what a dict holds that is made of a value: a dict, or pairs of names and values."""
        dicts = [each for each in value.things if isinstance(each, Box) and each.kind in _DICTS]
        pairs = self.item(Value(value.things.difference(dicts), value.roots))
        return join((self.unpacked(of(*dicts)), self.item(pairs)))

    def _dict(self, name: str, call: Call, node: ast.expr) -> Value:
        given = call.positional[1:] if name == "collections.defaultdict" else call.positional
        made = [*map(self._items_of, given), *self.fields(Call(named=call.named, options=call.options))]
        return self.filled(node, name, made)

    # -- operators

    def combine(self, node: ast.AST, left: Value, right: Value, frame: Frame) -> Value:
        """Return what an operator makes of two values: of a cache and numbers, another one."""
        both = join((left, right))
        caches = [cache for cache in map(_cache_of, both.things) if cache is not None]
        if caches and all(_is_harmless(of(each)) for each in both.things):
            return self.filled(node, _CACHE, [each.item for each in caches])
        if isinstance(getattr(node, "op", None), ast.Mult):
            for pile, times in ((left, right), (right, left)):
                is_pile = all(isinstance(each, (Fixed, Box)) for each in pile.things)
                if is_pile and pile.things and all(isinstance(each, _HARMLESS) for each in times.things):
                    return self.filled(node, "list", [self.item(pile)])
        return super().combine(node, left, right, frame)

    def _value_boolop(self, node: ast.BoolOp, frame: Frame) -> Value:
        if isinstance(node.op, ast.Or):
            return super()._value_boolop(node, frame)
        found: list[Value] = []
        for each in node.values:
            value = self.value(each, frame)
            holds = self.decide(each, frame)
            if holds is False or each is node.values[-1]:
                found.append(value)
                break
            if holds is None:
                found.append(_FALSE)  # What is false holds nothing.
        return join(found)


def _assigned(nodes: Iterable[ast.AST]) -> _Assigned:
    """Return the expressions that are assigned to names."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return {name: sorted(values, key=lambda each: each.lineno) for name, values in found.items()}


_FALSE = of(Constant(None), Constant(False))


def _cache_of(thing: Thing) -> Box | None:
    """Return the cache that something is, or is a part of."""
    while isinstance(thing, Method) and len(thing.receiver.things) == 1:
        (thing,) = thing.receiver.things
    return thing if isinstance(thing, Box) and thing.kind == _CACHE else None


def _is_output(box: Box) -> bool:
    return box.kind in known.OUTPUTS or box.kind.rpartition(".")[0] in known.OUTPUTS


def _without_names(value: Value) -> Value:
    """Return items of a dict, whatever they are called."""
    if not any(isinstance(each, Field) for each in value.things):
        return value
    return join(each.value if isinstance(each, Field) else of(each) for each in value.things)


def _changeable(value: Value) -> Value:
    """Return a value that any code may replace, which no test can rely on."""
    more: set[Thing] = set()
    for each in value.things:
        if isinstance(each, Constant) and not isinstance(each.value, str):
            more |= TENSOR.things if each.value is None else PLAIN.things
        elif isinstance(each, (Fixed, Method)) or (isinstance(each, Box) and each.kind not in known.STACKS):
            more |= TENSOR.things
    return Value(value.things | more, value.roots) if more else value


def _is_cache(value: Value) -> bool:
    """Tell whether a value can only be a cache, None, or a container of these."""
    return _are_caches([value], set())


def _are_caches(values: Iterable[Value], met: set[Thing]) -> bool:
    return all(_may_only_cache(each, met) for value in values for each in value.things)


def _may_only_cache(thing: Thing, met: set[Thing]) -> bool:
    if isinstance(thing, Constant):
        return thing.value is None or thing.value is False
    if isinstance(thing, Fixed):
        return _are_caches(thing.items, met)
    cache = _cache_of(thing)
    box = thing if isinstance(thing, Box) else cache
    if box is None or (cache is None and box.kind not in known.CONTAINERS | {ITERATOR}):
        return False
    if box in met:
        return True
    met.add(box)
    if cache is None:
        return _are_caches([_without_names(box.item)], met)
    return all(isinstance(each, _HARMLESS) or _may_only_cache(each, met) for each in box.item.things)


def _is_harmless(value: Value) -> bool:
    """Tell whether a cache stays one that gets a value."""
    return all(isinstance(each, _HARMLESS) or _may_only_cache(each, set()) for each in value.things)


def _has_caches(value: Value) -> bool:
    """Tell whether a dict that is unpacked has nothing else under the names of caches."""
    dicts = [each for each in value.things if isinstance(each, Box) and each.kind in _DICTS]
    return len(dicts) == len(value.things) and all(
        isinstance(each, Given)
        or (
            each.name not in DROPPED or _is_cache(each.value)
            if isinstance(each, Field)
            else _is_cache(of(each))
        )
        for box in dicts
        for each in box.item.things
    )
