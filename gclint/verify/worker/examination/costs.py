"""The cost of a step: its time, its memory, and the bytes that autograd keeps for the backward pass."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from gclint.verify.worker.examination.state import state_tensors
from gclint.verify.worker.examination.tensors import tensors_in


class Clock:
    """Adds up the time while it is entered, and has the GPU's peak memory since it was created."""

    def __init__(self, device: torch.device) -> None:
        self.seconds = 0.0
        self._device = device
        self._started = 0.0
        self._before = 0
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            torch.cuda.reset_peak_memory_stats(device)
            self._before = torch.cuda.memory_allocated(device)

    @property
    def peak_bytes(self) -> int | None:
        """The peak of allocated memory beyond that at the start, or None without a GPU."""
        if self._device.type != "cuda":
            return None
        return int(torch.cuda.max_memory_allocated(self._device)) - self._before

    def __enter__(self) -> Clock:
        self._started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.seconds += time.perf_counter() - self._started


class SavedBytes:
    """Counts, while it is entered, the storages that are saved for the backward pass, each once.

    The hooks are called by autograd itself, so this works on any device and does not depend on blocks.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._known = {each.untyped_storage().data_ptr() for each in state_tensors(model).values()}
        self._sizes: dict[int, int] = {}
        self._held: dict[int, int] = {}
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)

    @property
    def total(self) -> int:
        """Bytes, without parameters and buffers."""
        return sum(self._sizes.values())

    @property
    def held(self) -> int:
        """Bytes that checkpoints hold in addition: their keyword arguments, which autograd does not see."""
        return sum(size for address, size in self._held.items() if address not in self._sizes)

    def hold(self, value: object) -> None:
        """Record that a checkpoint holds the tensors in a value."""
        for _, tensor in tensors_in(value):
            self._count(tensor, self._held)

    def __enter__(self) -> SavedBytes:
        self._hooks.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._hooks.__exit__(*raised)

    def _pack(self, tensor: Tensor) -> Tensor:
        self._count(tensor, self._sizes)
        return tensor

    def _count(self, tensor: Tensor, sizes: dict[int, int]) -> None:
        try:
            storage = tensor.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
        except (NotImplementedError, RuntimeError):
            return  # Sparse tensors and those of function transforms have no storage of their own.
        if address not in self._known:
            sizes[address] = size


def _unpack(tensor: Tensor) -> Tensor:
    return tensor
