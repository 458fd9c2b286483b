"""Runs a model in double precision, whatever types it requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class DoublePrecision(TorchDispatchMode):  # type: ignore[misc]
    """Makes, while it is entered, operations return double precision even if another type is requested."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return func(
            *(_doubled_type(each) for each in args),
            **{name: _doubled_type(each) for name, each in (kwargs or {}).items()},
        )


def doubled(value: Any) -> Any:
    """Return ``value`` with floating-point tensors, also those in containers, in double precision."""
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value
    if type(value) is dict:
        return {name: doubled(each) for name, each in value.items()}
    return type(value)(doubled(each) for each in value) if type(value) in (list, tuple) else value


def _doubled_type(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value
