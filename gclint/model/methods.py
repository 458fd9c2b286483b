"""What methods do whose objects are not of the project, and objects of the project that are called."""

from __future__ import annotations

import ast
import re

from gclint.code.names import names
from gclint.model import known, tensors
from gclint.model.externals import Externals, draws_with_its_own, gives_several
from gclint.model.frames import Frame
from gclint.model.gradients import gives_integers, is_false, type_of, without_gradient
from gclint.model.notes import Kind, Root
from gclint.model.objects import ITERATOR, TAKING_ITEMS, is_operation
from gclint.model.reflection import shared
from gclint.model.texts import of_method, texts
from gclint.model.values import (
    CONSTANT,
    NEVER,
    NONE,
    PLAIN,
    TENSOR,
    Box,
    Call,
    Class,
    Constant,
    Fixed,
    Made,
    Method,
    ModelSetting,
    Object,
    Plain,
    Tensor,
    Thing,
    Unknown,
    Value,
    each_of,
    join,
    of,
    with_roots,
)

_TENSORS = names("parameters named_parameters buffers named_buffers state_dict")
"""Methods of modules that give an iterator over tensors, or a dict of them."""
_FIELD = re.compile(r"\{([^{}:!]*)")
"""Matches what a field of a template reads."""
_GOING_OVER = names("extend extendleft update join union intersection difference")
"""Methods that go over what they get."""
_COMPARING = names("sort remove count index apply_ map_ map2_")
"""Methods that compare what is in a container, or call what they get for all of it."""
_FAILING_BY_GRADIENT = frozenset(("numpy", "requires_grad_", "retain_grad", "register_hook"))
"""Methods of a tensor that raise an error if it requires grad, or if it does not."""
_OF_QUEUES = frozenset(("get", "copy", "encode", "decode", "count", "index"))
"""Reading methods of containers and texts whose names other objects have for something else."""


class Methods(Externals):
    """Follows calls of objects and of their methods."""

    def _call_inherited(self, thing: Object, call: Call, node: ast.expr, frame: Frame) -> Value | None:
        """Return what a module of torch gives that a class inherits from; None if there is none."""
        line = self.line(thing.kind)
        name = next((each for each in line if isinstance(each, str) and self.is_plain_module(each)), None)
        own = {one for each in line if isinstance(each, Class) for one in self.spaces.members.get(each, {})}
        read = (one in known.READ_BY_TORCH or one.startswith("_") for one in own - known.NOT_READ_BY_TORCH)
        if name is not None and any(read):
            self.note("inherits a method of torch that may read what the class has of its own", node, frame)
        if name is not None and any(each in thing.attributes for each in known.CHANGING_SETTINGS):
            self.note("inherits a method of torch that may change what it gets, or its weight", node, frame)
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

    def call_method(self, method: Method, call: Call, node: ast.expr, frame: Frame) -> Value:
        """Return what a method gives whose object is not of the project."""
        found = [
            self._call_method(alone, thing, method.name, call, node, frame)
            for thing, alone in each_of(method.receiver)
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
        if isinstance(thing, (Box, Unknown)) and (
            name in known.FILLING_METHODS or name in known.TAKING_METHODS
        ):
            self.change(receiver, node, frame)
            if isinstance(thing, Box) and name in known.FILLING_METHODS and call.all():
                last = call.all()[-1]
                self.fill(thing, self.item(last) if name in ("extend", "update") else last)
            return self.item(receiver)
        if isinstance(thing, (Box, Fixed)) and name in TAKING_ITEMS:
            if name == "__next__":
                self.change(receiver, node, frame)
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
        if draws_with_its_own(call):
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
        if gives_several(name, call, 0) and name not in tensors.VIEWS:
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
            self.begin_inherited(thing, call)
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
