"""What caches are as values, and what becomes of them in containers and by operators."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from gclint.code.names import names
from gclint.model import known, tensors
from gclint.model.entries import Entries
from gclint.model.frames import Frame
from gclint.model.objects import ITERATOR, is_operation
from gclint.model.texts import texts
from gclint.model.values import (
    NEVER,
    NONE,
    PLAIN,
    TENSOR,
    Box,
    Call,
    Class,
    Constant,
    External,
    Field,
    Fixed,
    Given,
    Method,
    ModelSetting,
    Plain,
    Thing,
    Unknown,
    Value,
    join,
    of,
    unknown,
)
from gclint.releases import EVER_NEUTRALISED
from gclint.verify.worker.vocabulary import PLAIN_CACHES, USE_CACHE

DROPPED = EVER_NEUTRALISED - {USE_CACHE}
"""The keywords whose values the base class replaces by None."""
ARGUMENT = re.compile(
    rf"(?:\w+_)?(?:{'|'.join(sorted(DROPPED))}|caches?|past)|{'|'.join(sorted(PLAIN_CACHES))}"
)
"""Matches the names under which a model receives a cache as an argument."""
CACHE = "cache"
"""The kind of a box that stands for a cache: its items are what is put into it."""
DICTS = frozenset(("dict", "collections.OrderedDict", "collections.defaultdict"))
FIGURES = names("shape dtype device ndim")
_COUNTS = names(
    "get_seq_length get_max_cache_shape get_max_length get_usable_length get_mask_sizes size dim numel"
)
"""Methods of caches and their tensors that give numbers."""
_CONVERTING = frozenset(("to", "to_legacy_cache"))
"""Methods of caches and their tensors that return the same in another form or place."""
_HARMLESS = (Plain, Constant, ModelSetting, External, Class)
_FALSE = of(Constant(None), Constant(False))


class CacheValues(Entries):
    """Follows what is done with caches and what holds them; a cache is a container of what is put into it."""

    def _argument(self, name: str, node: ast.arg) -> Value:
        if name == USE_CACHE:
            return PLAIN
        if ARGUMENT.fullmatch(name):
            return join((of(self.box(node, CACHE)), NONE))
        return of(Unknown(name, is_argument=True))

    def mix(self, target: Value, values: Iterable[Value]) -> None:
        """Follow that values are put into another one in place."""
        caches = [cache for cache in map(cache_of, target.things) if cache is not None]
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

    # -- containers

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

    def under(self, name: str, value: Value) -> Value:
        """Return what a dict holds that has a value under a name."""
        return of(Field(name, value))

    def fields(self, call: Call) -> Sequence[Value]:
        """Return what an object holds that is made with some arguments, with the names."""
        more = (each for each in (*call.positional, call.rest, call.options) if each is not None)
        return [*(of(Field(name, value)) for name, value in call.named), *more]

    def unpacked(self, value: Value) -> Value:
        """Return what ``**`` takes out of a value, with the names."""
        dicts = [each for each in value.things if isinstance(each, Box) and each.kind != CACHE]
        others = Value(value.things.difference(dicts), value.roots)
        return join((*(each.item for each in dicts), self.item(others)))

    def item(self, value: Value, index: int | None = None) -> Value:
        """Return an item of a value: a certain one, or any."""
        return _without_names(super().item(value, index))

    def _item(self, thing: Thing, index: int | None) -> Value:
        if cache_of(thing) is not None:
            return of(thing)
        return super()._item(thing, index)

    def at(self, value: Value, index: Value) -> Value:
        """Return the item of a value that stands at an index, or under a key."""
        keys = texts(index)
        if not keys:
            return super().at(value, index)
        return join(self._at(each, key) for each in value.things for key in sorted(keys))

    def _at(self, thing: Thing, key: str) -> Value:
        if isinstance(thing, Box) and (thing.kind in DICTS or _is_output(thing)):
            return _without_names(self._named(thing.item, key))
        return self.item(of(thing))

    def _attribute(
        self, thing: Thing, value: Value, name: str, node: ast.AST, frame: Frame, is_optional: bool
    ) -> Value:
        cache = cache_of(thing)
        if cache is not None:
            return PLAIN if name in FIGURES else of(Method(of(cache), name))
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
        cache = cache_of(thing)
        if cache is not None:
            return self._in_cache(cache, name, call)
        if isinstance(thing, Box) and (thing.kind in DICTS or _is_output(thing)):
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
        dicts = [each for each in value.things if isinstance(each, Box) and each.kind in DICTS]
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
        caches = [cache for cache in map(cache_of, both.things) if cache is not None]
        if caches and all(is_harmless(of(each)) for each in both.things):
            return self.filled(node, CACHE, [each.item for each in caches])
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


def cache_of(thing: Thing) -> Box | None:
    """Return the cache that something is, or is a part of."""
    while isinstance(thing, Method) and len(thing.receiver.things) == 1:
        (thing,) = thing.receiver.things
    return thing if isinstance(thing, Box) and thing.kind == CACHE else None


def _is_output(box: Box) -> bool:
    return box.kind in known.OUTPUTS or box.kind.rpartition(".")[0] in known.OUTPUTS


def _without_names(value: Value) -> Value:
    """Return items of a dict, whatever they are called."""
    if not any(isinstance(each, Field) for each in value.things):
        return value
    return join(each.value if isinstance(each, Field) else of(each) for each in value.things)


def is_cache(value: Value) -> bool:
    """Tell whether a value can only be a cache, None, or a container of these."""
    return _are_caches([value], set())


def _are_caches(values: Iterable[Value], met: set[Thing]) -> bool:
    return all(_may_only_cache(each, met) for value in values for each in value.things)


def _may_only_cache(thing: Thing, met: set[Thing]) -> bool:
    if isinstance(thing, Constant):
        return thing.value is None or thing.value is False
    if isinstance(thing, Fixed):
        return _are_caches(thing.items, met)
    cache = cache_of(thing)
    box = thing if isinstance(thing, Box) else cache
    if box is None or (cache is None and box.kind not in known.CONTAINERS | {ITERATOR}):
        return False
    if box in met:
        return True
    met.add(box)
    if cache is None:
        return _are_caches([_without_names(box.item)], met)
    return all(isinstance(each, _HARMLESS) or _may_only_cache(each, met) for each in box.item.things)


def is_harmless(value: Value) -> bool:
    """Tell whether a cache stays one that gets a value."""
    return all(isinstance(each, _HARMLESS) or _may_only_cache(each, set()) for each in value.things)


def has_caches(value: Value) -> bool:
    """Tell whether a dict that is unpacked has nothing else under the names of caches."""
    dicts = [each for each in value.things if isinstance(each, Box) and each.kind in DICTS]
    return len(dicts) == len(value.things) and all(
        isinstance(each, Given)
        or (
            each.name not in DROPPED or is_cache(each.value)
            if isinstance(each, Field)
            else is_cache(of(each))
        )
        for box in dicts
        for each in box.item.things
    )
