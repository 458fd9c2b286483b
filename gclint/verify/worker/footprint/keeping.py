"""What weights, gradients and the state of an optimizer take, where they are quantised, factored or sharded.

Nothing here is run: these are formulas, and an estimate says so of every number that one of them has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import ceil, prod
from typing import Any

from torch import Tensor, nn

from gclint.verify.worker.estimates import ADAFACTOR, OPTIMIZERS, EstimateRequest

_IN_GROUP = 64
"""How many 4-bit weights of bitsandbytes share a scale in float32; 8-bit weights share one in each row."""
_OF_ADAPTERS = "lora_"
_STATES, _GRADIENTS, _WEIGHTS = 1, 2, 3
"""What the stages of ZeRO shard, each in addition to those before; FSDP is as the last one."""


class Keeping:
    """What the weights of a model take."""

    def __init__(self, model: nn.Module, question: EstimateRequest) -> None:
        self._question = question
        self._ranks = question.sharding.ranks if question.sharding is not None else 1
        self._stage = question.sharding.stage if question.sharding is not None else 0
        # Weights are replaced while a model is built, and modules are not.
        linear = set(_quantised(model)) if question.bits is not None else set()
        self._quantised = {id(each.weight) for each in linear}
        self._trained = [each for each in model.parameters() if each.requires_grad]
        self._weights = [*model.parameters()]
        self._transient = self._most_gathered(model, linear)

    @property
    def is_by_formula(self) -> bool:
        """Whether any of this follows from a formula."""
        return self._question.bits is not None or self._question.sharding is not None

    def weight(self, tensor: Tensor) -> int:
        """Return the bytes of a weight on one rank."""
        size = _size(tensor)
        if id(tensor) in self._quantised:
            scales = len(tensor) if self._question.bits == 8 else ceil(tensor.numel() / _IN_GROUP)
            size = ceil(tensor.numel() * (self._question.bits or 0) / 8) + 4 * scales
        return ceil(size / self._ranks) if self._stage >= _WEIGHTS else size

    def gradient(self, tensor: Tensor) -> int:
        """Return the bytes of the gradient of a weight on one rank."""
        size = _size(tensor)
        return ceil(size / self._ranks) if self._stage >= _GRADIENTS else size

    @property
    def weight_bytes(self) -> int:
        """The bytes of all weights on one rank."""
        return sum(map(self.weight, self._weights))

    @property
    def gradient_bytes(self) -> int:
        """The bytes of all gradients on one rank."""
        return sum(map(self.gradient, self._trained))

    @property
    def transient_bytes(self) -> int:
        """What is there in addition while one part of the model computes: its weights, whole."""
        return self._transient

    def state_bytes(self, optimizer: str) -> int:
        """Return the bytes of an optimizer's state on one rank."""
        if optimizer == ADAFACTOR:
            size = sum(4 * _factors(each) for each in self._trained)
        else:
            numbers, width = OPTIMIZERS[optimizer]
            size = sum(each.numel() * numbers * (width or each.element_size()) for each in self._trained)
        return ceil(size / self._ranks) if self._stage >= _STATES else size

    def _most_gathered(self, model: nn.Module, linear: Collection[nn.Linear]) -> int:
        """Return the most that is gathered from other ranks, and made of quantised weights, at once."""
        whole = max((_size(each.weight) for each in linear), default=0)
        if self._stage < _WEIGHTS:
            return whole
        # A part is gathered while the one before computes.
        stacks = [each for each in model.modules() if isinstance(each, nn.ModuleList)]
        parts = [block for stack in stacks for block in stack if any(True for _ in block.parameters())]
        return whole + 2 * max((sum(map(self._whole, each.parameters())) for each in parts), default=0)

    def _whole(self, tensor: Tensor) -> int:
        return self.weight(tensor) * self._ranks


def _size(tensor: Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def _factors(tensor: Tensor) -> int:
    """Return how many numbers a factored second moment has: a row and a column for each matrix."""
    if tensor.dim() < 2:
        return int(tensor.numel())
    *others, rows, columns = tensor.shape
    return int(prod(others) * (rows + columns))


def _quantised(model: Any) -> Iterator[nn.Linear]:
    """Yield the layers whose weights are quantised: all that are linear, but for the head and adapters."""
    head = model.get_output_embeddings()
    for name, each in model.named_modules():
        if isinstance(each, nn.Linear) and each is not head and _OF_ADAPTERS not in name:
            yield each
