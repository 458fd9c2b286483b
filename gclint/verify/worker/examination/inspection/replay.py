"""Compares the recomputation with the forward pass, tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from gclint.verify.worker.examination.comparison import close
from gclint.verify.worker.examination.inspection.checkpoints import Region
from gclint.verify.worker.examination.state import state_tensors
from gclint.verify.worker.examination.tensors import tensors_in

_OPAQUE = frozenset((torch.uint8, torch.int8))
"""The types of internal data of kernels, which may differ between two runs."""


@dataclass(frozen=True)
class Replay:
    """How many tensors were compared, with which results."""

    compared: int = 0
    different: int = 0
    first: str = ""
    """The type and shape of the first different one."""


class Replays:
    """An observer of checkpoints that compares the recomputation with the first run.

    In non-reentrant mode, it compares the tensors that are saved for the backward pass; in reentrant mode,
    which saves nothing in the first run, the outputs of the checkpointed function.
    """

    def __init__(self, model: nn.Module) -> None:
        self._known = {each.untyped_storage().data_ptr() for each in state_tensors(model).values()}
        self._first: dict[Region, list[Tensor | None]] = {}
        self._next: dict[Region, int] = {}
        self._compared = self._different = 0
        self._shown = ""

    @property
    def replay(self) -> Replay:
        """The results so far."""
        return Replay(self._compared, self._different, self._shown)

    def begin(self, region: Region, arguments: tuple[Any, ...]) -> None:
        """Start again at the first tensor."""
        self._next[region] = 0

    def end(self, region: Region, result: Any, is_complete: bool) -> None:
        """Compare the outputs in reentrant mode."""
        if region.is_reentrant and is_complete:
            self._next[region] = 0
            for each in _returned(result):
                self._see(region, each)

    def saved(self, region: Region, tensor: Tensor) -> None:
        """Compare a saved tensor."""
        if not region.is_reentrant:
            self._see(region, tensor)

    def _see(self, region: Region, tensor: Tensor) -> None:
        # Selective checkpointing counts each operation, and must not see those of a comparison.
        with _disable_current_modes():
            self._match(region, tensor)

    def _match(self, region: Region, tensor: Tensor) -> None:
        first = self._first.setdefault(region, [])
        if not region.is_again:
            first.append(self._kept(tensor))
            return
        index = self._next[region]
        self._next[region] = index + 1
        if index < len(first) and (before := first[index]) is not None:
            self._compare(before, tensor.detach())

    def _compare(self, before: Tensor, now: Tensor) -> None:
        self._compared += 1
        if not close(before, now):
            self._different += 1
            self._shown = self._shown or f"{str(now.dtype).removeprefix('torch.')}{list(now.shape)}"

    def _kept(self, tensor: Tensor) -> Tensor | None:
        """Return a copy of a tensor to compare, or None if it is not compared."""
        try:
            # Parameters do not change before the backward pass is over, running statistics are saved but not
            # used, and a single integer may be a seed, which is a different one each time.
            if (
                tensor.untyped_storage().data_ptr() in self._known
                or tensor.dtype in _OPAQUE
                or (tensor.numel() < 2 and not tensor.is_floating_point())
            ):
                return None
            return tensor.detach().clone()
        except (NotImplementedError, RuntimeError):
            return None


def _returned(result: Any) -> Iterator[Tensor]:
    return (each for _, each in tensors_in(result))
