"""What may hold caches, or lead to calls with them, in code that is not known in every detail."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from gclint.code.names import names
from gclint.model import known, tensors
from gclint.model.cache_values import CACHE, DICTS, CacheValues, cache_of
from gclint.model.externals import CHECKPOINTS
from gclint.model.frames import Frame
from gclint.model.gradients import is_constant
from gclint.model.leading import Leading
from gclint.model.notes import Kind
from gclint.model.spaces import Space, Spaces
from gclint.model.texts import texts
from gclint.model.values import (
    NEVER,
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
    Thing,
    Unknown,
    Value,
    join,
    of,
    unknown,
)

_MAKING = re.compile(r"(?:\w+\.)*(?:[A-Z]\w*)?Cache(?:\.from_legacy_cache)?")
"""Matches what makes a cache: a class of caches, or its conversion from tuples."""
_OF_CHECKPOINTS = names("use_reentrant preserve_rng_state context_fn determinism_check debug early_stop")
"""What a checkpoint function takes for itself."""
RESULT = of(Unknown("what a module gives", is_argument=True))
"""What a module gives that is not followed: nothing that is known to be a cache."""
_MOST_STEPS = 300_000


class CacheObjects(CacheValues):
    """Follows objects and functions that may hold caches, or lead to calls with them."""

    def __init__(self, spaces: Spaces, leading: Leading) -> None:
        super().__init__(spaces, is_quiet=True, most_steps=_MOST_STEPS)
        self._leading = leading
        self._usual = set[Object]()
        """The modules that are made with settings and the like."""
        self._unmade: dict[Object, tuple[Call, ast.AST, Frame]] = {}
        """The modules that were made, and are followed only once one of their attributes is read."""

    # -- objects

    def make(self, kind: Class, call: Call, node: ast.AST, frame: Frame) -> Value:
        """Return an object; a module is only followed once one of its attributes is read."""
        is_of_caches = self._is_of_caches(kind)
        if not is_of_caches and self.is_module(kind) and not any(map(self._may_hold, call.all())):
            made, is_new = self.object_of(kind, call)
            if is_new:
                self._unmade[made] = call, node, frame
                self._usual.add(made)
            return of(made)
        found = super().make(kind, call, node, frame)
        if not is_of_caches:
            return found
        learned = () if is_constant(found) else (TENSOR,)
        return self.filled(node, CACHE, (*call.all(), *learned))

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

    def deny(
        self, call: Call, node: ast.expr, frame: Frame, kind: Kind = Kind.UNKNOWN, external: str = ""
    ) -> Value:
        """Follow that anything is put into what an unknown function gets, and that it calls it."""
        result = super().deny(call, node, frame, kind, external)
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

    def _item(self, thing: Thing, index: int | None) -> Value:
        if not isinstance(thing, Object) or not self.is_module(thing.kind):
            return super()._item(thing, index)
        self._follow(thing)
        return join((super()._item(thing, index), of(thing), *thing.attributes.values()))

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
            if isinstance(thing, Box) and thing.kind == CACHE:
                self._in_cache(thing, "__call__", call)
        return super().call(function, call, node, frame)

    def _call_object(self, thing: Object, receiver: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        if not self._may_lead(thing) and not any(map(self._may_hold, call.all())):
            return RESULT
        self._follow(thing)
        return super()._call_object(thing, receiver, call, node, frame)

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        if _MAKING.fullmatch(name):
            return self.filled(node, CACHE, call.all())
        if name in DICTS:
            return self._dict(name, call, node)
        if name in CHECKPOINTS and call.positional:
            return self.call(call.positional[0], handed_on(call, 1), node, frame)
        if name in known.RUNNING_NOTHING:
            return of(Unknown(f"what `{name}` gives", is_argument=True))
        if name in known.GIVING:
            return join((super()._call_external(name, call, node, frame), self._callable(call)))
        parent, _, last = name.rpartition(".")
        is_fresh = last in tensors.FRESH or last in tensors.VIEWS or last in tensors.FUNCTIONAL
        is_changing = parent == "torch.nn.init" or (parent in known.TORCH and not is_fresh)
        if is_changing and any(cache_of(each) for each in self._reached(call.all())):
            return self.deny(call, node, frame)
        return super()._call_external(name, call, node, frame)

    def _call_of_module(
        self, thing: Object, receiver: Value, name: str, call: Call, node: ast.expr, frame: Frame
    ) -> Value:
        if name in known.MODEL_METHODS:
            return of(Unknown(f"what `{name}` gives", is_argument=True))
        return super()._call_of_module(thing, receiver, name, call, node, frame)

    def _is_called_back(self, thing: Thing) -> bool:
        return isinstance(thing, (Function, Bound, Partial))  # Parts of caches are none.


def handed_on(call: Call, start: int) -> Call:
    """Return what a checkpoint function hands on from an index on, without what it takes for itself."""
    named = tuple(each for each in call.named if each[0] not in _OF_CHECKPOINTS)
    return Call(call.positional[start:], named, call.rest, call.options)


def _changeable(value: Value) -> Value:
    """Return a value that any code may replace, which no test can rely on."""
    more: set[Thing] = set()
    for each in value.things:
        if isinstance(each, Constant) and not isinstance(each.value, str):
            more |= TENSOR.things if each.value is None else PLAIN.things
        elif isinstance(each, (Fixed, Method)) or (isinstance(each, Box) and each.kind not in known.STACKS):
            more |= TENSOR.things
    return Value(value.things | more, value.roots) if more else value
