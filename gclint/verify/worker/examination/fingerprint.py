"""Fingerprints of everything that plain steps compute, in which two versions of a model must agree."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator

import torch
from torch import Tensor

from gclint.verify.worker.examination.run import Run
from gclint.verify.worker.protocol import Fingerprint

_VECTORS = 4
"""The number of fixed vectors that a tensor is multiplied with: together they miss hardly any difference."""
_BEGINNING = 12


def fingerprint(run: Run, again: Run | None = None, name: str | None = None) -> Fingerprint:
    """Return what the steps of a run computed.

    Args:
        run: the run.
        again: a second run, if a GPU computes other bits each time: then values are compared.
        name: its name, if not that of its scenario.
    """
    whole = hashlib.sha256()
    parts, sketches = {}, {}
    twins = dict(_computed(again)) if again is not None else {}
    for key, tensor in _computed(run):
        digest = hashlib.sha256(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        whole.update(digest.digest())
        parts[key] = digest.hexdigest()[:_BEGINNING]
        if again is not None:
            sketches[key] = _sketch(key, tensor, twins.get(key))
    scenario = name or run.conditions.scenario.name
    return Fingerprint(scenario, whole.hexdigest(), run.steps[0].loss, parts, sketches)


def _computed(run: Run) -> Iterator[tuple[str, Tensor]]:
    """Yield all tensors that a run computed, and what it left behind."""
    for number, step in enumerate(run.steps, start=1):
        later = f" of step {number}" if number > 1 else ""
        yield f"the loss{later}", torch.tensor(step.loss, dtype=torch.float64)
        for name, output in sorted(step.outputs.items()):
            yield f"the output {name}{later}", _dense(output)
        for name, gradient in sorted(step.gradients.items()):
            if gradient is not None:
                yield f"the gradient of {name}{later}", _dense(gradient)
    gradients = run.steps[0].gradients if run.steps else {}
    for name, value in sorted(run.values.items()):
        # Only an optimizer would change parameters, and there is none.
        if name not in gradients:
            yield f"the value of {name}", _dense(value)


def _dense(tensor: Tensor) -> Tensor:
    return (tensor.to_dense() if tensor.is_sparse else tensor).detach()


def _sketch(name: str, tensor: Tensor, twin: Tensor | None) -> list[float]:
    """Return the norm, the distance to the twin, the count of non-finite values, and the products."""
    values = _real(tensor)
    products = _products(name, values)
    off = 0.0
    if twin is not None and twin.shape == tensor.shape:
        others = _products(name, _real(twin))
        off = (sum((one - other) ** 2 for one, other in zip(products, others, strict=True)) / _VECTORS) ** 0.5
    return [float(_finite(values).norm()), off, float((~values.isfinite()).sum()), *products]


def _real(tensor: Tensor) -> Tensor:
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).double().flatten()


def _finite(values: Tensor) -> Tensor:
    return torch.where(values.isfinite(), values, torch.zeros_like(values))


def _products(name: str, values: Tensor) -> list[float]:
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    vectors = torch.randn((_VECTORS, values.numel()), generator=generator, dtype=torch.float64)
    return [float(each) for each in vectors.to(values.device) @ _finite(values)]
