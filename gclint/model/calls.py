"""What calls do, and what they give."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from gclint.code.names import names
from gclint.code.walk import last_name
from gclint.model import known, tensors
from gclint.model.frames import Frame
from gclint.model.gradients import (
    UNRECORDED,
    Recording,
    gives_integers,
    is_constant,
    is_false,
    records,
    type_of,
    without_gradient,
)
from gclint.model.notes import Kind, Root, quoted
from gclint.model.objects import ITERATOR, TAKING_ITEMS, Pending, is_operation
from gclint.model.protocols import CONTAINING, TRUTH, Protocols
from gclint.model.reading import ANY, Reading
from gclint.model.texts import of_method, texts
from gclint.model.values import (
    CONSTANT,
    NEVER,
    NONE,
    OF_SETTINGS,
    PLAIN,
    TENSOR,
    Attributes,
    Bound,
    Box,
    Call,
    Class,
    Constant,
    External,
    Fixed,
    Function,
    Imported,
    Made,
    Method,
    ModelSetting,
    Object,
    Partial,
    Plain,
    Tensor,
    Thing,
    Turn,
    Unknown,
    Value,
    join,
    of,
    unknown,
    with_roots,
)
from gclint.releases import EVER_NEUTRALISED

_DEEPEST = 40
_MOST_PARTIALS = 3
"""How many partials in each other are followed: each may call what it gets twice."""
_FIRST_OUTPUT = "last_hidden_state"
"""The field that comes first in every output of the library that has it; the base of them has any order."""
_MOST_RECURSIONS = 4
_DEEPEST_PASSED = 2
"""How deeply a function is looked for in what is passed on: ``starmap`` takes items out of items."""
_IN_PLACE = " in place"
PARAMETERS = ("torch.nn.Parameter", "torch.nn.Buffer", "torch.nn.parameter.Parameter")
"""What registers a tensor with a module that it is assigned to."""
_DETACHING = ("torch.autograd.Variable", "torch.autograd.variable.Variable")
"""What gives a tensor that shares the memory of another one, and gets no gradient for it."""
_PLAIN_TENSOR = "torch.Tensor"
_UNBOUND = (f"{_PLAIN_TENSOR}.", "operator.i")
"""How names of functions begin that may change what they get, and are handed to others to be called."""
CHECKPOINTS = (known.CHECKPOINT, "transformers.modeling_utils.checkpoint")
"""The functions that run another one, and once more in the backward pass."""


class Calls(Protocols):
    """Follows calls."""

    @property
    def _vouched(self) -> tuple[str, ...]:
        """The functions and modules of other packages that change nothing, by the word of the user."""
        return self.spaces.project.settings.pure_functions

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

    def deny(
        self, call: Call, node: ast.expr, frame: Frame, kind: Kind = Kind.UNKNOWN, external: str = ""
    ) -> Value:
        """Note that nothing but a kind is known of what a call does, and return what it may give.

        Args:
            call: the arguments.
            node: the call.
            frame: where it is made.
            kind: what is known.
            external: the dotted name of what is called, if that is of another package.
        """
        name = _name(node)
        what = f"calls `{name}`, of which nothing is known" if kind is Kind.UNKNOWN else name
        if external and kind is Kind.UNKNOWN:
            what += f", unless `--pure-functions {external}` says that it changes nothing"
        self.note(what, node, frame, kind)
        if not self.is_running and any(map(self._is_made, call.all())):
            self.hook(frame)
        for value in call.all():
            for thing in value.things:
                if isinstance(thing, Object):
                    self.spoil(thing, f"`{name}`")
                    frame.age({(thing, ANY)})
        maker = external if external.rpartition(".")[2][:1].isupper() else ""
        return of(Unknown(f"what `{name}` gives", maker=maker), roots=shared(call.all()))

    def _is_made(self, value: Value) -> bool:
        """Tell whether a value may be a module of torch."""
        return any(isinstance(each, Made) and self.is_plain_module(each.name) for each in value.things)

    # -- functions of the project

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
        if not all(isinstance(each, _WITHOUT_PARTS) for each in value.things):
            self.note(f"has a default value that may change meanwhile, `{_name(node)}`", node, frame)
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

    # -- objects

    def make(self, kind: Class, call: Call, node: ast.AST, frame: Frame) -> Value:
        """Return an object of a class, with what it holds unless only code of its own sees to that."""
        made = super().make(kind, call, node, frame)
        new = self.find(kind, "__new__")
        if new is not None and isinstance(node, ast.expr):
            self.call(new[0], call._replace(positional=(of(kind), *call.positional)), node, frame)
        is_of_project = all(isinstance(each, Class) or each == "object" for each in self.line(kind))
        is_own = self.find(kind, "__init__") is not None and new is None and is_of_project
        return made if is_own or self.is_module(kind) else with_roots(made, shared(call.all()))

    def _call_inherited(self, thing: Object, call: Call, node: ast.expr, frame: Frame) -> Value | None:
        """Return what a module of torch gives that a class inherits from; None if there is none."""
        line = self.line(thing.kind)
        name = next((each for each in line if isinstance(each, str) and self.is_plain_module(each)), None)
        own = {one for each in line if isinstance(each, Class) for one in self.spaces.members.get(each, {})}
        if name is not None and any(one.startswith("_") and one != "__init__" for one in own):
            self.note("inherits a method of torch that calls methods of its own", node, frame)
        return None if name is None else self._call_made(name, call, node, frame)

    def _call_object(self, thing: Object, receiver: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        if any(each in self.spaces.hooked for each in self._nodes([thing])):
            self.note("runs hooks that it registers", node, frame)
        if self.find(thing.kind, "_call_impl") or self.find(thing.kind, "_wrapped_call_impl"):
            self.note("calls a module that runs its `forward` in a way of its own", node, frame)
        for name in ("__call__", "forward"):
            own = thing.attributes.get(name)
            if own is not None and name == "forward":
                return self.call(own, call, node, frame)
            method = self.find(thing.kind, name)
            if method is not None:
                if self.unknown_base(thing.kind):
                    self.note("calls an object whose bases are not known", node, frame)
                spaces = () if self.quiet else (frame.space, thing.kind.space)
                if any(name in each.usage.set_up for each in spaces):
                    self.note(f"calls a `{name}` that is replaced somewhere", node, frame)
                value, owner = method
                return self.call(self.bind_method(value, receiver, owner, node, frame), call, node, frame)
            if name == "__call__" and not self.is_module(thing.kind):
                break
        inherited = self._call_inherited(thing, call, node, frame)
        return self.deny(call, node, frame) if inherited is None else inherited

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

    # -- other packages

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        parent, _, last = name.rpartition(".")
        if parent in ("", "functools", "builtins", "copy") and last in _SPECIAL:
            result: Value = getattr(self, f"_call_{last}")(call, node, frame)
            return result
        if last in ("__init__", "_init_weights") and parent in known.MODULE_BASES:
            return NONE
        if name in known.GENERATORS:
            return of(Made(name))
        if name in known.NEEDING_GRADIENTS:
            return self.deny(call, node, frame, Kind.GRADIENTS)
        if parent in known.DRAWING or name in known.DRAWING:
            return self.deny(call, node, frame, Kind.RANDOM)
        out = dict(call.named).get("out")
        if out is not None:
            self._refuse(join(call.all()), node, frame)
            self.change(Value(roots=shared((out,))), node, frame)
            self.mix(out, (TENSOR,))
        for each in call.all():
            if name in _CONSUMING and len(call.positional) == 1:
                self.consume(each, node, frame)
                own = frozenset(one for one in each.things if isinstance(one, Object))
                self.ask(each if name not in _HOLDING else Value(own, each.roots), node, frame)
            elif name in _ASKING:
                self.special(each, _ASKING[name], node, frame)
            elif name not in _LOOKING:
                self.ask(each, node, frame)
        if name == "print" and not {each for each, _ in call.named}.isdisjoint(("file", "flush")):
            return self.deny(call, node, frame)  # It calls a method of what it is given.
        for each in call.positional if name in _WRITING else ():
            self.written(each, node, frame)
        if name in ("isinstance", "issubclass"):
            self.instances_asked(join(call.positional[1:2]), node, frame)
            self.asked_for_tensor(join(call.positional[:1]), join(call.positional[1:2]), node, frame)
        if name == "type" and len(call.positional) == 1:
            self.typed(call.positional[0], node, frame)
        if name == "functools.reduce" and len(call.positional) > 1:
            return self._reduced(call, node, frame)
        given = NEVER
        if name not in known.MAKERS and name not in CHECKPOINTS and parent not in known.TABLES:
            given = self._call_back(call, node, frame)
        roots = shared(call.all())
        if name in self._vouched:
            return of(Made(name)) if last[:1].isupper() else self.tensor(call.all(), roots)
        if name in ("torch.vmap", "torch.func.vmap") and call.positional:
            return of(Partial(call.positional[0], (), ()))
        if name in known.STACKS or name in known.CONTAINERS:
            found = self._container(name, call, node)
            return self._also_holding(found, given)  # A factory of items, for example.
        if name == "dict.fromkeys":
            for each in call.positional[:1]:
                self.consume(each, node, frame)
            return self.filled(node, "dict", call.positional[1:])
        if name in known.NAMED_TUPLES:
            return of(Made(name))
        if name in known.CACHES and all(map(_may_be_in_cache, call.all())):
            return of(Made(name.removesuffix(".from_legacy_cache")))
        if name in known.OUTPUTS or parent in known.OUTPUTS:
            # Items are the fields that are not None, in the order of the class.
            first = dict(call.named).get(_FIRST_OUTPUT, NONE) if last != "ModelOutput" else NONE
            made = self.led(node, name, self.fields(call), [first] if is_none(first) is False else [])
            loose = (*call.positional, *(each for each in (call.rest, call.options) if each is not None))
            for field, value in (*call.named, *((ANY, each) for each in loose)):
                self.spaces.version += self.box(node, name).name(field, value)
            return made
        if name in known.ITERATORS or parent in _GIVING_ITERATORS:
            found = self._iterator(name, call, node, frame)
            return found if name in ("map", "filter", "sorted") else self._also_holding(found, given)
        if self.is_plain_module(name):
            runs = any(self._is_callback(thing) for each in call.all() for thing in each.things)
            if runs or _renormalises(last, call):
                return self.deny(call, node, frame)  # It runs what it gets, or changes its weight meanwhile.
            return of(Made(name + _IN_PLACE if _is_in_place(last, call) else name))
        if name in PARAMETERS:
            is_frozen = is_false(call.argument(1, "requires_grad"))
            return Value((CONSTANT if is_frozen else TENSOR).things, roots)
        if name in _DETACHING:
            return Value(TENSOR.things if _asks_for_grad(call) else CONSTANT.things, roots)
        if name in UNRECORDED:
            return self._unrecorded(name, call, node, frame)
        if name in known.LOGGERS:
            return of(Made("logging.Logger"))
        if name in known.MAKERS or parent in known.TABLES:
            return join((of(Made(known.COMPUTING_OBJECT)), *call.positional[1:]))
        if name in CHECKPOINTS and call.positional:
            return self.call(call.positional[0], Call(call.positional[1:]), node, frame)
        if last == "apply_chunking_to_forward" and len(call.positional) > 3:
            return self.call(call.positional[0], Call(call.positional[3:]), node, frame)
        if name in known.SAME:
            return Value(frozenset(each for one in call.positional[:1] for each in one.things))
        if name in known.GIVING:
            return self._given_back(name, call)
        if name in _ADDING and not is_constant(*call.all()):
            return self.tensor(call.all())
        if name == "type":
            if len(call.all()) == 1:
                return join(map(_class_of, call.all()[0].things))
            return unknown("a class that is put together", roots)
        if name.startswith("numpy."):
            self._refuse(join(call.all()), node, frame)
        if name in known.ARRAYS:
            return CONSTANT  # Unlike a number, it can be changed in place.
        if name in known.ERRORS:
            error = Value(PLAIN.things, roots)
            self.fill(self.spaces.thrown, error)
            return error
        if name in _CHOOSING:
            chosen = call.positional if len(call.positional) > 1 else map(self.item, call.positional)
            return join((PLAIN, *chosen, *(value for word, value in call.named if word == "default")))
        if name in known.FUNCTIONS:
            return _turn(node) if name == "range" else PLAIN
        if name in known.MASKING:
            mask = call.argument(*known.MASKING[name])  # Of all else, only sizes and types matter.
            return self.tensor(call.all() if mask is None else (mask,), roots)
        if name in known.COMPUTING:
            return self.tensor(call.all(), roots)
        if parent == "torch.nn.init" and _draws_with_its_own(call, is_anywhere=True):
            return self.deny(call, node, frame, Kind.GENERATOR)
        if parent == "torch.nn.init":
            for each in _first(call):
                self.change(each, node, frame)
            return join(_first(call))
        if parent == "torch.Tensor" and call.positional:
            receiver = call.positional[0]
            known_as = (
                Tensor(each.is_constant) if isinstance(each, Unknown) else each for each in receiver.things
            )
            method = Method(Value(frozenset(known_as), receiver.roots), last)
            return self.call_method(method, call.without_first(), node, frame)
        if parent in known.TORCH:
            return self._compute(last, call, node, frame)
        denied = self.deny(call, node, frame, external=name if parent else "")
        return Value(CONSTANT.things, denied.roots) if name.startswith("numpy.") else denied

    def _unrecorded(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what makes a context without gradients, what a function becomes in one, or what it gives."""
        if len(call.positional) > 1:
            self.unrecorded += 1
            try:
                return self.call(call.positional[0], call.without_first(), node, frame)
            finally:
                self.unrecorded -= 1
        return of(Partial(of(External(name)), call.positional, ()) if call.positional else External(name))

    def _compute(self, last: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a function of torch gives."""
        roots = shared(call.all())
        if _draws_with_its_own(call, is_anywhere=last in known.DRAWING_BY_POSITION):
            return self.deny(call, node, frame, Kind.GENERATOR)
        if last in known.UNREPEATABLE:
            return self.deny(call, node, frame)
        if gives_integers(last, call):
            return CONSTANT
        if _gives_several(last, call):
            own = roots if last in tensors.VIEWS else frozenset()
            return self._several(last, self.tensor(call.all(), own), node)
        if last in tensors.CHANGING and not last.endswith("_"):
            self.change(Value(roots=roots), node, frame)
            self.mix(join(call.all()), call.all())
            return self.tensor(call.all(), roots)
        if _renormalises(last, call):
            self.change(Value(roots=roots), node, frame)
        if last.endswith("_") or _is_in_place(last, call):
            self.change(Value(roots=shared(_first(call))), node, frame)
            self.mix(join(_first(call)), call.all())
            changed = _first(call) if last not in known.SHARING else call.all()
            return self.tensor(call.all(), shared(changed))
        if last in tensors.VIEWS:
            return self.tensor(call.all(), roots)
        if last in tensors.UNDIFFERENTIABLE:
            return TENSOR if _asks_for_grad(call) else CONSTANT
        if last in tensors.FRESH or last in tensors.FUNCTIONAL:
            return TENSOR if _asks_for_grad(call) else self.tensor(call.all())
        return self.deny(call, node, frame)

    def _call_back(self, call: Call, node: ast.expr, frame: Frame, receiver: Value = NEVER) -> Value:
        """Follow functions that are handed to one of another package, and return what they give.

        They may get all else that it gets, the ``receiver`` if it is a method, and what these hold.
        """
        passed = [each for each in (*call.all(), receiver) if not any(map(self._is_called_back, each.things))]
        called = [
            Value(frozenset(filter(self._is_called_back, each.things)), each.roots)
            for each in call.all()
            if each not in passed
        ]
        if not called:
            return NEVER
        for _ in range(_DEEPEST_PASSED):
            passed += [self.item(each) for each in passed]
        anything = join((of(Unknown("what a function of another package gives", is_argument=True)), *passed))
        tensors_only = Value(
            frozenset(each for each in anything.things if not isinstance(each, (Box, Fixed))), anything.roots
        )
        found = []
        for each in called:
            is_external = all(isinstance(thing, External) for thing in each.things)
            given = tensors_only if is_external else anything
            found.append(self.call(each, Call((given,), rest=given), node, frame))
        return join(found)

    def _is_called_back(self, thing: Thing) -> bool:
        return self._is_callback(thing)

    def _is_callback(self, thing: Thing) -> bool:
        return (
            isinstance(thing, (Function, Bound, Partial, Method))
            or (isinstance(thing, Object) and self.find(thing.kind, "__call__") is not None)
            or (isinstance(thing, External) and thing.name.startswith(_UNBOUND))
        )

    def _given_back(self, name: str, call: Call) -> Value:
        """Return what a function may give that gives arguments or items of them, or adds some."""
        given = [
            Value(frozenset(one for one in each.things if not _is_number(one)), each.roots)
            for each in call.all()
            if not all(map(_is_number, each.things))
        ]
        items = [self.item(each) for each in given if any(map(_has_items, each.things))]
        added = () if is_constant(*given, *items) else (self.tensor((*given, *items)),)
        several = [*given, *items]
        if name in _SUMS:  # Tensors are added to a new one; the items of lists go into a new one.
            several = [*items, *call.positional[1:]] if name == "sum" else given
            piles = (
                frozenset(one for one in each.things if isinstance(one, (Box, Fixed))) for each in several
            )
            several = [Value(pile, each.roots) for pile, each in zip(piles, several, strict=True) if pile]
        return join((PLAIN, *several, *added))

    def _also_holding(self, container: Value, items: Value) -> Value:
        """Put more into containers, and return them."""
        for thing in container.things if items.things else ():
            if isinstance(thing, Box):
                self.fill(thing, items)
        return container

    def _container(self, name: str, call: Call, node: ast.expr) -> Value:
        takes_each = name in ("torch.nn.Sequential",)
        if takes_each and call.positional and not any(map(_is_table, call.positional)) and call.rest is None:
            return self.led(node, name, (), call.positional)
        is_new = (node, name) not in self.spaces.boxes
        box = self.box(node, name)
        roots: set[Root] = set()
        for value in (*call.positional, *(each for _, each in call.named)):
            is_pile = any(isinstance(each, (Box, Fixed, Unknown, ModelSetting)) for each in value.things)
            inside = self.item(value) if is_pile and not (takes_each and _is_module(value)) else value
            if name.endswith(("Sequential", "Dict")) or name == "dict":
                inside = _second(inside)
            self.fill(box, inside)
            roots |= inside.roots
        for each in (call.rest, call.options):
            if each is not None:
                self.fill(box, each)
        if name == "tuple":
            self.lead(box, _first_taken(call, node), is_new=is_new)
        return of(box)

    def fields(self, call: Call) -> Sequence[Value]:
        """Return what an object holds that is made with some arguments."""
        return call.all()

    def filled(self, node: ast.AST, kind: str, values: Iterable[Value]) -> Value:
        """Return the container that is made at a place, with these among its items."""
        box = self.box(node, kind)
        for each in values:
            self.fill(box, each)
        return of(box)

    def _reduced(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        item = self.iterate(call.positional[1], node, frame)
        value = join(call.positional[2:3] or (item,))
        for _ in range(3):
            value = join((value, self.call(call.positional[0], Call((value, item)), node, frame)))
        return value

    def _iterator(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        items = [self.iterate(each, node, frame) for each in call.positional]
        if call.rest is not None:
            items.append(self.item(call.rest))
        if name in ("map", "filter") and len(items) > 1:
            result = self.call(call.positional[0], Call(tuple(items[1:])), node, frame)
            if name == "filter":
                self.special(join((result, items[1])), TRUTH, node, frame)
            items = [result if name == "map" else items[1]]
        elif name == "enumerate":
            items = [of(Fixed((_turn(node), *items[:1])))]
        elif name == "zip":
            items = [of(Fixed(tuple(items)))]
        elif name.endswith(".from_iterable"):
            items = [self.iterate(each, node, frame) for each in items]
        box = self.box(node, "list" if name == "sorted" else ITERATOR)
        for each in items:
            self.fill(box, each)
        return of(box)

    def _call_partial(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        if not call.positional or call.rest is not None or call.options is not None:
            return self.deny(call, node, frame)
        if _partials(call) >= _MOST_PARTIALS:  # What is wrapped again and again has no end.
            return self.deny(call, node, frame)
        return of(Partial(call.positional[0], call.positional[1:], call.named))

    def _call_getattr(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        if len(call.positional) < 2:
            return self.deny(call, node, frame)
        names = texts(call.positional[1])
        default = call.positional[2:3]
        self.name_used(names, call.positional[0], node)
        if names is not None:
            found = [
                self.attribute(call.positional[0], name, node, frame, is_optional=bool(default))
                for name in sorted(names)
            ]
            return join((*found, *default))
        if all(isinstance(each, ModelSetting) for each in call.positional[0].things):
            return join((call.positional[0], *default))
        denied = self.deny(call, node, frame)
        tensors_only = frozenset(each for each in call.positional[0].things if isinstance(each, Tensor))
        if not tensors_only:
            return denied
        detach = of(Method(Value(tensors_only, call.positional[0].roots), "detach"))
        return join((denied, detach))  # It may be the method that lets go of the gradient.

    def set_by_name(self, call: Call, node: ast.expr, frame: Frame, *, is_raw: bool = False) -> Value:
        """Assign an attribute whose name is given as a text; the arguments are those of ``setattr``.

        It is ``is_raw`` if a ``__setattr__`` of the object's class has already been called.
        """
        if len(call.positional) == 3:
            names = texts(call.positional[1])
            if names is not None:
                self.spaces.targets.setdefault(node, set())
                for name in sorted(names):
                    if is_raw:
                        self.set_attribute(call.positional[0], name, call.positional[2], node, frame)
                    else:
                        self.put(call.positional[0], name, call.positional[2], node, frame)
                return NONE
            self.record(call.positional[0], node)
        return self.deny(call, node, frame)

    _call_setattr = set_by_name

    def _call_delattr(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        for value in call.positional[:1]:
            for name in (texts(join(call.positional[1:2])) or ()) if len(call.positional) == 2 else ():
                self.deleted(value, name, node, frame)
        return self.deny(call, node, frame)

    def _call_hasattr(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        for name in texts(join(call.positional[1:2])) or ():
            self.has_attribute(call.positional[0], name, node, frame)
        return PLAIN

    def _call_vars(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        for each in call.positional:
            self.record(each, node)
        return self.deny(call, node, frame)

    def _call_next(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        if not call.positional:
            return self.deny(call, node, frame)
        self.change(call.positional[0], node, frame)
        given = self.special(call.positional[0], ("__next__",), node, frame)
        return join((self.item(call.positional[0]), given, *call.positional[1:]))

    def asked_for_tensor(self, asked: Value, kinds: Value, node: ast.AST, frame: Frame) -> None:
        """Note what asks for a kind of tensors of its own, of which recomputation may see a plain copy."""
        asked_for = (each for one in self.inside(kinds) for each in one.things)
        if any(map(self.is_special_tensor, asked_for)):
            self.typed(asked, node, frame)

    def is_special_tensor(self, kind: Thing) -> bool:
        """Tell whether a class may be one of tensors, and not that of all tensors."""
        if isinstance(kind, Class):
            return any(not isinstance(each, Class) and self._is_tensor(each) for each in self.line(kind))
        if isinstance(kind, External):
            return kind.name in PARAMETERS or (kind.name != _PLAIN_TENSOR and self._is_tensor(kind.name))
        return isinstance(kind, Unknown)

    @staticmethod
    def _is_tensor(base: str | None) -> bool:
        return base is None or base.endswith("Tensor") or base in PARAMETERS

    def _refuse(self, value: Value, node: ast.expr, frame: Frame) -> None:
        """Note what raises an error for a tensor that requires grad, where that is handled."""
        if self.caught and not is_constant(value):
            self.note(_name(node), node, frame, Kind.GRADIENTS)

    def _call_deepcopy(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        self._refuse(join(call.positional[:1]), node, frame)
        for each in call.all():
            for inside in self.inside(each, is_deep=True):
                self.special(inside, _COPYING, node, frame, PLAIN)
        return Value(call.positional[0].things) if call.positional else NEVER

    def _call_copy(self, call: Call, node: ast.expr, frame: Frame) -> Value:
        given = call.positional[0] if call.positional else NEVER
        for inside in self.inside(given):
            self.special(inside, _COPYING, node, frame, PLAIN)
        is_flat = all(isinstance(each, ModelSetting) for each in given.things)
        return Value(given.things) if is_flat else given  # What it holds is that of the original.

    def _call_made(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what an object of another package gives when it is called."""
        # What attention gets of a module are its settings.
        is_module = name == known.COMPUTING_OBJECT
        roots = shared(each for each in call.all() if not (is_module and _are_objects(each)))
        if name in self._vouched:
            return self.tensor((TENSOR,), roots)
        if name in known.NAMED_TUPLES:
            self.spaces.version += self.box(node, "tuple").name(ANY, join(call.all()))
            return self.filled(node, "tuple", call.all())
        if name.endswith(_IN_PLACE):
            for each in _first(call):
                self.change(each, node, frame)
        elif name not in known.MODULES and name != known.COMPUTING_OBJECT:
            return self.deny(call, node, frame, external=name)
        if name == known.COMPUTING_OBJECT and not call.all():
            return of(Made(name))  # It may also have been the class.
        is_same = name == known.COMPUTING_OBJECT or name.endswith(_IN_PLACE) or _is_handing_on(name)
        result = self.tensor(call.all() if is_same else (TENSOR,), roots if is_same else ())
        if name.endswith(("LSTM", "GRU", "RNN")):
            return of(Fixed((result, of(Fixed((result, result))))))
        if name == known.COMPUTING_OBJECT or name.endswith("MultiheadAttention"):
            return join((result, of(Fixed((result, result)))))
        return result

    def call_method(self, method: Method, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a method gives whose object is not of the project."""
        found = [
            self._call_method(
                Value(frozenset((each,)), method.receiver.roots), each, method.name, call, node, frame
            )
            for each in method.receiver.things
        ]
        return join(found)

    def _call_method(
        self, receiver: Value, thing: Thing, name: str, call: Call, node: ast.expr, frame: Frame
    ) -> Value:
        roots = receiver.roots | shared(call.all())
        if not isinstance(thing, Object):
            self._ask_back(receiver, name, call, node, frame)
        if isinstance(thing, Object):
            return self._call_of_module(thing, receiver, name, call, node, frame)
        if isinstance(thing, Made):
            if thing.name == "logging.Logger" and name in known.LOGGING:
                return PLAIN
            if name in ("forward", "__call__"):
                return self._call_made(thing.name, call, node, frame)
            if name in known.MODULE_READS:
                return self._read_module(name, receiver, node)
            if name == "apply":
                self._call_back(call, node, frame)
            if self.quiet and name in known.MODULE_SETTINGS:
                return receiver
            is_drawing = thing.name in known.GENERATORS
            return self.deny(call, node, frame, Kind.RANDOM if is_drawing else Kind.UNKNOWN)
        if isinstance(thing, Constant) and not call.named and call.rest is None:
            text = of_method(Value(frozenset((thing,))), name, call.positional)
            if text is not None:
                return text
        if name == "format" and isinstance(thing, (Constant, Plain)):
            self._formatted(getattr(thing, "value", ""), call, node, frame)
        if isinstance(thing, Constant) and name in known.READING_METHODS:
            return PLAIN
        if isinstance(thing, (Plain, ModelSetting)) and name in known.READING_METHODS:
            return receiver
        if isinstance(thing, Unknown) and (not thing.is_argument or name in _OF_QUEUES):
            return self.deny(call, node, frame)
        if name in known.READING_METHODS and isinstance(thing, (Box, Fixed, Unknown)):
            return self._read_container(receiver, name, call, node)
        if isinstance(thing, (Box, Unknown)) and name in known.FILLING_METHODS | known.TAKING_METHODS:
            self.change(receiver, node, frame)
            if isinstance(thing, Box) and name in known.FILLING_METHODS and call.all():
                last = call.all()[-1]
                self.fill(thing, self.item(last) if name in ("extend", "update") else last)
            return self.item(receiver)
        if isinstance(thing, (Box, Fixed)) and name in TAKING_ITEMS:
            return self.item(receiver)
        if isinstance(thing, (Box, Fixed, Constant)) and is_operation(name):
            return NEVER  # It raises an error.
        if isinstance(thing, (Tensor, Unknown, Plain)):
            return self._call_of_tensor(receiver, name, call, roots, node, frame)
        return self.deny(call, node, frame)

    def _formatted(self, template: object, call: Call, node: ast.expr, frame: Frame) -> None:
        """Follow what becomes a text, and the attributes that a template reads of it."""
        for field in _FIELD.findall(template) if isinstance(template, str) else ("",):
            given = join(call.all())
            for name in field.split(".")[1:]:
                given = self.attribute(given, name.partition("[")[0], node, frame)
            self.written(given, node, frame)

    def _ask_back(self, receiver: Value, name: str, call: Call, node: ast.expr, frame: Frame) -> None:
        """Follow what a method of Python's or torch's objects calls of what it gets, and of what it has."""
        for each in call.all():
            self.ask(each, node, frame)
            if name in _GOING_OVER:
                self.consume(each, node, frame)
        if name in _COMPARING:
            self.compared(receiver, join(call.all()), node, frame)
            self._call_back(call, node, frame, receiver)

    def _call_of_tensor(
        self, receiver: Value, name: str, call: Call, roots: frozenset[Root], node: ast.expr, frame: Frame
    ) -> Value:
        out = dict(call.named).get("out")
        if out is not None:
            self._refuse(join(call.all()), node, frame)
            self.change(Value(roots=shared((out,))), node, frame)
            self.mix(out, (TENSOR,))
        if name in _FAILING_BY_GRADIENT:
            self._refuse(receiver, node, frame)
        if name == "numpy":
            return of(Unknown("an array", is_constant=True), roots=receiver.roots)
        if name in known.SHARING or name in tensors.NO_METHODS:
            return self.deny(call, node, frame)  # It may be a method of something else.
        if _draws_with_its_own(call):
            return self.deny(call, node, frame, Kind.GENERATOR)
        if name in tensors.CHANGING:
            self.change(receiver, node, frame)
            if name == "requires_grad_" and is_false(call.argument(0, "requires_grad")):
                return Value(CONSTANT.things, receiver.roots)
            self.mix(receiver, (TENSOR,) if name == "requires_grad_" else call.all())
            return self.tensor((receiver, *call.all()), receiver.roots)
        if name == "type" and not call.all():
            return join(map(type_of, receiver.things))
        if gives_integers(name, call):
            return Value(CONSTANT.things, receiver.roots if name in tensors.VIEWS else frozenset())
        if _gives_several(name, call, 0) and name not in tensors.VIEWS:
            return self._several(name, self.tensor((receiver, *call.all())), node)
        if name in tensors.UNDIFFERENTIABLE and name not in tensors.METHODS_ONLY_READ:
            return Value(CONSTANT.things, receiver.roots if name in tensors.VIEWS else frozenset())
        if name in tensors.FRESH:
            return self.tensor((receiver, *call.all()))
        if name in tensors.VIEWS:
            result = self.tensor((receiver,), receiver.roots)  # The others are sizes, types and places.
            return (
                result
                if name not in ("chunk", "split", "unbind", "tensor_split")
                else of(self._pieces(node, result), roots=receiver.roots)
            )
        if name in tensors.METHODS_ONLY_READ:
            return PLAIN
        if is_operation(name) and not any(isinstance(each, Unknown) for each in receiver.things):
            return NEVER  # Only containers have such a method.
        return self.deny(call, node, frame)

    def _part(self, value: Value, path: str, node: ast.expr, frame: Frame) -> Value:
        """Return the part of a module that stands at a path."""
        for name in filter(None, path.split(".")):
            value = self.item(value) if name.isdigit() else self.attribute(value, name, node, frame)
        return value

    def _several(self, name: str, value: Value, node: ast.expr) -> Value:
        """Return what an operation gives that gives more than one tensor."""
        if name in tensors.WITH_INDICES or name in tensors.FUNCTIONAL:
            return of(Fixed((value, CONSTANT)))
        return of(self._pieces(node, value), roots=value.roots)

    def _pieces(self, node: ast.expr, value: Value) -> Box:
        box = self.box(node, "tuple")
        self.fill(box, value)
        return box

    def _read_container(self, receiver: Value, name: str, call: Call, node: ast.expr) -> Value:
        item = self.item(receiver)
        if name == "items":
            box = self.box(node, "list")
            self.fill(box, of(Fixed((PLAIN, item))))
            return of(box, roots=receiver.roots)
        if name in ("get", "values", "copy"):
            if name == "get":
                return join((item, *call.positional[1:2], NONE))
            box = self.box(node, "list")
            self.fill(box, item)
            return of(box, roots=receiver.roots)
        return PLAIN

    def _read_module(self, name: str, receiver: Value, node: ast.expr) -> Value:
        """Return what a method of a module gives that only reads."""
        tensor = of(Tensor(), roots=receiver.roots)
        if name not in _TENSORS:
            return tensor
        box = self.box(node, "dict" if name == "state_dict" else ITERATOR)
        self.fill(box, of(Fixed((PLAIN, tensor))) if name.startswith("named_") else tensor)
        return of(box)

    def _call_of_module(
        self, thing: Object, receiver: Value, name: str, call: Call, node: ast.expr, frame: Frame
    ) -> Value:
        """Return what a method gives that torch's or the library's modules have."""
        if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
            names = [
                each.value
                for each in (call.argument(0, "name") or NEVER).things
                if isinstance(each, Constant)
            ]
            value = call.argument(1, "tensor") or call.argument(1, "module") or call.argument(1, "param")
            if len(names) != 1 or value is None:
                return self.deny(call, node, frame)
            if name == "register_buffer":  # Nobody expects a gradient for it.
                value = without_gradient(value)
            self.set_attribute(receiver, str(names[0]), value, node, frame)
            if name == "register_buffer":
                self.spaces.version += thing.buffers.add(str(names[0]))
            return NONE
        if name == "__init__":
            return NONE
        if name == "__call__":
            return self._call_object(thing, receiver, call, node, frame)
        if name in known.PARTS:
            is_named, is_deep = name.startswith("named_"), name.endswith("modules")
            box = self.parts(thing, node, is_deep=is_deep, is_named=is_named)
            return of(box, roots=receiver.roots)
        if name == "get_submodule":
            paths = texts(call.argument(0, "target") or NEVER)
            if not paths:
                return with_roots(self.parts(thing, node, is_deep=True).item, receiver.roots)
            return join(self._part(receiver, path, node, frame) for path in sorted(paths))
        if name == "forward":
            inherited = self._call_inherited(thing, call, node, frame)
            return self.deny(call, node, frame) if inherited is None else inherited
        if name in known.MODULE_READS:
            return self._read_module(name, receiver, node)
        if name in known.MODULE_SETTINGS:
            self.change(receiver, node, frame)
            return receiver
        return self.deny(call, node, frame)


def _class_of(thing: Thing) -> Value:
    """Return what ``type`` gives."""
    if isinstance(thing, Object):
        return of(thing.kind)
    if isinstance(thing, Unknown) and thing.is_argument:
        return of(External(_PLAIN_TENSOR), Plain())
    return of(External(_PLAIN_TENSOR)) if isinstance(thing, Tensor) else PLAIN


def _turn(node: ast.expr) -> Value:
    """Return the number of a turn of what goes over the result of a call."""
    return of(Turn(node)) if isinstance(node, ast.Call) else PLAIN


_ADDING = names("sum max min abs pow round divmod")
"""Functions of Python that compute with what they get."""
_GIVING_ITERATORS = ("itertools", "itertools.chain")
"""Where functions are that give an iterator over items of what they get."""
_TENSORS = names("parameters named_parameters buffers named_buffers state_dict")
"""Methods of modules that give an iterator over tensors, or a dict of them."""
_FIELD = re.compile(r"\{([^{}:!]*)")
"""Matches what a field of a template reads."""
_WRITING = frozenset(("str", "repr", "ascii", "format"))
"""Functions that make texts."""
_SUMS = frozenset(("sum", "operator.add", "operator.mul"))
"""Functions that make something new of tensors, and a list or tuple with the same items of those."""
_SPECIAL = names("partial getattr setattr delattr hasattr vars next deepcopy copy")
"""Functions of which it is known in particular what they give."""
_LOOKING = names("iter isinstance type id callable super hasattr getattr setattr")
"""Functions that call no method of what they get, or only later."""
_ASKING = {"len": ("__len__",), "bool": TRUTH, "operator.contains": CONTAINING}
"""Functions that call certain special methods of what they get, and no others."""
_COPYING = (
    *("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"),
    *("__getnewargs__", "__getnewargs_ex__", "__getattr__"),
)
_CONSUMING = names("list tuple set dict frozenset sum max min any all sorted reversed")
"""Functions that go over the one thing that they get."""
_GOING_OVER = names("extend extendleft update join union intersection difference")
"""Methods that go over what they get."""
_HOLDING = frozenset(("list", "tuple"))
"""Those of them that only hold the items."""
_COMPARING = names("sort remove count index apply_ map_ map2_")
"""Methods that compare what is in a container, or call what they get for all of it."""
_FAILING_BY_GRADIENT = frozenset(("numpy", "requires_grad_", "retain_grad", "register_hook"))
"""Methods of a tensor that raise an error if it requires grad, or if it does not."""
_CHOOSING = frozenset(("max", "min"))
"""Functions that give one of what they get, or of its items."""
_OF_QUEUES = frozenset(("get", "copy", "encode", "decode", "count", "index"))
"""Reading methods of containers and texts whose names other objects have for something else."""
_WITHOUT_PARTS = (Plain, Constant, ModelSetting, Function, Class, External)


def _partials(call: Call) -> int:
    """Return how many partials are in each other in what a call passes."""
    return max(
        (
            1 + _partials(Call((each.function, *each.positional), each.named))
            for value in call.all()
            for each in value.things
            if isinstance(each, Partial)
        ),
        default=0,
    )


def shared(values: Iterable[Value]) -> frozenset[Root]:
    """Return what a change of something would change that shares memory with all of these values."""
    found: set[Root] = set()
    waiting, seen = list(values), set[int]()
    while waiting:
        value = waiting.pop()
        if not all(isinstance(each, _WITHOUT_PARTS) for each in value.things):
            found |= value.roots
        for thing in value.things:
            if isinstance(thing, Fixed):
                waiting += thing.items
            elif isinstance(thing, Box) and id(thing) not in seen:
                seen.add(id(thing))
                waiting.append(thing.item)
    return frozenset(found)


def defaults_of(arguments: ast.arguments) -> dict[str, ast.expr]:
    """Return the default values of parameters, by their names."""
    parameters = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    found = dict(zip(reversed(parameters), reversed(arguments.defaults), strict=False))
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            found[parameter.arg] = default
    return found


def _first(call: Call) -> tuple[Value, ...]:
    """Return the first argument of a call; all of them if none is passed by position."""
    return call.positional[:1] or call.all()


def _gives_several(name: str, call: Call, first: int = 1) -> bool:
    """Tell whether an operation gives more than one tensor.

    Args:
        name: the last part of its name.
        call: what it gets.
        first: the position of its first argument behind the tensor.
    """
    named = dict(call.named)
    along = call.positional[first] if len(call.positional) > first else named.get("dim")
    if name.startswith("atleast_") and along is None:
        return False  # Of one tensor it gives one.
    if name in known.PAIRS_ALONG:  # Of two tensors it gives the larger or smaller values.
        return along is not None and not all(isinstance(each, Tensor) for each in along.things)
    return name in known.PAIRS or not is_false(named.get("return_indices", of(Constant(False))))


def _is_in_place(name: str, call: Call) -> bool:
    """Tell whether a function or module may be told to change what it gets."""
    given = dict(call.named).get("inplace")
    if given is None and name in known.IN_PLACE_AT:
        given = call.argument(known.IN_PLACE_AT[name]) or call.rest or call.options
    return given is not None and any(
        not (isinstance(each, Constant) and each.value is False) for each in given.things
    )


def _are_objects(value: Value) -> bool:
    """Tell whether a value is an object of the project, and nothing else."""
    return bool(value.things) and all(isinstance(each, Object) for each in value.things)


def _renormalises(name: str, call: Call) -> bool:
    """Tell whether a function or module may be told to change its weight where it looks something up."""
    if name not in known.RENORMALISING_AT:
        return False
    given = dict(call.named).get("max_norm") or call.argument(known.RENORMALISING_AT[name])
    given = given or call.rest or call.options
    return given is not None and given.things != NONE.things


def _is_handing_on(name: str) -> bool:
    """Tell whether a module of torch may give what it gets."""
    last = name.rpartition(".")[2]
    return "Dropout" in last or last in ("Identity", "Flatten", "Unflatten")


def _may_be_in_cache(value: Value) -> bool:
    """Tell whether a cache that is made of something is still one: nothing that is computed here is in it."""
    return is_constant(value) or all(
        isinstance(each, (Constant, Made)) or (isinstance(each, Unknown) and each.is_argument)
        for each in value.things
    )


def _draws_with_its_own(call: Call, *, is_anywhere: bool = False) -> bool:
    """Tell whether an operation may get a generator of random numbers, whose state nobody restores.

    It takes one by its name alone, or also by its place if it ``is_anywhere``.
    """
    given = dict(call.named).get("generator", call.options) or NEVER
    others = join(call.all() if is_anywhere else ()).things
    return any(isinstance(each, Unknown) and not each.is_argument for each in others) or not all(
        isinstance(each, (Plain, Constant, ModelSetting)) for each in given.things
    )


def _asks_for_grad(call: Call) -> bool:
    """Tell whether a new tensor may be one that requires grad."""
    given = dict(call.named).get("requires_grad", call.options)
    return given is not None and any(
        not (isinstance(each, Constant) and each.value is False) for each in given.things
    )


def _is_module(value: Value) -> bool:
    return any(
        isinstance(each, (Object, Made)) or (isinstance(each, Box) and "nn." in each.kind)
        for each in value.things
    )


def _is_number(thing: Thing) -> bool:
    """Tell whether something is a number, a text or the like, or may be one of the numbers of a type."""
    if isinstance(thing, Method):
        return all(map(_is_number, thing.receiver.things))
    return isinstance(thing, (Plain, Constant, ModelSetting, External))


def _has_items(thing: Thing) -> bool:
    """Tell whether something may be a container, or a tensor, of which the first items may be taken."""
    return isinstance(thing, (Fixed, Box, Unknown, Tensor))


def _is_table(value: Value) -> bool:
    """Tell whether a value may hold modules, and not be one."""
    return any(
        isinstance(each, (Fixed, ModelSetting)) or (isinstance(each, Box) and "nn." not in each.kind)
        for each in value.things
    )


def _first_taken(call: Call, node: ast.expr) -> tuple[Value, ...]:
    """Return what comes first in a tuple of what is given; nothing if that may have lost some items."""
    given = call.positional[0] if call.positional else NEVER
    is_new = isinstance(node, ast.Call) and any(isinstance(each, ast.GeneratorExp) for each in node.args[:1])
    may_be_used = any(isinstance(each, Box) and each.kind == ITERATOR for each in given.things)
    return () if may_be_used and not is_new else front(given)[0]


def is_none(value: Value) -> bool | None:
    """Tell whether a value is None; None if it may be."""
    if not value.things:
        return None
    if all(isinstance(each, Constant) and each.value is None for each in value.things):
        return True
    may_be = any(
        isinstance(each, (Unknown, ModelSetting, Plain, Imported))
        or (isinstance(each, Constant) and each.value is None)
        for each in value.things
    )
    return None if may_be else False


def front(value: Value) -> tuple[tuple[Value, ...], bool]:
    """Return the items that are known to be in front, and whether they are all."""
    ways: list[tuple[tuple[Value, ...], bool]] = []
    for each in value.things:
        if isinstance(each, Fixed):
            ways.append((each.items, True))
        elif isinstance(each, Box) and each.kind in ("tuple", ITERATOR):
            ways.append((each.first, False))
        elif not isinstance(each, (Tensor, Constant)):  # These are in no container's place.
            return (), False
    items = map(join, zip(*(one for one, _ in ways), strict=False))
    first = tuple(Value(each.things, each.roots | value.roots) for each in items)
    return first, all(is_all and len(one) == len(first) for one, is_all in ways)


def _second(value: Value) -> Value:
    """Return the values of what may be pairs of names and values."""
    parts = [
        each.items[1]
        if isinstance(each, Fixed) and len(each.items) == 2
        else Value(frozenset((each,)), value.roots)
        for each in value.things
    ]
    return join(parts)


def _name(node: ast.AST) -> str:
    return quoted(node.func if isinstance(node, ast.Call) else node)
