"""Which parts of a model are made so that nothing in them requires grad."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from gclint.code.walk import last_name
from gclint.model.entries import Entries
from gclint.model.frames import Frame
from gclint.model.gradients import is_constant
from gclint.model.reading import ANY
from gclint.model.spaces import Spaces
from gclint.model.values import (
    CONSTANT,
    Box,
    Call,
    Constant,
    Fixed,
    Made,
    Object,
    Thing,
    Value,
    of,
)

_TENSORS = frozenset(("weight", "bias", "parameters", "named_parameters"))
"""The attributes of a part of torch's that are, or give, its parameters."""
_FROZEN = "torch.nn.Embedding.from_pretrained"


class Freezing(Entries):
    """Takes note of parts that are frozen where they are made, and of what these compute."""

    def __init__(self, spaces: Spaces, *, is_quiet: bool = False, most_steps: int) -> None:
        """Start without knowing of any."""
        super().__init__(spaces, is_quiet=is_quiet, most_steps=most_steps)
        self._frozen: defaultdict[Object, set[str]] = defaultdict(set)

    def within(self, objects: Iterable[Object]) -> set[Object]:
        """Return objects with all that they hold."""
        found, waiting = set[Object](), [of(each) for each in objects]
        while waiting:
            for thing in waiting.pop().things:
                if isinstance(thing, Object) and thing not in found:
                    found.add(thing)
                    waiting += thing.attributes.values()
                elif isinstance(thing, (Box, Fixed)):
                    waiting.append(self.item(of(thing)))
        return found

    def _freeze(self, node: ast.expr, frame: Frame) -> None:
        """Take note that what an expression stands for is frozen, if that is done where a model is made."""
        if not any(getattr(each, "name", "") == "__init__" for each in self.stack):
            return
        while isinstance(node, ast.Attribute) and node.attr in _TENSORS:
            node = node.value
        frozen = [(each, ANY) for each in self.within(_objects_among(self.quietly(node, frame)))]
        if isinstance(node, ast.Attribute):
            frozen += [(each, node.attr) for each in _objects_among(self.quietly(node.value, frame))]
        for thing, name in frozen:
            if name not in self._frozen[thing]:
                self._frozen[thing].add(name)
                self.spaces.version += 1

    def attribute(
        self, value: Value, name: str, node: ast.AST, frame: Frame, *, is_optional: bool = False
    ) -> Value:
        """Return an attribute, which may be a frozen part."""
        found = super().attribute(value, name, node, frame, is_optional=is_optional)
        frozen = (self._frozen.get(each, ()) for each in value.things if isinstance(each, Object))
        if any(name in each or ANY in each for each in frozen):
            return Value(frozenset(map(_as_frozen, found.things)), found.roots)
        return found

    def _call(self, thing: Thing, function: Value, call: Call, node: ast.expr, frame: Frame) -> Value:
        found = super()._call(thing, function, call, node, frame)
        if not isinstance(thing, Made) or not thing.is_frozen:
            return found
        looks_up = thing.name.endswith(("Embedding", "EmbeddingBag"))  # What it gets are numbers.
        return CONSTANT if looks_up or is_constant(*call.all()) else found

    def _call_external(self, name: str, call: Call, node: ast.expr, frame: Frame) -> Value:
        found = super()._call_external(name, call, node, frame)
        is_frozen = name == _FROZEN and not _is_false(call.argument(1, "freeze"))
        return of(Made("torch.nn.Embedding", is_frozen=True)) if is_frozen else found

    def _call_method(
        self, receiver: Value, thing: Thing, name: str, call: Call, node: ast.expr, frame: Frame
    ) -> Value:
        method = node.func if isinstance(node, ast.Call) and name == "requires_grad_" else None
        if isinstance(method, ast.Attribute) and _is_false(call.argument(0, "requires_grad")):
            self._freeze(method.value, frame)
        return super()._call_method(receiver, thing, name, call, node, frame)

    def set_attribute(self, value: Value, name: str, given: Value, node: ast.AST, frame: Frame) -> None:
        """Assign an attribute, by which a parameter may be frozen."""
        if name == "requires_grad" and _is_false(given) and isinstance(node, ast.Attribute):
            self._freeze(node.value, frame)
        super().set_attribute(value, name, given, node, frame)

    def _follow_for(self, node: ast.For, frame: Frame) -> None:
        super()._follow_for(node, frame)
        source = node.iter.func if isinstance(node.iter, ast.Call) else None
        if isinstance(source, ast.Attribute) and source.attr in _TENSORS and any(map(_freezes, node.body)):
            self._freeze(source, frame)


def _objects_among(value: Value) -> list[Object]:
    return [each for each in value.things if isinstance(each, Object)]


def _as_frozen(thing: Thing) -> Thing:
    return replace(thing, is_frozen=True) if isinstance(thing, Made) else thing


def _is_false(value: Value | None) -> bool:
    return value is not None and value.things == {Constant(False)}


def _freezes(node: ast.stmt) -> bool:
    """Tell whether a statement freezes a parameter, whatever it is about."""
    if isinstance(node, ast.Assign):
        is_false = isinstance(node.value, ast.Constant) and node.value.value is False
        return is_false and any(last_name(each) == "requires_grad" for each in node.targets)
    call = node.value if isinstance(node, ast.Expr) else None
    given = call.args[:1] if isinstance(call, ast.Call) and last_name(call.func) == "requires_grad_" else []
    return any(isinstance(each, ast.Constant) and each.value is False for each in given)
