"""Adds noise to the recomputation, as other kernels would, and selects how experts are computed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.phases import Phases

_SIZE = 2.0**-8
"""The relative size of the noise: about a rounding error of bfloat16."""
_NORM = re.compile(r"norm", re.IGNORECASE)
_EXPERTS = re.compile(r"expert|moe|router", re.IGNORECASE)
_IMPLEMENTATION = "_experts_implementation"
_IMPLEMENTATIONS = ("eager", "grouped_mm")


class RecomputeNoise:
    """Adds, while it is entered, noise to the inputs of the norms of blocks, only in the backward pass."""

    def __init__(self, model: nn.Module, blocks: Iterable[Block], phases: Phases, seed: int) -> None:
        self._norms = {
            module: None
            for block in blocks
            for module in model.get_submodule(block.name).modules()
            if _NORM.search(type(module).__name__) and next(module.children(), None) is None
        }
        self._phases = phases
        self._generator = torch.Generator().manual_seed(seed)
        self._hooks: list[Any] = []

    def __enter__(self) -> RecomputeNoise:
        self._hooks = [module.register_forward_pre_hook(self._add_noise) for module in self._norms]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for hook in self._hooks:
            hook.remove()

    def _add_noise(self, _module: nn.Module, arguments: tuple[Any, ...]) -> Any:
        if not (self._phases.backward and arguments and isinstance(arguments[0], Tensor)):
            return None
        first, *others = arguments
        noise = torch.randn(first.shape, generator=self._generator).to(first)
        # An addition saves nothing for the backward pass, where everything that is saved is compared.
        return (first + first.detach() * _SIZE * noise, *others)


def has_experts(model: nn.Module) -> bool:
    """Return whether a model has experts, judging by the class names of its modules."""
    return any(_EXPERTS.search(type(module).__name__) for module in model.modules())


def expert_implementations(model: nn.Module) -> tuple[str, ...]:
    """Return the implementations of a model's experts by name; an empty name if there is only one."""
    has_choice = any(hasattr(getattr(module, "config", None), _IMPLEMENTATION) for module in model.modules())
    return _IMPLEMENTATIONS if has_choice else ("",)


def use_experts(model: nn.Module, implementation: str) -> None:
    """Make a model compute its experts with one of the implementations of its release."""
    for module in model.modules():
        config = getattr(module, "config", None)
        if hasattr(config, _IMPLEMENTATION):
            setattr(config, _IMPLEMENTATION, implementation)
