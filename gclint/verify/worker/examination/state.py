"""What a model keeps between two steps: parameters, buffers, and attributes of its modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

_HOOKS = frozenset(name for name in vars(nn.Module()) if name.startswith("_forward_"))
_OF_THE_FRAMEWORK = frozenset(vars(nn.Module())) - _HOOKS
_OF_TRANSFORMERS = frozenset(
    ("gradient_checkpointing", "_gradient_checkpointing_func", "_require_grads_hook", "_require_grads_hooks")
)


class Attributes:
    """The attributes and forward hooks of all modules at one moment, with what they held then."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._kept = {
            name: (module, {key: (value, _content(value)) for key, value in _own(module)})
            for name, module in model.named_modules()
        }

    def changes(self) -> dict[str, Any]:
        """Return the values now of the attributes that are not what they were, by their dotted names.

        Switches of checkpointing and hooks are not among them.
        """
        return {
            f"{name}.{key}" if name else key: value
            for name, (module, kept) in self._kept.items()
            for key, value in _own(module)
            if key not in _HOOKS | _OF_TRANSFORMERS and (key not in kept or not _same(kept[key], value))
        }

    def restore(self) -> None:
        """Give every module the attributes back that it had."""
        for module, kept in self._kept.values():
            for key, value in list(_own(module)):
                if key not in kept:
                    del module.__dict__[key]
                elif not _same(kept[key], value):
                    _restore(module, key, *kept[key])


class Values:
    """The parameters and buffers of a model at one moment."""

    def __init__(self, model: nn.Module) -> None:
        self._buffers = [(module, dict(module._buffers)) for module in model.modules() if module._buffers]
        self._tensors = list(state_tensors(model).values())
        self._values = [each.detach().clone() for each in self._tensors]

    def restore(self) -> None:
        """Give the model these values back."""
        for module, buffers in self._buffers:
            module._buffers.clear()
            module._buffers.update(buffers)
        with torch.no_grad():
            for tensor, value in zip(self._tensors, self._values, strict=True):
                tensor.detach().copy_(value)


def state_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the parameters and buffers by name; a tensor that two modules share appears once."""
    return {
        name: tensor
        for name, tensor in (*model.named_parameters(), *model.named_buffers())
        if tensor.device.type != "meta"
    }


def _own(module: nn.Module) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in vars(module).items() if key not in _OF_THE_FRAMEWORK)


def _content(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._version
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list):
        return list(value)
    return None


def _same(kept: tuple[Any, Any], value: Any) -> bool:
    before, content = kept
    if type(value) in (bool, int, float, str):
        return type(before) is type(value) and bool(before == value)
    return before is value and _same_content(content, _content(value))


def _same_content(before: Any, now: Any) -> bool:
    if isinstance(before, dict):
        return list(before) == list(now) and all(before[key] is now[key] for key in before)
    if isinstance(before, list):
        return len(before) == len(now) and all(one is other for one, other in zip(before, now, strict=True))
    return bool(before == now)


def _restore(module: nn.Module, key: str, value: Any, content: Any) -> None:
    if isinstance(value, dict):
        value.clear()
        value.update(content)
    elif isinstance(value, list):
        value[:] = content
    module.__dict__[key] = value
