"""What a value consists of, down to plain values, and digests of these, to compare two moments part by part.

Digests are also compared with those that another process has made.
"""

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
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from threading import local
from types import FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch._C import DisableTorchFunction
from transformers import PretrainedConfig

_MOST_ITEMS = 64
"""The most items of a container that its digest is made of."""
_TOLERANCES = {torch.float64: 1e-9, torch.float32: 3e-5, torch.bfloat16: 3e-2, torch.float16: 5e-3}
"""How much values may differ by rounding, relative to themselves."""


@dataclass(frozen=True)
class Digest:
    """A tensor's shape, bits and size, or the text of something else."""

    text: str
    """A description for people: a value, or the shape and type of a tensor."""
    bits: int = 0
    size: float = 0.0
    projection: float = 0.0
    tolerance: float = 0.0

    @property
    def key(self) -> str:
        """A key that is the same for equal values."""
        return f"{self.text}#{self.bits}" if self.bits else self.text

    def is_close(self, other: Digest) -> bool:
        """Return whether two values differ only by rounding."""
        if self == other:
            return True
        if self.text != other.text or not self.tolerance:
            return False
        largest = self.tolerance * max(self.size, other.size)
        return abs(self.size - other.size) <= largest and abs(self.projection - other.projection) <= largest


def digest(value: Any) -> Digest:
    """Return the digest of a value."""
    if isinstance(value, Tensor):
        return _of_tensor(value)
    if isinstance(value, numpy.ndarray):
        return Digest(f"an array of {value.shape}", zlib.crc32(numpy.ascontiguousarray(value).tobytes()))
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device):
        return Digest(repr(value))
    if isinstance(value, list | tuple):
        inner = [digest(each) for each in value[:_MOST_ITEMS]]
        bits = zlib.crc32(repr(inner).encode())
        return Digest(f"({', '.join(each.text for each in inner)})", bits)
    if isinstance(value, dict):
        items = [(str(name), digest(each)) for name, each in list(value.items())[:_MOST_ITEMS]]
        bits = zlib.crc32(repr(items).encode())
        return Digest(f"{{{', '.join(f'{name}: {each.text}' for name, each in items)}}}", bits)
    return Digest(f"a `{type(value).__name__}`")


def shape(tensor: Tensor) -> Digest:
    """Return the digest of a tensor whose values do not matter."""
    return Digest(f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}")


def exact(tensor: Tensor) -> Digest:
    """Return the digest of a tensor without what tells whether another one is close, which takes longer."""
    return _of_tensor(tensor, is_exact=True)


def _of_tensor(tensor: Tensor, *, is_exact: bool = False) -> Digest:
    # Whoever watches functions of torch is not to see these.
    with DisableTorchFunction():
        known = shape(tensor)
        try:
            with torch.no_grad():
                return _of_values(tensor, known.text, is_exact=is_exact)
        except (RuntimeError, NotImplementedError, TypeError):
            # Sparse and quantized tensors, and those of function transforms, do not show their values.
            return known


def _of_values(tensor: Tensor, text: str, *, is_exact: bool) -> Digest:
    dense = tensor.detach().cpu().contiguous().reshape(-1)
    dense = dense.resolve_conj().resolve_neg()
    bits = zlib.crc32(dense.view(torch.uint8).numpy()) if dense.numel() else 0
    if is_exact or not dense.is_floating_point() or not dense.numel():
        if dense.numel() == 1 and not dense.is_floating_point():
            text = f"{text} {dense.item()}"
        return Digest(text, bits)
    values = dense.double()
    # Non-finite values, as in masks, count by position, so that they do not hide the others.
    beyond = 1.0 + float(values.nan_to_num(0.0, 0.0, 0.0).abs().max())
    values = values.nan_to_num(beyond / 2, beyond, -beyond)
    return Digest(
        text,
        bits,
        float(values.norm()),
        float(values @ _weights(values.numel())),
        _TOLERANCES.get(dense.dtype, 0.0),
    )


@lru_cache(maxsize=512)
def _weights(count: int) -> Tensor:
    """Return numbers between -1 and 1 that follow no pattern."""
    return torch.cos(torch.arange(count, dtype=torch.float64) ** 2 * 0.7 + 1.0)


_MANY = 50
_DEEPEST = 6
_MOST = 500
"""The most parts of one value."""
_PLAIN = (bool, int, float, str, bytes)
_LIBRARIES = ("torch.", "builtins.", "transformers.", "gclint.")
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
