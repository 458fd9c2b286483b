"""Measures the time and memory of a step."""

from __future__ import annotations

import time
from types import TracebackType

import torch


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.seconds += time.perf_counter() - self._started
