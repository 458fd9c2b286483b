"""Measures how much memory is alive at any moment of a step, and how much is computed in it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

_aten = torch.ops.aten


def _attention(query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query.shape, key.shape, value.shape))


def _attention_backward(gradient: Tensor, *tensors: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(gradient.shape, *(each.shape for each in tensors[:3])))


def _grouped(one: Tensor, other: Tensor, *_: Any, **__: Any) -> int:
    groups = one.shape[0] if one.dim() == other.dim() == 3 else 1
    return int(2 * groups * one.shape[-2] * one.shape[-1] * other.shape[-1])


_FLOPS = {
    _aten._grouped_mm: _grouped,
    **flop_registry,
    _aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
}
"""The FLOPs of torch's counter, and of what some releases lack: experts, and attention on a CPU."""


@dataclass(frozen=True)
class Alive:
    """A storage, and the first tensor in it."""

    storage: int
    size: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    module: str
    """The module that made it."""
    block: str
    """The block that had started last."""
    reference: Any
    """A weak reference that tells the meter when it is freed."""


class Meter(TorchDispatchMode):  # type: ignore[misc]
    """Counts, while it is entered, the bytes of all tensors that are alive, and the FLOPs.

    The bytes are those of torch's own tracker (``torch.distributed._tools.mem_tracker``), whose time grows
    with the square of a model's depth.
    """

    def __init__(self, model: nn.Module) -> None:
        """Begin with the weights of a model."""
        super().__init__()
        self.flops = 0
        self.alive = 0
        """Bytes that are alive now."""
        self.peak = 0
        """The most bytes that have been alive."""
        self.where: Callable[[], tuple[str, str]] = lambda: ("", "")
        """Returns the current module and the block that started last."""
        self._known: dict[int, Alive] = {}
        for each in chain(model.parameters(), model.buffers()):
            self._note(each)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        count = _FLOPS.get(func.overloadpacket)
        if count is not None:
            self.flops += count(*args, **kwargs, out_val=result)
        for each in tree_leaves(result):
            if isinstance(each, Tensor):
                self._note(each)
        return result

    def made_in_blocks(self) -> Iterator[Alive]:
        """Yield what blocks have made and is alive now."""
        yield from (each for each in list(self._known.values()) if each.block)

    def _note(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key not in self._known:
            reference = weakref.ref(storage, partial(self._forget, key, size))
            shape = tuple(tensor.shape)
            self._known[key] = Alive(key, size, shape, tensor.dtype, *self.where(), reference)
            self.alive += size
            self.peak = max(self.peak, self.alive)

    def _forget(self, key: int, size: int, _reference: Any) -> None:
        del self._known[key]
        self.alive -= size
