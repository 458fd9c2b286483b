"""Finds the model classes of a module: those that claim to support checkpointing, or whose code uses it."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch.utils.checkpoint
from torch import nn
from transformers import PreTrainedModel

_FLAG = "supports_gradient_checkpointing"
_FUNCTION = "_gradient_checkpointing_func"
_SETTERS = frozenset(("_set_gradient_checkpointing", "gradient_checkpointing_enable"))
_DEPTH = 12
"""How deep modules in modules are searched."""


def model_classes(module: ModuleType) -> list[Any]:
    """Return the model classes that ``module`` defines, in the order of their names.

    These are the subclasses of ``PreTrainedModel`` that have a ``forward``, their own or an inherited one,
    and that claim to support checkpointing, or whose code uses it; a base class without a ``forward`` is not
    a model. A class that the module has under another name than its own, such as one that a function has
    made, gets that name.
    """
    known = vars(module)
    found: dict[Any, str] = {}
    for name, value in known.items():
        if inspect.isclass(value) and value.__module__ == module.__name__ and _is_model(value):
            found.setdefault(value, name)
    for value, name in found.items():
        if known.get(value.__name__) is not value:
            value.__name__ = name
    return sorted(found, key=lambda each: str(each.__name__))


def unsupported(model_class: Any) -> str | None:
    """Return why checkpointing cannot be enabled for a class whose code uses it; None if it can."""
    if getattr(model_class, _FLAG, False):
        return None
    is_set = any(_FLAG in vars(each) for each in model_class.__mro__ if each is not PreTrainedModel)
    flag = f"`{_FLAG}` is {'False' if is_set else 'not set'}"
    return f"{flag}, so checkpointing cannot be enabled, but {checkpoints(model_class)}"


def _is_model(candidate: Any) -> bool:
    return (
        issubclass(candidate, PreTrainedModel)
        and candidate.forward is not nn.Module.forward
        and (bool(getattr(candidate, _FLAG, False)) or checkpoints(candidate) is not None)
    )


def checkpoints(model_class: Any) -> str | None:
    """Return how the code of a class uses checkpointing, in words; None if it apparently does not.

    The search follows the classes that constructors name, through functions and tables.
    """
    waiting, seen = [(model_class, _DEPTH)], {model_class}
    while waiting:
        kind, left = waiting.pop()
        is_layer = any(each.__name__ == "GradientCheckpointingLayer" for each in kind.__mro__)
        if kind is not model_class and is_layer:
            return f"its {kind.__name__} is a checkpointing layer"
        for function in _functions(kind):
            called = _checkpointing(function)
            if called:
                owner = kind.__name__ if kind is not model_class else "it"
                return f"{owner} calls `{called}`"
        constructor = getattr(kind.__init__, "__wrapped__", kind.__init__)
        named = set(_named(constructor)) - seen if left else set()
        seen |= named
        waiting += [(each, left - 1) for each in sorted(named, key=lambda each: str(each.__name__))]
    return None


def _functions(kind: Any) -> Iterator[FunctionType]:
    """Yield the methods of a class and its bases, except for those of base classes of the libraries."""
    for base in kind.__mro__:
        if base in PreTrainedModel.__mro__:
            continue
        for name, value in vars(base).items():
            function = inspect.unwrap(value) if callable(value) else value
            if isinstance(function, FunctionType) and name not in _SETTERS:
                yield function


def _checkpointing(function: FunctionType) -> str | None:
    """Return what a function calls in order to checkpoint."""
    for code in _codes(function.__code__):
        if _FUNCTION in code.co_names:
            return _FUNCTION
        if "checkpoint" in code.co_names and _loads_checkpoint(code, function.__globals__):
            return "torch.utils.checkpoint.checkpoint"
    return None


def _loads_checkpoint(code: CodeType, known: Mapping[str, Any]) -> bool:
    """Return whether code loads torch's function, not an attribute of the same name."""
    before: Any = None
    for each in dis.get_instructions(code):
        if each.opname == "LOAD_GLOBAL":
            before = known.get(str(each.argval))
        elif each.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"):
            before = getattr(before, str(each.argval), None) if isinstance(before, ModuleType) else None
        elif each.opname == "IMPORT_NAME":
            before = sys.modules.get(str(each.argval))
        if before is torch.utils.checkpoint or before is torch.utils.checkpoint.checkpoint:
            return True
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _named(function: Any, depth: int = 2) -> Iterator[Any]:
    """Yield the module classes that a function names, also in a table or through another function."""
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType) or function.__module__.startswith("torch."):
        return
    for name in {name for code in _codes(function.__code__) for name in code.co_names}:
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType) and depth:
            yield from _named(value, depth - 1)
            continue
        for each in _held(value):
            if inspect.isclass(each) and issubclass(each, nn.Module):
                yield each


def _held(value: Any) -> tuple[Any, ...]:
    if isinstance(value, dict):
        return tuple(value.values())
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
