"""What is looked at while the steps of a practice are taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.tensors import carries_gradient, is_cache, tensors_in
from gclint.verify.worker.training.group import BadPractice


class Fed:
    """Notes whether what goes into blocks requires grad."""

    def __init__(self, model: nn.Module, blocks: Sequence[Block]) -> None:
        self._fed: dict[str, bool] = {}
        for block in blocks:
            self._watch(block.name, model.get_submodule(block.name))

    def starved(self) -> list[str]:
        """Return the names of the blocks that got nothing that requires grad when they first ran."""
        return [name for name, is_fed in self._fed.items() if not is_fed]

    def _watch(self, name: str, block: nn.Module) -> None:
        def look(_block: nn.Module, args: Any, kwargs: Any) -> None:
            self._fed.setdefault(name, any(carries_gradient(each) for _, each in tensors_in((args, kwargs))))

        block.register_forward_pre_hook(look, with_kwargs=True)


class CachesGiven:
    """Notes which blocks are given a cache."""

    def __init__(self, model: nn.Module, blocks: Sequence[Block]) -> None:
        self._given: dict[str, None] = {}
        for block in blocks:
            self._watch(block.name, model.get_submodule(block.name))

    @property
    def names(self) -> list[str]:
        """The names of these blocks."""
        return list(self._given)

    def _watch(self, name: str, block: nn.Module) -> None:
        def look(_block: nn.Module, args: Any, kwargs: Any) -> None:
            if any(map(is_cache, (*args, *kwargs.values()))):
                self._given[name] = None

        block.register_forward_pre_hook(look, with_kwargs=True)


class CachesReturned:
    """Notes whether a model returns caches that layers have written to."""

    def __init__(self, model: nn.Module) -> None:
        self._filled = False
        model.register_forward_hook(self._look)

    def check(self) -> None:
        """Raise :class:`BadPractice` if it did."""
        if self._filled:
            raise BadPractice("cache on", "the layers write to a cache although checkpointing is on")

    def _look(self, _model: nn.Module, _args: Any, outputs: Any) -> None:
        caches = vars(outputs).values() if hasattr(outputs, "__dict__") else ()
        self._filled = self._filled or any(map(_is_filled, caches))


def _is_filled(value: Any) -> bool:
    length = getattr(value, "get_seq_length", None)
    return length is not None and bool(length())
