"""The state of a model between two steps: parameters, buffers, and attributes of its modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gclint.verify.worker.examination.contents import snapshot

_KNOWN = frozenset(vars(nn.Module())) | {
    "gradient_checkpointing",
    "_gradient_checkpointing_func",
    "_require_grads_hook",
    "_require_grads_hooks",
}
"""The attributes of the framework, and those that enable checkpointing."""


class Attributes:
    """The attributes of all modules, with their values, at one moment."""

    def __init__(self, model: nn.Module) -> None:
        self._kept = {name: (module, _held(module)) for name, module in model.named_modules()}

    def changes(self) -> dict[str, Any]:
        """Return the new values of the attributes that have changed, by their dotted names.

        Flags of checkpointing and hooks are left out.
        """
        return {
            f"{name}.{key}" if name else key: value
            for name, (module, kept) in self._kept.items()
            for key, value in vars(module).items()
            if key not in _KNOWN and (key not in kept or kept[key] != snapshot(value))
        }


class Values:
    """The parameters and buffers of a model at one moment."""

    def __init__(self, model: nn.Module, copies: Mapping[str, Tensor]) -> None:
        """Copy the current values.

        Args:
            model: the model.
            copies: known copies of most of them, which do not change.
        """
        self._model = model
        self._kept = {name: _copy(each, copies.get(name)) for name, each in state_tensors(model).items()}

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


def _held(module: nn.Module) -> dict[str, Any]:
    return {key: snapshot(value) for key, value in vars(module).items() if key not in _KNOWN}


def _copy(tensor: Tensor, known: Tensor | None) -> Tensor:
    """Return a copy of a tensor; ``known`` if that is equal, since comparing is cheaper than allocating."""
    is_known = known is not None and known.device == tensor.device and _equal(known, tensor)
    return known if known is not None and is_known else tensor.detach().clone()


def _equal(one: Tensor, other: Tensor) -> bool:
    return bool(one.dtype == other.dtype and torch.equal(one, other))
