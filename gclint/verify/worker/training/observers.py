"""Observers of the calls of blocks in the steps of a practice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.tensors import is_cache, requires_grad, tensors_in
from gclint.verify.worker.training.group import BadPractice

Observe = Callable[[str, Any, Any], None]
"""Called with the name of a block, and the positional and keyword arguments of its call."""


def _before_each(model: nn.Module, blocks: Sequence[Block], observe: Observe) -> None:
    for block in blocks:

        def hook(_block: nn.Module, args: Any, kwargs: Any, name: str = block.name) -> None:
            observe(name, args, kwargs)

        model.get_submodule(block.name).register_forward_pre_hook(hook, with_kwargs=True)


class InputGradients:
    """Records whether the inputs of blocks require grad."""

    def __init__(self, model: nn.Module, blocks: Sequence[Block]) -> None:
        self._requires_grad: dict[str, bool] = {}
        _before_each(model, blocks, self._observe)

    def without_grad(self) -> list[str]:
        """Return the names of the blocks without an input that required grad in their first run."""
        return [name for name, requires_grad in self._requires_grad.items() if not requires_grad]

    def _observe(self, name: str, args: Any, kwargs: Any) -> None:
        self._requires_grad.setdefault(
            name, any(requires_grad(each) for _, each in tensors_in((args, kwargs)))
        )


class CachesGiven:
    """Records which blocks are passed a cache."""

    def __init__(self, model: nn.Module, blocks: Sequence[Block]) -> None:
        self._given: dict[str, None] = {}
        _before_each(model, blocks, self._observe)

    @property
    def names(self) -> list[str]:
        """The names of these blocks."""
        return list(self._given)

    def _observe(self, name: str, args: Any, kwargs: Any) -> None:
        if any(map(is_cache, (*args, *kwargs.values()))):
            self._given[name] = None


class CachesReturned:
    """Records whether a model returns caches that layers have written to."""

    def __init__(self, model: nn.Module) -> None:
        self._filled = False
        model.register_forward_hook(self._observe)

    def check(self) -> None:
        """Raise :class:`BadPractice` if it did."""
        if self._filled:
            raise BadPractice("cache on", "the layers write to a cache although checkpointing is enabled")

    def _observe(self, _model: nn.Module, _args: Any, outputs: Any) -> None:
        caches = vars(outputs).values() if hasattr(outputs, "__dict__") else ()
        self._filled = self._filled or any(map(_is_filled, caches))


def _is_filled(value: Any) -> bool:
    length = getattr(value, "get_seq_length", None)
    return length is not None and bool(length())
