"""Runs the same step with real tensors, to check the estimate."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import torch

from gclint.verify.worker.estimates import Measurement
from gclint.verify.worker.examination.subject import enable_checkpointing
from gclint.verify.worker.examination.tensors import move
from gclint.verify.worker.footprint.building import Trainee, in_a_line
from gclint.verify.worker.footprint.step import forward
from gclint.verify.worker.modes import Mode


def measurements(
    trainee: Trainee, names: Sequence[str], modes: Sequence[Mode], device: str
) -> Iterator[Measurement]:
    """Yield the measurements of a step in each mode on a device; each runs twice, since the first is slow."""
    for mode in modes:
        try:
            yield _measured(trainee, names, mode, device)
        except Exception as error:
            yield Measurement(mode, device, error=in_a_line(error))


def _measured(trainee: Trainee, names: Sequence[str], mode: Mode, device: str) -> Measurement:
    is_gpu = device != "cpu"
    name = torch.cuda.get_device_name(device) if is_gpu else device
    model = trainee.build().to(device)
    if mode != "plain":
        enable_checkpointing(model, mode)
    for _ in range(2):
        model.zero_grad()
        inputs = move(trainee.inputs(), torch.device(device))
        if is_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        begun = time.perf_counter()
        saved, loss = forward(model, inputs, names, lambda kept: kept.total, is_plain=mode == "plain")
        loss.backward()
        if is_gpu:
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - begun
        # Otherwise the next step would begin with its graph.
        del loss
    peak = torch.cuda.max_memory_allocated(device) if is_gpu else None
    return Measurement(mode, name, saved, seconds, peak)
