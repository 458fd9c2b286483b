"""What an attribute holds, down to the items of containers and the attributes of the model's own objects."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy
import torch
from torch import Tensor

from gclint.verify.worker.examination.inspection.readable import is_plain_object

_DEEPEST = 4
_MANY = 1000
"""The most items to look at in one attribute; a table of this size is not what a layer counts with."""
_NUMERIC = "biufc"
"""The kinds of numpy's types that torch knows as well."""


def snapshot(value: Any) -> Any:
    """Return what equals a later snapshot only if nothing was replaced or written to in between."""
    return _Reader(_Held).read(value)


def comparable(value: Any) -> Any:
    """Return the part of a value that a run in another process has as well.

    This is the value itself, a tensor, the name of a type, or a tuple of these for something that has items.
    """
    return _Reader(_copied).read(value)


class _Reader:
    """Reads one value; only ``leaf`` says what becomes of what has no items."""

    def __init__(self, leaf: Any) -> None:
        self._leaf = leaf
        self._left = _MANY

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
        self._state = _state(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Held) or type(self._value) is not type(other._value):
            return False
        if _is_simple(self._value):
            return bool(self._value == other._value)
        return self._value is other._value and bool(self._state == other._state)

    __hash__ = None  # type: ignore[assignment]


def _state(value: Any) -> Any:
    if isinstance(value, Tensor):
        # A tensor made in inference mode counts no versions.
        return None if value.is_inference() else value._version
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
    size = _state(value) if isinstance(value, list | tuple | dict | set | deque) else ""
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
    return vars(value).values() if is_plain_object(value) else None
