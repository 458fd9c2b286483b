"""The state that a model can read besides its arguments: attributes, globals, closures, random generators."""

from __future__ import annotations

import inspect
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from threading import local
from types import FunctionType, ModuleType
from typing import Any, Literal

import numpy
import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from gclint.verify.worker.examination.inspection.digest import digest

Holder = Literal[
    "attribute", "mode", "hook", "global", "class", "default", "closure", "generator", "torch", "config"
]
_MANY = 50
_SKIPPED = frozenset(
    ("gradient_checkpointing", "_gradient_checkpointing_func", "_require_grads_hook", "_require_grads_hooks")
)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_OF_THE_FRAMEWORK = frozenset(vars(nn.Module()))
_LIBRARIES = ("torch.", "builtins.", "transformers.")
_MODELS = "transformers.models."


@dataclass(frozen=True)
class Change:
    """A change of something that a model can read."""

    holder: Holder
    name: str
    before: str
    now: str
    owner: str = ""
    """The name of the module or function that has it."""
    before_key: str = ""
    now_key: str = ""
    """The key of the digest of its new value."""


class ReadableState:
    """The state that a model can read when a checkpoint begins, besides its arguments."""

    def __init__(self, model: nn.Module, function: Callable[..., Any]) -> None:
        self._kept: list[Any] = []
        # Objects that are compared by identity are kept alive, so that no other can have the same.
        self._tokens: dict[tuple[Holder, str, str], Any] = {}
        self._generators: dict[str, Any] = {}
        for holder, owner, name, value in _readable(model, function):
            self._tokens[holder, owner, name] = self._token(value)
            if holder == "generator":
                self._generators[f"{owner}.{name}" if owner else name] = value
        self._states = {name: generator_state(each) for name, each in self._generators.items()}

    def changes(self, now: ReadableState) -> tuple[Change, ...]:
        """Return what has been replaced or changed since then."""
        return tuple(
            Change(holder, name, _text(before), _text(after), owner, _key(before), _key(after))
            for (holder, owner, name), before in self._tokens.items()
            if before != (after := now._tokens.get((holder, owner, name), before))
        )

    def drawn(self) -> frozenset[str]:
        """Return the names of the random generators that have been used since then."""
        return frozenset(
            name for name, each in self._generators.items() if generator_state(each) != self._states[name]
        )

    def _token(self, value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, bool | int | float | str | bytes):
            # NaN is not equal to itself.
            return value if value == value else "nan"
        if isinstance(value, Tensor):
            found = digest(value)
            return ("tensor", found.key) if found.bits or not value.numel() else self._identity(value)
        state = generator_state(value)
        if state is not None:
            return ("generator", state)
        if isinstance(value, numpy.ndarray):
            return ("array", digest(value).bits)
        if isinstance(value, ContextVar):
            return self._token(value.get(None), depth + 1)
        if depth < 3:
            if isinstance(value, list | tuple | set):
                return tuple(self._token(each, depth + 1) for each in list(value)[:_MANY])
            if isinstance(value, dict):
                return tuple(
                    (str(key), self._token(each, depth + 1)) for key, each in list(value.items())[:_MANY]
                )
            if is_plain_object(value):
                return self._token(vars(value), depth + 1)
        return self._identity(value)

    def _identity(self, value: Any) -> tuple[str, int]:
        self._kept.append(value)
        return (type(value).__name__, id(value))


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
    ) and _is_of_models(kind.__module__)


def _is_of_models(module: str) -> bool:
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


def _readable(model: nn.Module, function: Callable[..., Any]) -> Iterator[tuple[Holder, str, str, Any]]:
    yield "generator", "", "random", random._inst
    yield "generator", "", "numpy.random", numpy.random.mtrand._rand
    yield "torch", "", "the default type", str(torch.get_default_dtype())
    yield "torch", "", "autocast", _autocast()
    yield "torch", "", "the state of torch's random numbers", torch.random.default_generator
    for owner, name, value in closure(function):
        yield "closure", owner, name, value
    yield from _attributes(model)
    yield from _globals(model)


def _autocast() -> str:
    enabled = filter(torch.is_autocast_enabled, ("cpu", "cuda"))
    return ", ".join(f"{kind}: {torch.get_autocast_dtype(kind)}" for kind in enabled)


def _attributes(model: nn.Module) -> Iterator[tuple[Holder, str, str, Any]]:
    configurations: dict[int, Any] = {}
    for owner, module in model.named_modules():
        yield "mode", owner, "training", module.training
        for name in _HOOKS:
            yield "hook", owner, name, [id(each) for each in vars(module).get(name, {}).values()]
        for name, value in vars(module).items():
            if isinstance(value, PretrainedConfig):
                configurations[id(value)] = value
            elif name not in _OF_THE_FRAMEWORK and name not in _SKIPPED:
                yield "generator" if generator_state(value) is not None else "attribute", owner, name, value
        for name, value in module._buffers.items():
            yield "attribute", owner, name, value
    for config in configurations.values():
        for name, value in vars(config).items():
            if value is None or isinstance(value, bool | int | float | str):
                yield "config", type(config).__name__, name, value


def _globals(model: nn.Module) -> Iterator[tuple[Holder, str, str, Any]]:
    kinds = dict.fromkeys(base for each in model.modules() for base in type(each).__mro__)
    modules: dict[str, None] = {}
    for kind in kinds:
        if _is_of_models(kind.__module__):
            modules[kind.__module__] = None
            for name, value in vars(kind).items():
                # The examination itself replaces some.
                if not name.startswith("__") and not isinstance(value, property | classmethod | staticmethod):
                    yield "class", kind.__name__, name, value
                    yield from _defaults(f"{kind.__name__}.{name}", value)
    for module in modules:
        for name, value in list(vars(sys.modules.get(module, sys)).items()):
            if not name.startswith("__") and not isinstance(value, ModuleType | type):
                yield "generator" if generator_state(value) is not None else "global", module, name, value


def _defaults(owner: str, value: Any) -> Iterator[tuple[Holder, str, str, Any]]:
    """Yield the default values of a function's parameters, which all its calls share."""
    function = inspect.unwrap(value) if isinstance(value, FunctionType) else None
    if isinstance(function, FunctionType):
        code, positional = function.__code__, function.__defaults__ or ()
        names = code.co_varnames[code.co_argcount - len(positional) : code.co_argcount]
        for name, default in (*zip(names, positional, strict=True), *(function.__kwdefaults__ or {}).items()):
            yield "default", owner, name, default


def closure(function: Any, depth: int = 0) -> Iterator[tuple[str, str, Any]]:
    """Yield the variables that a function, and those that it calls, capture.

    Each comes with the name of the function, its own name, and its value.
    """
    if isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType) or function.__closure__ is None or depth > 1:
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        yield function.__name__, name, value
        yield from closure(value, depth + 1)


def _text(token: Any) -> str:
    """Return a short text of a value; empty if it has none."""
    return "" if isinstance(token, tuple) else repr(token)


def _key(token: Any) -> str:
    if isinstance(token, tuple):
        return str(token[1]) if token[:1] == ("tensor",) else ""
    return repr(token)
