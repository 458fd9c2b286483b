"""The state of a model, and of what it is passed, at one moment, and what has changed since then.

It reaches down to the items of containers and the attributes of the model's own objects.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from gclint.verify.worker.examination.inspection.parts import is_plain_object
from gclint.verify.worker.examination.tensors import is_cache
from gclint.verify.worker.vocabulary import USE_CACHE

_DEEPEST = 4
_MOST_ITEMS = 1000
"""The most items to look at in one attribute; a table of this size is not what a layer counts with."""
_NUMERIC = "biufc"
"""The kinds of numpy's types that torch knows as well."""
KNOWN = frozenset(vars(nn.Module())) | {
    "gradient_checkpointing",
    "_gradient_checkpointing_func",
    "_require_grads_hook",
    "_require_grads_hooks",
}
"""The attributes of the framework, and those that enable checkpointing."""
_DEEPEST_CACHE = 5


def snapshot(value: Any) -> Any:
    """Return what equals a later snapshot only if nothing was replaced or written to in between."""
    return _ValueReader(_Held).read(value)


def comparable(value: Any) -> Any:
    """Return the part of a value that a run in another process has as well.

    This is the value itself, a tensor, the name of a type, or a tuple of these for something that has items.
    """
    return _ValueReader(_copied).read(value)


class _ValueReader:
    """Reads one value; only ``leaf`` says what becomes of what has no items."""

    def __init__(self, leaf: Any) -> None:
        self._leaf = leaf
        self._left = _MOST_ITEMS

    def read(self, value: Any, depth: int = 0) -> Any:
        items = _items(value) if depth < _DEEPEST and self._left > 0 else None
        if items is None:
            return self._leaf(value)
        read = []
        for each in islice(items, self._left):
            self._left -= 1
            read.append(self.read(each, depth + 1))
        return (self._leaf(value), *read)


class _Held:
    """An object and its state; while it is held, no new object can have its identity."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._state = _state_of(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Held) or type(self._value) is not type(other._value):
            return False
        if _is_simple(self._value):
            return bool(self._value == other._value)
        return self._value is other._value and bool(self._state == other._state)

    __hash__ = None  # type: ignore[assignment]


def _state_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        # A tensor made in inference mode counts no versions, and one of several tensors has no shape.
        shape = None if value.is_nested else value.shape
        return shape, None if value.is_inference() else value._version
    if isinstance(value, numpy.ndarray):
        return value.tobytes()
    return len(value) if isinstance(value, list | tuple | dict | set | deque) else None


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, numpy.ndarray) and value.dtype.kind in _NUMERIC:
        return torch.from_numpy(numpy.array(value))
    if _is_simple(value):
        return value
    size = _state_of(value) if isinstance(value, list | tuple | dict | set | deque) else ""
    return f"{type(value).__name__} {size}".rstrip()


def _is_simple(value: Any) -> bool:
    return type(value) in (bool, int, float, str)


def _items(value: Any) -> Iterable[Any] | None:
    """Return the items of a container in an order that each process has, or None if there are none."""
    if isinstance(value, dict):
        return (part for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | deque):
        return value
    if isinstance(value, set | frozenset):
        # The text of an object may have its address.
        return sorted(str(each) if _is_simple(each) else type(each).__name__ for each in value)
    if not is_plain_object(value):
        return None
    # The steps set this in configurations themselves.
    skipped = USE_CACHE if isinstance(value, PretrainedConfig) else None
    return [each for key, each in vars(value).items() if key != skipped]


class ModuleAttributes:
    """The attributes of all modules, with their values, at one moment."""

    def __init__(self, model: nn.Module) -> None:
        known: dict[int, Any] = {}
        self._kept = {name: (module, _attributes(module, known)) for name, module in model.named_modules()}

    def changes(self) -> dict[str, Any]:
        """Return the new values of the attributes that have changed, by their dotted names.

        Flags of checkpointing and hooks are left out.
        """
        return {
            f"{name}.{key}" if name else key: value
            for name, (module, kept) in self._kept.items()
            for key, value in vars(module).items()
            if key not in KNOWN and (key not in kept or kept[key] != snapshot(value))
        }


class Values:
    """The parameters and buffers of a model at one moment."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._kept = {name: each.detach().clone() for name, each in state_tensors(model).items()}

    def changes(self) -> dict[str, Tensor]:
        """Return the current ones that are new or have changed."""
        return {
            name: each.detach()
            for name, each in state_tensors(self._model).items()
            if name not in self._kept or not _equal(self._kept[name], each)
        }


def state_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers by name; a tensor that two modules share appears once."""
    return {
        name: tensor
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
        if tensor.device.type != "meta"
    }


def _attributes(module: nn.Module, known: dict[int, Any]) -> dict[str, Any]:
    """Return the snapshots of a module's attributes; modules share most, such as the configuration."""
    found = {}
    for key, value in vars(module).items():
        if key not in KNOWN:
            if id(value) not in known:
                known[id(value)] = snapshot(value)
            found[key] = known[id(value)]
    return found


def _equal(one: Tensor, other: Tensor) -> bool:
    return bool(one.dtype == other.dtype and torch.equal(one, other))


@dataclass(frozen=True)
class SideEffects:
    """The side effects of a backward pass."""

    generators: tuple[str, ...] = ()
    """The modules, other than torch, whose random generators were used."""
    attributes: tuple[str, ...] = ()
    """The attributes of modules that were set."""
    caches: frozenset[int] = frozenset()
    """The identities of the caches that were written to."""
    dictionaries: frozenset[int] = frozenset()
    """The identities of the dictionaries whose content changed."""


class Snapshot:
    """The state at the end of a forward pass."""

    def __init__(
        self, model: nn.Module, caches: Mapping[int, Any], dictionaries: Mapping[int, dict[Any, Any]]
    ) -> None:
        self._generators = _generators()
        self._attributes = ModuleAttributes(model)
        self._caches = {key: (cache, _written(cache)) for key, cache in caches.items()}
        self._dictionaries = {key: (each, _held_in(each)) for key, each in dictionaries.items()}

    def side_effects(self) -> SideEffects:
        """Return what has changed since the end of the forward pass."""
        generators = _generators()
        return SideEffects(
            tuple(name for name, before in self._generators.items() if before != generators[name]),
            tuple(self._attributes.changes()),
            frozenset(key for key, (cache, before) in self._caches.items() if _written(cache) != before),
            frozenset(key for key, (each, before) in self._dictionaries.items() if _held_in(each) != before),
        )


def _generators() -> dict[str, Any]:
    state: Any = numpy.random.get_state()
    kind, keys, *rest = state
    return {"random": random.getstate(), "numpy.random": (kind, keys.tobytes(), *rest)}


def _held_in(value: dict[Any, Any]) -> list[Any]:
    return [(key, _Held(each)) for key, each in value.items()]


def _written(value: Any, depth: int = 0) -> Any:
    """Return a value that changes whenever a tensor in a cache is replaced or written to."""
    if isinstance(value, Tensor):
        return _Held(value)
    if depth == _DEEPEST_CACHE:
        return None
    if isinstance(value, dict):
        return [_written(each, depth + 1) for each in value.values()]
    if isinstance(value, list | tuple):
        return [_written(each, depth + 1) for each in value]
    if is_cache(value) or (
        hasattr(value, "__dict__") and type(value).__module__.startswith("transformers.cache")
    ):
        return [_written(each, depth + 1) for each in vars(value).values()]
    return None
