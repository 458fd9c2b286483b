"""The state that a model can read: attributes, arguments, globals, closures, settings, random generators."""

from __future__ import annotations

import inspect
import os
import random
import re
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, Literal

import numpy
import torch
from torch import nn
from torch.backends import ContextProp
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from transformers import PretrainedConfig

from gclint.verify.worker.examination.block_calls import OWN_MODULES, bound
from gclint.verify.worker.examination.inspection.parts import (
    Parts,
    captured,
    generator_state,
    is_of_models,
)
from gclint.verify.worker.examination.state import KNOWN, snapshot
from gclint.verify.worker.examination.tensors import address_of
from gclint.verify.worker.protocol import SourcePlace

Holder = Literal[
    "attribute", "unnamed", "argument", "weight", "module", "mode", "hook", "global", "class", "default",
    "closure", "generator", "torch", "context", "config", "environment",
]  # fmt: skip
TORCH = "the state of torch's random numbers"
SAVING = "the hooks on saved tensors"
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_SETTINGS = (
    "are_deterministic_algorithms_enabled", "get_default_device", "get_float32_matmul_precision",
    "get_num_threads", "is_inference_mode_enabled",
)  # fmt: skip
"""Functions of torch that return a setting."""
_ITEM = re.compile(r"\[\d+\]$")
_MOST = 3
"""The most parts of one value to name."""
_NOTHING = ("nothing",)
_Key = tuple[Holder, str, str]


@dataclass(frozen=True)
class AttributeAssignment:
    """Where an attribute of a module was set while the model ran."""

    place: SourcePlace
    in_checkpoint: bool


@dataclass(frozen=True)
class StateChange:
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
    part: str = ""
    """The path to what has changed within it; empty if that is itself."""
    is_new: bool = False
    """Whether it did not exist before."""
    is_gone: bool = False
    """Whether it does not exist any more."""
    is_cache: bool = False
    """Whether it is the cache of a function."""
    in_block: bool = False
    """Whether it had changed when the first run of the checkpoint ended."""
    set_by: AttributeAssignment | None = None
    """What has set it last since the checkpoint began, if that was seen."""

    @property
    def place(self) -> str:
        """Where it is held, as the model would write it."""
        return ".".join(each for each in (self.owner, self.name) if each)


class ReadableState:
    """The state that a model can read when a checkpoint begins."""

    def __init__(
        self,
        model: nn.Module,
        function: Callable[..., Any],
        arguments: tuple[Any, ...] = (),
        keywords: dict[str, Any] | None = None,
        saving: str = "",
    ) -> None:
        parts = Parts()
        self._tokens: dict[_Key, dict[str, Any]] = {
            (holder, owner, name): parts.read(f"{owner}.{name}" if owner else name, value)
            for holder, owner, name, value in _readable(
                model, partial(function, **(keywords or {})), arguments
            )
        }
        self._tokens["context", "", SAVING] = {"": saving or None}
        self._kept = parts
        self._states = {name: generator_state(each) for name, each in parts.generators.items()}

    def changes(self, now: ReadableState) -> tuple[StateChange, ...]:
        """Return what has been replaced, changed or added since then."""
        return tuple(
            change
            for key in {**self._tokens, **now._tokens}
            for change in _changes(key, self._tokens.get(key), now._tokens.get(key, {}))
        )

    def stored(self, now: ReadableState, *, has_graph: bool = False) -> frozenset[str]:
        """Return where there are tensors now that were not there, which have a graph or none."""
        made = (
            _ITEM.sub("", name)
            for name, each in now._kept.tensors.items()
            if each is not self._kept.tensors.get(name)
            and each.is_floating_point()
            and each.requires_grad == has_graph
        )
        # What the cache of a function holds cannot be read.
        return frozenset((*made, *(each.place for each in self.changes(now) if each.is_cache)))

    def address(self, change: StateChange) -> int | None:
        """Return where the storage of the tensor is that a change is about, if it is one."""
        tensor = self._kept.tensors.get(change.place + change.part)
        return None if tensor is None else address_of(tensor)

    def entering(self) -> tuple[str, ...]:
        """Return where there are tensors with a graph, except those that are arguments themselves."""
        arguments = {name for holder, _, name in self._tokens if holder == "argument"}
        return tuple(
            name
            for name, each in self._kept.tensors.items()
            if each.requires_grad and not each.is_leaf and name not in arguments
        )

    def drawn(self) -> frozenset[str]:
        """Return the names of the random generators that have been used since then."""
        return frozenset(
            name
            for name, each in self._kept.generators.items()
            if generator_state(each) != self._states[name]
        )


def _changes(key: _Key, before: dict[str, Any] | None, now: dict[str, Any]) -> list[StateChange]:
    holder, owner, name = key
    if holder == "hook" and not now:
        return []  # The module is another.
    if before is None:
        new = now.get("", _NOTHING)
        made: Holder = "generator" if _is(new, "generator") else holder
        return [StateChange(made, name, "", _text(new), owner, "", _key(new), "", True)]
    found = []
    for path in {**before, **now}:
        old, new = before.get(path, _NOTHING), now.get(path, _NOTHING)
        if old != new:
            is_drawn = holder != "torch" and _is(old, "generator") and _is(new, "generator")
            kind: Holder = "generator" if is_drawn else holder
            more: Any = {"is_gone": new is _NOTHING, "is_cache": _is(old, "cache")}
            found.append(
                StateChange(kind, name, _text(old), _text(new), owner, _key(old), _key(new), path, **more)
            )
    # Its size is of less interest than its items.
    inner = [each for each in found if each.part]
    return (inner or found)[:_MOST]


def _is(token: Any, kind: str) -> bool:
    return isinstance(token, tuple) and token[:1] == (kind,)


def _readable(
    model: nn.Module, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Iterator[tuple[Holder, str, str, Any]]:
    yield "generator", "", "random", random._inst
    yield "generator", "", "numpy.random", numpy.random.mtrand._rand
    yield "torch", "", "the default type", str(torch.get_default_dtype())
    yield "torch", "", "autocast", _autocast()
    yield "torch", "", TORCH, torch.random.default_generator
    yield "context", "", "the modes for functions", _of_models(_get_current_function_mode_stack())
    yield "context", "", "the modes for operations", _of_models(_get_current_dispatch_mode_stack())
    for owner, name, value in closure(function):
        yield "closure", owner, name, value
    for name, value in _arguments(function, arguments):
        yield "argument", "", name, value
    yield from _attributes(model)
    yield from _globals(model)
    yield from _surroundings()


def _autocast() -> str:
    enabled = filter(torch.is_autocast_enabled, ("cpu", "cuda"))
    return ", ".join(f"{kind}: {torch.get_autocast_dtype(kind)}" for kind in enabled)


def _of_models(modes: Iterable[Any]) -> str | None:
    """Return the names of the modes that are not torch's, or gclint's."""
    kinds = [type(each) for each in modes]
    return ", ".join(each.__name__ for each in kinds if is_of_models(each.__module__)) or None


def _arguments(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Return the arguments of a checkpoint by name, with those that its function has been given already."""
    keywords: dict[str, Any] = {}
    while isinstance(function, partial):
        arguments, keywords = (*function.args, *arguments), function.keywords | keywords
        function = function.func
    owner = getattr(function, "__self__", function)
    if arguments and isinstance(arguments[0], nn.Module):
        owner, arguments = arguments[0], arguments[1:]
    if isinstance(owner, nn.Module):
        return bound(type(owner), arguments, keywords)
    return [*((str(index), each) for index, each in enumerate(arguments)), *keywords.items()]


def _attributes(model: nn.Module) -> Iterator[tuple[Holder, str, str, Any]]:
    configurations: dict[int, Any] = {}
    for owner, module in model.named_modules():
        yield "module", owner, "", id(module)
        yield "mode", owner, "training", module.training
        for name in _HOOKS:
            # Those of another module are others.
            hooks = [*vars(module).get(name, {}).values()]
            yield "hook", owner, f"{name} of {id(module)}", [id(each) for each in hooks]
            for hook in hooks:
                if not str(hook.__module__).startswith(OWN_MODULES):
                    yield "attribute", owner, getattr(hook, "__name__", type(hook).__name__), hook
        for name, value in vars(module).items():
            if isinstance(value, PretrainedConfig):
                configurations[id(value)] = value
            elif name not in KNOWN:
                # Torch reads the attributes of its own modules, and calls that of this name.
                is_unnamed = name == "forward" or type(module).__module__.startswith("torch.")
                holder: Holder = "unnamed" if is_unnamed else "attribute"
                yield "generator" if generator_state(value) is not None else holder, owner, name, value
        for name, value in module._buffers.items():
            yield "attribute", owner, name, value
        for name, value in module._parameters.items():
            yield "weight", owner, name, value
    for config in configurations.values():
        for name, value in vars(config).items():
            yield "config", type(config).__name__, name, value


def _globals(model: nn.Module) -> Iterator[tuple[Holder, str, str, Any]]:
    kinds = dict.fromkeys(base for each in model.modules() for base in type(each).__mro__)
    modules = _modules({each.__module__ for each in kinds if is_of_models(each.__module__)})
    others: dict[ModuleType, None] = {}
    for module in modules:
        for name, value in list(vars(sys.modules.get(module, sys)).items()):
            if isinstance(value, type) and value.__module__ == module:
                kinds[value] = None
            elif isinstance(value, ModuleType) and is_of_models(value.__name__):
                others[value] = None
            elif not name.startswith("__") and not isinstance(value, ModuleType | type):
                yield "generator" if generator_state(value) is not None else "global", module, name, value
                yield from _defaults(name, value)
    for kind in kinds:
        if is_of_models(kind.__module__):
            for name, value in vars(kind).items():
                # The examination itself replaces some.
                if not name.startswith("__") and not isinstance(value, property | classmethod | staticmethod):
                    yield "class", kind.__name__, name, value
                    yield from _defaults(f"{kind.__name__}.{name}", value)
    for other in others:
        for name, value in list(vars(other).items()):
            if not name.startswith("__") and isinstance(value, bool | int | float | str):
                yield "global", other.__name__, name, value


class SharedState:
    """The containers that are variables of a model's code, or attributes of its classes, at one moment."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._kept = self._read()

    def changes(self) -> frozenset[str]:
        """Return the names of those that have changed since."""
        now = self._read()
        return frozenset(name for name, each in self._kept.items() if each != now.get(name, each))

    def _read(self) -> dict[str, Any]:
        return {
            f"{owner}.{name}": snapshot(value)
            for holder, owner, name, value in _globals(self._model)
            if holder in ("global", "class") and isinstance(value, list | dict | set | deque)
        }


def _modules(names: Collection[str]) -> list[str]:
    """Return modules with those of their own packages from which they import something."""
    packages = tuple(f"{package}." for name in names if (package := name.rpartition(".")[0]))
    values = [each for name in names for each in vars(sys.modules.get(name, sys)).values()]
    used = [
        each.__name__ if isinstance(each, ModuleType) else each.__module__ or ""
        for each in values
        if isinstance(each, ModuleType | FunctionType | type)
    ]
    return list(dict.fromkeys((*names, *(name for name in used if packages and name.startswith(packages)))))


def _surroundings() -> Iterator[tuple[Holder, str, str, Any]]:
    """Yield settings of the process and of torch."""
    for name, value in os.environ.items():
        yield "environment", "", name, value
    for backend, value in vars(torch.backends).items():
        for name, kind in vars(type(value)).items():
            with suppress(RuntimeError):  # Torch does not tell what two of its interfaces have set.
                if isinstance(kind, ContextProp):
                    yield "config", f"torch.backends.{backend}", name, getattr(value, name)
    for name in _SETTINGS:
        value = getattr(torch, name)()
        yield "config", "torch", name, str(value) if isinstance(value, torch.device) else value


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
    if not isinstance(function, FunctionType) or depth > 1:
        return
    for name, value in captured(function):
        yield function.__name__, name, value
        yield from closure(value, depth + 1)


def _text(token: Any) -> str:
    """Return a short text of a value; empty if it has none."""
    return "" if isinstance(token, tuple) else repr(token)


def _key(token: Any) -> str:
    if isinstance(token, tuple):
        return str(token[1]) if token[:1] == ("tensor",) else ""
    return repr(token)
