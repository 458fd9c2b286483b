"""Counts how often each block runs in the phases of a training step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Any

import torch
from torch import nn

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.fault import EndlessRecomputation
from gclint.verify.worker.scenarios import ENDLESS


class Phases:
    """Counts, while it is entered, the runs of blocks in forward and in backward passes."""

    def __init__(self, model: nn.Module, blocks: Iterable[Block]) -> None:
        self.backward = False
        self.runs: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        """The runs of each block by name, in backward passes (True) and otherwise."""
        self.recorded: Counter[str] = Counter()
        """The runs of each block in forward passes that recorded a gradient."""
        self._blocks: dict[nn.Module, list[str]] = {}
        for block in blocks:
            self._blocks.setdefault(model.get_submodule(block.inside), []).append(block.name)
        self._hooks: list[Any] = []

    def watch(self, name: str, module: nn.Module) -> None:
        """Count the runs of another module as well, once this is entered."""
        self._blocks.setdefault(module, []).append(name)

    def __enter__(self) -> Phases:
        self._hooks = [module.register_forward_pre_hook(self._count) for module in self._blocks]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for hook in self._hooks:
            hook.remove()

    def _count(self, module: nn.Module, _arguments: Any) -> None:
        for name in self._blocks[module]:
            self.runs[self.backward][name] += 1
            if not self.backward and torch.is_grad_enabled():
                self.recorded[name] += 1
            if self.backward and self.runs[True][name] > ENDLESS * max(self.runs[False][name], 1):
                raise EndlessRecomputation(name)
