"""Adapters as low-rank additions on linear layers, over a base whose parameters are frozen."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

_RANK = 2
_SCALE = 0.1


def freeze_under_adapters(model: nn.Module, around: Iterable[nn.Module]) -> dict[str, nn.Parameter]:
    """Freeze a model and put adapters on the linear layers inside of some modules.

    Adapters elsewhere would make the hidden states require grad before the first block, which those of
    adapter libraries usually do not.

    Args:
        model: the model.
        around: the modules.

    Returns:
        The adapters' parameters by name.
    """
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    adapters: dict[str, nn.Parameter] = {}
    for name, module in _adaptable(model, around):
        adapters |= _adapt(name, module)
    return adapters


def is_adaptable(model: nn.Module, around: Iterable[nn.Module]) -> bool:
    """Return whether some modules contain a linear layer that can have an adapter."""
    return any(True for _ in _adaptable(model, around))


def _adaptable(model: nn.Module, around: Iterable[nn.Module]) -> Iterator[tuple[str, Any]]:
    inside = {module for block in around for module in block.modules()}
    for name, module in model.named_modules():
        if module in inside and isinstance(module, nn.Linear | Conv1D) and module.weight.is_floating_point():
            yield name, module


def _adapt(name: str, module: Any) -> dict[str, nn.Parameter]:
    taken, returned = module.weight.shape if isinstance(module, Conv1D) else module.weight.shape[::-1]
    down, up = (
        _parameter(f"{name}.down", (taken, _RANK), module),
        _parameter(f"{name}.up", (_RANK, returned), module),
    )

    def add(_module: nn.Module, arguments: tuple[Any, ...], output: Any) -> Any:
        # A layer that does more than its linear map gets no adapter.
        return output + arguments[0] @ down @ up if arguments and isinstance(output, Tensor) else output

    module.register_forward_hook(add)
    return {f"{name}.down": down, f"{name}.up": up}


def _parameter(name: str, shape: tuple[int, int], module: Any) -> nn.Parameter:
    # Neither is zero, so that gradients flow through both.
    values = torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))) * _SCALE
    return nn.Parameter(values.to(module.weight))
