"""Finds the side effects of recomputation: what a backward pass has changed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy
from torch import Tensor, nn

from gclint.verify.worker.examination.state import Attributes
from gclint.verify.worker.examination.tensors import is_cache

_DEEPEST = 5


@dataclass(frozen=True)
class SideEffects:
    """The side effects of a backward pass."""

    generators: tuple[str, ...] = ()
    """The modules, other than torch, whose random generators were used."""
    attributes: tuple[str, ...] = ()
    """The attributes of modules that were set."""
    set_before: tuple[str, ...] = ()
    """Attributes that were set in the forward pass."""
    caches: frozenset[int] = frozenset()
    """The identities of the caches that were written to."""
    dictionaries: frozenset[int] = frozenset()
    """The identities of the dictionaries whose content changed."""


class Snapshot:
    """The state at the end of a forward pass."""

    def __init__(
        self,
        model: nn.Module,
        caches: Mapping[int, Any],
        dictionaries: Mapping[int, dict[Any, Any]],
        before: Attributes,
    ) -> None:
        self._set_before = tuple(before.changes())
        self._generators = _generators()
        self._attributes = Attributes(model)
        self._caches = {key: (cache, _written(cache)) for key, cache in caches.items()}
        self._dictionaries = {key: (each, _content(each)) for key, each in dictionaries.items()}

    def side_effects(self) -> SideEffects:
        """Return what has changed since the end of the forward pass."""
        generators = _generators()
        return SideEffects(
            tuple(name for name, before in self._generators.items() if before != generators[name]),
            tuple(self._attributes.changes()),
            self._set_before,
            frozenset(key for key, (cache, before) in self._caches.items() if _written(cache) != before),
            frozenset(key for key, (each, before) in self._dictionaries.items() if _content(each) != before),
        )


def _generators() -> dict[str, Any]:
    state: Any = numpy.random.get_state()
    kind, keys, *rest = state
    return {"random": random.getstate(), "numpy.random": (kind, keys.tobytes(), *rest)}


class _Held:
    """An object and its state at one moment; while it is held, no new object can have its identity."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._state = (getattr(value, "_version", 0), getattr(value, "shape", None))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self._value is other._value and self._state == other._state


def _content(value: dict[Any, Any]) -> list[Any]:
    return [(key, _Held(each)) for key, each in value.items()]


def _written(value: Any, depth: int = 0) -> Any:
    """Return a value that changes whenever a tensor in a cache is replaced or written to."""
    if isinstance(value, Tensor):
        return _Held(value)
    if depth == _DEEPEST:
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
