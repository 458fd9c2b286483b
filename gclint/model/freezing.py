"""Which parts of a model are made so that nothing in them requires grad."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from gclint.code.walk import last_name
from gclint.model import known
from gclint.model.entries import Entries
from gclint.model.frames import Frame
from gclint.model.gradients import is_constant, is_false
from gclint.model.reading import ANY, Members
from gclint.model.spaces import Spaces
from gclint.model.values import (
    CONSTANT,
    NEVER,
    Bound,
    Box,
    Call,
    Constant,
    Fixed,
    Function,
    Made,
    Method,
    Object,
    Partial,
    Super,
    Thing,
    Unknown,
    Value,
    of,
)

_TENSORS = frozenset(("weight", "bias", "parameters", "named_parameters"))
"""The attributes of a part of torch's that are, or give, its parameters."""
_PARTS = _TENSORS | known.PARTS
"""These, and the methods of a module that give its parts."""
_FREEZING = frozenset(("requires_grad_", "detach_"))
_REGISTERING = frozenset(("register_buffer", "register_parameter"))
"""The methods that put something else in the place of a parameter of a module of torch."""
_HOLDING = frozenset(("_parameters", "_buffers", "__dict__"))
"""The attributes by which that can be done as well."""
_FROZEN = "torch.nn.Embedding.from_pretrained"


class Freezing(Entries):
    """Takes note of parts that are frozen where they are made, and of what these compute."""

    def __init__(self, spaces: Spaces, *, is_quiet: bool = False, most_steps: int) -> None:
        """Start without knowing of any."""
        super().__init__(spaces, is_quiet=is_quiet, most_steps=most_steps)
        self._frozen: defaultdict[Object, Members] = defaultdict(Members)
        self._taken_from: dict[str, ast.expr] = {}
        """What the variables of loops over parts or parameters go over."""

    def within(self, *values: Value) -> set[Object]:
        """Return the objects that values are, with all that they hold, or would run where they are called."""
        return {each for value in self.reached(values) for each in objects_among(value)}

    def reached(self, values: Iterable[Value], *, with_modules: bool = True) -> Iterator[Value]:
        """Yield values with all that they hold, or would run where they are called.

        Args:
            values: the values.
            with_modules: whether also what modules of the project hold.
        """
        met, waiting = set[Thing](), [*values]
        while waiting:
            value = waiting.pop()
            yield value
            for thing in value.things:
                if isinstance(thing, Fixed):
                    waiting += thing.items
                elif isinstance(thing, Partial):
                    waiting += (thing.function, *thing.positional, *(each for _, each in thing.named))
                elif isinstance(thing, (Bound, Method, Super)):
                    waiting.append(thing.receiver)
                elif isinstance(thing, (Object, Box, Function)) and thing not in met:
                    met.add(thing)
                    if isinstance(thing, Box):
                        waiting.append(thing.item)
                    elif isinstance(thing, Function):
                        waiting += closed_over(thing)
                    elif with_modules or not self.is_module(thing.kind):
                        waiting += thing.attributes.values()

    def _freeze(self, node: ast.expr | None, frame: Frame) -> None:
        """Take note that what an expression stands for is frozen, by whatever method: it may run before.

        If it is not known what that is, it may be anything in the innermost object that is being made, or in
        the one that it comes from.
        """
        making = [
            call.positional[0]
            for function, call in zip(self.stack, self.calls, strict=True)
            if getattr(function, "name", "") == "__init__" and call.positional
        ]
        frozen = [] if node is None else self.parts_of(node, frame)
        found = NEVER if node is None else self.quietly(node, frame)
        if not making and any(map(_may_be_part, found.things)):
            making = [call.positional[0] for call in self.calls[:1] if call.positional]
        # What is taken out of a container may be a part of torch's, beside objects.
        is_known = frozen and not (isinstance(node, ast.Subscript) and any(map(_may_be_part, found.things)))
        for thing, name in frozen if is_known else [(each, ANY) for each in self.within(*making[-1:])]:
            self.spaces.version += self._frozen[thing].add(name)

    def parts_of(self, node: ast.expr, frame: Frame) -> list[tuple[Object, str]]:
        """Return the objects that an expression stands for, or the attribute of objects."""
        left = dict(self._taken_from)
        while True:
            if isinstance(node, ast.Attribute) and node.attr in _PARTS:
                node = node.value
            elif isinstance(node, ast.Name) and node.id in left:
                node = left.pop(node.id)
            else:
                break
        found = [(each, ANY) for each in self.within(self.quietly(node, frame))]
        if isinstance(node, ast.Attribute):
            found += [(each, node.attr) for each in objects_among(self.quietly(node.value, frame))]
        return found

    def attribute(
        self, value: Value, name: str, node: ast.AST, frame: Frame, *, is_optional: bool = False
    ) -> Value:
        """Return an attribute, which may be a frozen part."""
        if name in _HOLDING and any(isinstance(each, Made) for each in value.things):
            self._freeze(node.value if isinstance(node, ast.Attribute) else None, frame)
        found = super().attribute(value, name, node, frame, is_optional=is_optional)
        frozen = [self._frozen[each] for each in value.things if isinstance(each, Object)]
        if any(name in each or ANY in each for each in frozen):
            return Value(frozenset(map(_as_frozen, found.things)), found.roots)
        return found

    def _call(self, thing: Thing, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        method = node.func if isinstance(node, ast.Call) else node
        name = thing.name if isinstance(thing, Method) else last_name(method)  # Also of what is not known.
        if name in _FREEZING and _may_freeze(call.argument(0, "requires_grad"), name):
            self._freeze(method.value if isinstance(method, ast.Attribute) else None, frame)
        if name in _REGISTERING and isinstance(method, ast.Attribute):
            holder = self.quietly(method.value, frame)
            if any(isinstance(each, Made) for each in holder.things):
                self._freeze(method.value, frame)
        found = super()._call(thing, function, call, node, frame)
        if not isinstance(thing, Made) or not thing.is_frozen:
            return found
        looks_up = thing.name.endswith(("Embedding", "EmbeddingBag"))  # What it gets are numbers.
        return CONSTANT if looks_up or is_constant(*call.all()) else found

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        found = super()._call_external(name, call, node, frame)
        is_frozen = name == _FROZEN and not is_false(call.argument(1, "freeze"))
        return of(Made("torch.nn.Embedding", is_frozen=True)) if is_frozen else found

    def set_attribute(self, value: Value, name: str, given: Value, node: ast.AST, frame: Frame) -> None:
        """Assign an attribute, by which a parameter may be frozen, or replaced by one that is."""
        is_of_torch = name in _TENSORS and any(isinstance(each, Made) for each in value.things)
        is_frozen = is_of_torch and bool(given.things) and is_constant(given)
        if is_frozen or (name == "requires_grad" and _may_freeze(given)):
            self._freeze(node.value if isinstance(node, ast.Attribute) else None, frame)
        super().set_attribute(value, name, given, node, frame)

    def deleted(self, value: Value, name: str, node: ast.AST, frame: Frame) -> None:
        """Follow what deletes an attribute, in whose place may come what requires no grad."""
        if name in _TENSORS and any(isinstance(each, Made) for each in value.things):
            self._freeze(node.value if isinstance(node, ast.Attribute) else None, frame)
        super().deleted(value, name, node, frame)

    def _follow_for(self, node: ast.For, frame: Frame) -> None:
        before = dict(self._taken_from)
        source = node.iter.func if isinstance(node.iter, ast.Call) else None
        if isinstance(source, ast.Attribute) and source.attr in _PARTS:
            bound = Counter(
                each.id
                for part in (node.target, *node.body)
                for each in ast.walk(part)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            )
            # What is bound once more inside is something else from there on.
            self._taken_from.update({name: source for name, times in bound.items() if times == 1})
        super()._follow_for(node, frame)
        self._taken_from = before


def closed_over(function: Function) -> Iterator[Value]:
    """Yield what an inner function reads of the functions around it."""
    frames = () if function.frame is None else function.frame.around()
    read = {each.id for each in ast.walk(function.node) if isinstance(each, ast.Name)} if frames else ()
    yield from (frame.names[name] for frame in frames for name in frame.names.keys() & read)


def objects_among(value: Value) -> list[Object]:
    """Return the objects of the project's classes that a value may be."""
    return [each for each in value.things if isinstance(each, Object)]


def _as_frozen(thing: Thing) -> Thing:
    return replace(thing, is_frozen=True) if isinstance(thing, Made) else thing


def _may_be_part(thing: Thing) -> bool:
    """Tell whether something may be a part of a model, or a parameter, and is none that a caller passes."""
    return isinstance(thing, Made) or (isinstance(thing, Unknown) and not thing.is_argument)


def _may_freeze(given: Value | None, method: str = "") -> bool:
    """Tell whether that may be set to False which says whether something requires grad."""
    if given is None:
        return method == "detach_"
    return given.things != {Constant(True)}
