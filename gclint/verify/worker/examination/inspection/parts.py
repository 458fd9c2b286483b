"""What a value consists of, down to plain values, so that two moments can be compared part by part."""

from __future__ import annotations

import inspect
import io
import random
import warnings
import weakref
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from itertools import islice
from threading import local
from types import FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from gclint.verify.worker.examination.inspection.digest import digest, exact

_MANY = 50
_DEEPEST = 6
_MOST = 500
"""The most parts of one value."""
_PLAIN = (bool, int, float, str, bytes)
_LIBRARIES = ("torch.", "builtins.", "transformers.")
_MODELS = "transformers.models."
_CACHED = type(lru_cache(len))
_OPAQUE = (
    ModuleType, nn.Module, type, PretrainedConfig, FunctionType, MethodType, partial, weakref.ref, _CACHED,
)  # fmt: skip
Part = tuple[str, Any]
"""The path to a part within a value, such as ``.mean`` or ``[0]``, and the part."""


class Parts:
    """Reads the parts of values; what is compared by identity is kept alive, so that it stays unique."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._is_made_anew = False
        self.generators: dict[str, Any] = {}
        """The random generators that were met, by the names under which they are held."""
        self.tensors: dict[str, Tensor] = {}
        """The tensors that were met."""

    def read(self, name: str, value: Any) -> dict[str, Any]:
        """Return tokens for the parts of a value by their paths; equal ones stand for equal parts."""
        return dict(islice(self._read(name, "", value, 0, set()), _MOST))

    def _read(self, name: str, path: str, value: Any, depth: int, outer: set[int]) -> Iterator[Part]:
        # NaN is not equal to itself.
        if value is None or isinstance(value, _PLAIN):
            yield path, value if value == value else "nan"
        elif (state := generator_state(value)) is not None:
            self.generators[name + path] = value
            yield path, ("generator", state)
        elif _is_iterator(value):
            # What it would be made from anew is of no interest, only whether that is the same as before.
            outside, self._is_made_anew = self._is_made_anew, True
            parts = tuple(islice(self._inner(name, path, value, depth, outer), _MOST))
            self._is_made_anew = outside
            yield path, ("iterator", _position(value), parts)
        else:
            yield path, self._token(name + path, value)
            yield from self._inner(name, path, value, depth, outer)

    def _inner(self, name: str, path: str, value: Any, depth: int, outer: set[int]) -> Iterator[Part]:
        if depth < _DEEPEST and id(value) not in outer:
            left = _MANY
            for step, each in islice(_inside(value), _MOST):
                # What is plain costs little.
                left -= not isinstance(each, _PLAIN)
                if left >= 0:
                    yield from self._read(name, path + step, each, depth + 1, {*outer, id(value)})

    def _token(self, name: str, value: Any) -> Any:
        if isinstance(value, Tensor):
            self.tensors[name] = value
            found = exact(value)
            if found.bits or not value.numel():
                is_trained = isinstance(value, nn.Parameter) and value.requires_grad
                return ("tensor", found.key, len(value._backward_hooks or ()), is_trained)
        elif isinstance(value, numpy.ndarray):
            return ("array", digest(value).bits)
        elif isinstance(value, list | tuple | dict | set | frozenset | deque):
            return (type(value).__name__, len(value))
        elif _is_buffer(value):
            return (type(value).__name__, zlib.crc32(value))
        elif isinstance(value, io.IOBase):
            with suppress(OSError, ValueError):
                return (type(value).__name__, value.tell())
        elif isinstance(value, _CACHED):
            return ("cache", self._identity(value), value.cache_info().currsize)
        elif _holds_attributes(value):
            return (type(value).__name__,)
        return self._identity(value)

    def _identity(self, value: Any) -> tuple[str, int]:
        if self._is_made_anew:
            return (type(value).__name__, 0)
        self._kept.append(value)
        return (type(value).__name__, id(value))


def _is_buffer(value: Any) -> bool:
    """Return whether something is plain memory, such as an array of bytes or a number of C."""
    with suppress(TypeError, ValueError):
        return memoryview(value).c_contiguous
    return False


def is_plain_object(value: Any) -> bool:
    """Return whether something is a plain object of the model's own code."""
    kind = type(value)
    return (
        isinstance(value, local)
        or (
            hasattr(value, "__dict__")
            and not callable(value)
            and not isinstance(value, ModuleType | nn.Module | type)
        )
    ) and is_of_models(kind.__module__)


def is_of_models(module: str) -> bool:
    """Return whether a Python module has model code, and is not one of the underlying libraries."""
    return f"{module}.".startswith(_MODELS) or not f"{module}.".startswith(_LIBRARIES)


def generator_state(value: Any) -> int | None:
    """Return a number for the state of a random generator, or None if it is something else."""
    if isinstance(value, torch.Generator):
        return zlib.crc32(value.get_state().numpy().tobytes())
    if isinstance(value, numpy.random.Generator):
        return zlib.crc32(repr(value.bit_generator.state).encode())
    if isinstance(value, numpy.random.RandomState):
        return zlib.crc32(repr(value.get_state(legacy=False)).encode())
    if isinstance(value, random.Random):
        return zlib.crc32(repr(value.getstate()).encode())
    return None


def tensors_within(value: Any, depth: int = 0) -> Iterator[Tensor]:
    """Yield the tensors that something holds, also in closures and attributes of objects."""
    if isinstance(value, Tensor):
        yield value
    elif depth < _DEEPEST and not isinstance(value, nn.Module):
        for _, each in list(_inside(value))[:_MANY]:
            yield from tensors_within(each, depth + 1)


def captured(function: Any) -> Iterator[Part]:
    """Yield the variables that a function captures."""
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        with suppress(ValueError):  # One without a value yet.
            yield name, cell.cell_contents


def _inside(value: Any) -> Iterable[Part]:
    """Return what something holds, with the path to each."""
    if isinstance(value, Tensor):
        return _attributes(getattr(value, "__dict__", {}))
    if isinstance(value, dict):
        return ((f"[{_key(key) or index}]", each) for index, (key, each) in enumerate(value.items()))
    if isinstance(value, list | tuple | deque):
        return ((f"[{index}]", each) for index, each in enumerate(value))
    if isinstance(value, set | frozenset):
        return ((f"[{index}]", each) for index, each in enumerate(sorted(map(_key, value))))
    if isinstance(value, ContextVar):
        return [("", value.get(None))]
    if isinstance(value, partial):
        return (("", value.func), *((f".{name}", each) for name, each in value.keywords.items()))
    if isinstance(value, MethodType):
        return () if isinstance(value.__self__, nn.Module) else [("", value.__self__)]
    if isinstance(value, GeneratorType):
        return _attributes(value.gi_frame.f_locals if value.gi_frame is not None else {})
    if _is_iterator(value):
        return _iterated(value)
    if isinstance(value, FunctionType):
        return _of_function(value)
    return _attributes(_held(value)) if _holds_attributes(value) else ()


def _attributes(values: dict[str, Any]) -> Iterator[Part]:
    return ((f".{name}", each) for name, each in list(values.items()))


def _of_function(function: FunctionType) -> Iterator[Part]:
    inner = inspect.unwrap(function)
    if isinstance(inner, FunctionType) and is_of_models(inner.__module__ or ""):
        yield from ((f".{name}", each) for name, each in captured(inner))
        yield from _attributes({name: each for name, each in vars(function).items() if name[:2] != "__"})


def _holds_attributes(value: Any) -> bool:
    """Return whether something has attributes that only the model's code, or a container, would set."""
    kind = type(value)
    return is_plain_object(value) or (
        not isinstance(value, _OPAQUE)
        and is_of_models(kind.__module__)
        and bool(getattr(kind, "__slots__", ()) or hasattr(value, "__dict__"))
    )


def _is_iterator(value: Any) -> bool:
    """Return whether something is an iterator of Python's own, or a generator."""
    return isinstance(value, Iterator) and not isinstance(value, io.IOBase) and not _holds_attributes(value)


def _held(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return {**found, **getattr(value, "__dict__", {})}


def _slots(kind: type) -> Iterable[str]:
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    return (each for each in names if not each.startswith("__"))


def _position(iterator: Any) -> Any:
    """Return a value that changes as an iterator advances; it is not advanced."""
    if isinstance(iterator, GeneratorType):
        return None if iterator.gi_frame is None else iterator.gi_frame.f_lasti
    hint = getattr(iterator, "__length_hint__", None)
    return hint() if hint is not None else repr(iterator)


def _iterated(iterator: Any) -> Iterator[Part]:
    """Yield what an iterator of Python's own would be made from anew, which is where it stands."""
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")  # Those of itertools will not be copied from Python 3.14 on.
        _, *made_from = iterator.__reduce__()
        yield "", tuple(made_from)


def _key(key: Any) -> str:
    return repr(key) if key is None or isinstance(key, str | int | float | bool | bytes) else ""
