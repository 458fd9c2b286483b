"""Finds tensors and caches in the inputs and outputs of models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from gclint.verify.worker.vocabulary import CACHES

_DEEPEST = 8
_SPARSE = frozenset(
    (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
)


def is_cache(value: object) -> bool:
    """Return whether ``value`` is a cache of what layers have computed for earlier tokens."""
    if isinstance(value, dict | set | Tensor | nn.Module | PretrainedConfig):
        return False
    kind = type(value)
    return callable(getattr(kind, "update", None)) or any("Cache" in each.__name__ for each in kind.__mro__)


def is_cache_name(name: str) -> bool:
    """Return whether an argument or output with this name is a cache."""
    return name in CACHES


def tensors_in(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in ``value`` with the path to them, except those in caches.

    Args:
        value: a tensor, or containers of tensors.
        path: the path to ``value``; a component is a key, the name of a field, or an index.
        depth: how deep ``value`` itself is nested.
    """
    if isinstance(value, Tensor):
        yield path, value
    elif depth < _DEEPEST and not is_cache(value):
        for name, each in _items(value):
            if not is_cache_name(name):
                yield from tensors_in(each, f"{path}.{name}" if path else name, depth + 1)


def outputs_of(value: Any) -> dict[str, Tensor]:
    """Return the tensors that a model has returned, with their paths."""
    found = tensors_in((value,) if isinstance(value, Tensor) else value)
    return {path: dense(tensor) for path, tensor in found}


def dense(tensor: Tensor) -> Tensor:
    """Return a sparse tensor as a dense one, which can be compared; any other as it is."""
    return tensor.to_dense() if tensor.layout in _SPARSE else tensor


def requires_grad(value: object) -> bool:
    """Return whether ``value`` is a tensor through which gradients flow."""
    return isinstance(value, Tensor) and value.requires_grad


def move(value: Any, device: torch.device) -> Any:
    """Return ``value`` with its tensors, also those in containers, on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict) and type(value) is dict:
        return {name: move(each, device) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(move(each, device) for each in value)
    if isinstance(value, dict):
        for name in list(value):
            value[name] = move(value[name], device)
    return value


def _items(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((str(name), each) for name, each in value.items())
    elif isinstance(value, list | tuple):
        names = getattr(value, "_fields", None) or map(str, range(len(value)))
        yield from zip(names, value, strict=True)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((each.name, getattr(value, each.name)) for each in fields(value))
