"""What calls do, and what they give: functions and classes of the project, and how others are told apart."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gclint.code.walk import last_name
from gclint.model import known
from gclint.model.frames import Frame
from gclint.model.gradients import Recording, records
from gclint.model.methods import Methods
from gclint.model.notes import Kind, Root
from gclint.model.objects import Pending
from gclint.model.reading import Reading
from gclint.model.reflection import WITHOUT_PARTS, called_name, shared
from gclint.model.values import (
    NEVER,
    OF_SETTINGS,
    Attributes,
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
    Object,
    Partial,
    Tensor,
    Thing,
    Unknown,
    Value,
    join,
    of,
    unknown,
    with_roots,
)
from gclint.releases import EVER_NEUTRALISED

_DEEPEST = 40
_MOST_RECURSIONS = 4


class Calls(Methods):
    """Follows calls."""

    def call(self, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a call gives, after following what it may run."""
        found: list[Value] = []
        for each in function.things:
            self.count()
            found.append(self._call(each, function, call, node, frame))
        return join(found)

    def _call(self, thing: Thing, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        if isinstance(thing, Function):
            return self.enter(thing, call, node, frame)
        if isinstance(thing, Bound):
            inside = Call((thing.receiver, *call.positional), call.named, call.rest, call.options)
            return self.enter(thing.function, inside, node, frame, owner=thing.owner)
        if isinstance(thing, Class):
            return self.make(thing, call, node, frame)
        if isinstance(thing, Object):
            return self._call_object(thing, Value(frozenset((thing,)), function.roots), call, node, frame)
        if isinstance(thing, External):
            return self._call_external(thing.name, call, node, frame)
        if isinstance(thing, Made):
            return self._call_made(thing.name, call, node, frame)
        if isinstance(thing, Method):
            return self.call_method(thing, call, node, frame)
        if isinstance(thing, Partial):
            named = dict((*thing.named, *call.named))
            positional = (*thing.positional, *call.positional)
            merged = Call(positional, tuple(sorted(named.items())), call.rest, call.options)
            return self.call(thing.function, merged, node, frame)
        if isinstance(thing, Box) and thing.kind == "torch.nn.Sequential":
            return self._call_in_turn(thing, function, call, node, frame)
        if isinstance(thing, ModelSetting) and OF_SETTINGS in function.roots:
            return self.tensor(call.all(), shared(call.all()))  # A function of activation, for example.
        if isinstance(thing, Tensor) and self._vouched:
            return self.deny(call, node, frame)  # What such a function gives need not be a tensor.
        if isinstance(thing, (Tensor, Constant)) or (
            isinstance(thing, Box) and thing.kind in known.UNCALLABLE
        ):
            return NEVER  # It raises an error.
        return self.deny(call, node, frame, external=thing.maker if isinstance(thing, Unknown) else "")

    def enter(
        self, function: Function, call: Call, node: ast.AST, frame: Frame, owner: Class | None = None
    ) -> Value:
        """Follow a function with the values of a call."""
        if self.stack.count(function.node) > _MOST_RECURSIONS:
            call = self._widened(function.node, call)
        key = self.entry(function, call, owner)
        if key in self.active:
            frame.age_all()  # What it assigns is not known yet.
            return self.active[key].asked()
        known_reading, known_result = self.entered.get(key, (None, NEVER))
        if known_reading is not None and known_reading.holds(self.spaces.epoch):
            known_reading.use()
            frame.age(known_reading.assigned)
            return known_result
        if len(self.stack) > _DEEPEST:
            self.give_up("calls functions in functions too deeply to follow", node, frame)
            return unknown("a recursion", (root for each in call.all() for root in each.roots))
        pending = self.active[key] = Pending(known_result)
        for _ in range(_MOST_RECURSIONS):
            reading = Reading(self.spaces.epoch)
            is_unrecorded = self._records_nothing(function)
            self.unrecorded += is_unrecorded
            with reading.begun():
                inner = self.frame_of(key, function.space, function.frame, owner or function.owner)
                inner.outlives = self.quiet > 0
                result = self._enter(function, call, inner)
            self.unrecorded -= is_unrecorded
            if pending.settled(self._kept(function, result)):
                break
        else:
            self.give_up("calls itself in a way that is not followed to the end", node, frame)
        del self.active[key]
        self.entered[key] = reading, pending.value
        reading.answer(pending)
        frame.age(reading.assigned)
        return pending.value

    def _kept(self, function: Function, result: Value) -> Value:
        """Return what a function gives, which is the same thing each time if a decorator keeps it."""
        decorators = getattr(function.node, "decorator_list", ())
        called = (each.func if isinstance(each, ast.Call) else each for each in decorators)
        if known.KEEPING.isdisjoint(map(last_name, called)):
            return result
        name = getattr(function.node, "name", "")
        return with_roots(result, (Root(Kind.SHARED, f"what `{name}` keeps"),))

    def _widened(self, code: ast.AST, call: Call) -> Call:
        """Return a call that also gives what the one around it does, so that some call is the last one."""
        return next(
            around.joined(call)
            for each, around in zip(reversed(self.stack), reversed(self.calls), strict=True)
            if each is code
        )

    def entry(self, function: Function, call: Call, owner: Class | None) -> object:
        """Return what is the same for calls of which following one is enough."""
        recording = self.unrecorded > 0, self.perhaps_unrecorded > 0
        return function, call, owner, self.quiet > 0, recording, self.caught > 0, self.is_running

    def _enter(self, function: Function, call: Call, inner: Frame) -> Value:
        code = function.node
        arguments = code.args
        named = dict(call.named)
        parameters = [*arguments.posonlyargs, *arguments.args]
        defaults = defaults_of(arguments)
        loose = [each for each in (call.rest, call.options) if each is not None]
        for index, each in enumerate([*parameters, *arguments.kwonlyargs]):
            if index < min(len(call.positional), len(parameters)):
                inner.names[each.arg] = call.positional[index]
            elif each.arg in named:
                inner.names[each.arg] = named.pop(each.arg)
            else:
                default = defaults.get(each.arg)
                ways = self.given_loosely(each.arg, loose)
                if default is not None:
                    ways.append(self._default(each.arg, default, function))
                inner.names[each.arg] = join(ways)
        if arguments.vararg is not None:
            inner.names[arguments.vararg.arg] = self._rest(arguments.vararg, call, len(parameters))
        if arguments.kwarg is not None:
            box = self.box(arguments.kwarg, "dict")
            for further, value in named.items():
                self.fill(box, self.under(further, value))
            if call.options is not None:
                self.fill(box, call.options)
            inner.names[arguments.kwarg.arg] = of(box)
        if parameters and function.owner is not None:
            inner.receiver = inner.names[parameters[0].arg]
        self.stack.append(code)
        self.calls.append(call)
        try:
            return (
                self.value(code.body, inner) if isinstance(code, ast.Lambda) else self.run(code.body, inner)
            )
        finally:
            self.stack.pop()
            self.calls.pop()

    def given_loosely(self, name: str, loose: Sequence[Value]) -> list[Value]:
        """Return what a parameter may get of what a call unpacks."""
        # The base class has disabled caches under these names, also among further keywords.
        return [] if name in EVER_NEUTRALISED else list(loose)

    def _records_nothing(self, function: Function) -> bool:
        """Tell whether a decorator keeps a function from recording gradients."""
        return any(
            records(
                self.quietly(each.func if isinstance(each, ast.Call) else each, function.space.frame), each
            )
            is Recording.OFF
            for each in getattr(function.node, "decorator_list", ())
            if isinstance(each, (ast.Name, ast.Attribute, ast.Call))
        )

    def define(self, function: Function, frame: Frame) -> None:
        """Follow the default values of an inner function, which are those of the place of its definition."""
        home = function.frame
        for name, node in defaults_of(function.node.args).items() if home is not None else ():
            if home is not None and not isinstance(node, ast.Constant):
                held = self.spaces.defaults.setdefault((function.node, home), Attributes())
                self.spaces.version += held.put(name, self.value(node, frame))

    def _default(self, name: str, node: ast.expr, function: Function) -> Value:
        """Return a default value, which all calls share."""
        code, frame = function.node, function.space.frame
        held = None if function.frame is None else self.spaces.defaults.get((code, function.frame))
        value = (held.get(name) if held is not None else None) or self.value(node, frame)
        if not all(isinstance(each, WITHOUT_PARTS) for each in value.things):
            self.note(f"has a default value that may change meanwhile, `{called_name(node)}`", node, frame)
        return with_roots(
            value, (Root(Kind.SHARED, f"a default value of `{getattr(code, 'name', 'a lambda')}`"),)
        )

    def _rest(self, node: ast.arg, call: Call, taken: int) -> Value:
        more = call.positional[taken:]
        if call.rest is None:
            return of(Fixed(tuple(more)))
        return self.led(node, "tuple", (call.rest,), more)

    def run(self, body: list[ast.stmt], frame: Frame) -> Value:
        """Follow the body of a function."""
        raise NotImplementedError

    def make(self, kind: Class, call: Call, node: ast.AST, frame: Frame) -> Value:
        """Return an object of a class, with what it holds unless only code of its own sees to that."""
        made = super().make(kind, call, node, frame)
        new = self.find(kind, "__new__")
        if new is not None and isinstance(node, ast.expr):
            self.call(new[0], call._replace(positional=(of(kind), *call.positional)), node, frame)
        is_of_project = all(isinstance(each, Class) or each == "object" for each in self.line(kind))
        is_own = self.find(kind, "__init__") is not None and new is None and is_of_project
        return made if is_own or self.is_module(kind) else with_roots(made, shared(call.all()))

    def _call_in_turn(self, box: Box, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Follow the modules of a ``Sequential``, each with what the ones before give."""
        value = join(call.all())
        if box.rest is NEVER:
            for each in box.first:
                value = self.call(with_roots(each, function.roots), Call((value,)), node, frame)
            return value
        for _ in range(3):
            after = self.call(with_roots(box.item, function.roots), Call((value,)), node, frame)
            joined = join((value, after))
            if joined == value:
                break
            value = joined
        return value


def defaults_of(arguments: ast.arguments) -> dict[str, ast.expr]:
    """Return the default values of parameters, by their names."""
    parameters = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    found = dict(zip(reversed(parameters), reversed(arguments.defaults), strict=False))
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            found[parameter.arg] = default
    return found
