"""A loss for any model: a sum of its outputs with random weights."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import lru_cache

import torch
from torch import Tensor

OWN = "loss"
"""The name of the output that is the model's own loss."""


def total_loss(outputs: Mapping[str, Tensor], scales: dict[str, float]) -> Tensor | None:
    """Return the model's own loss plus a weighted sum of all other outputs that carry gradient, if any does.

    The plain sum of what leaves a normalisation has no gradient at all, so every element has a weight of its
    own, which depends on nothing but the output's name and shape. A large output would drown the others, so
    each is measured by its own size.

    Args:
        outputs: what the model returned.
        scales: the sizes that are known, to which those of other outputs are added.
    """
    terms = []
    for name, output in outputs.items():
        if output.requires_grad and output.numel():
            real = torch.view_as_real(output) if output.is_complex() else output
            term = real if name == OWN and not real.dim() else _weighted(name, real)
            terms.append(term / scales.setdefault(name, _size(real)))
    return torch.stack([each.float() for each in terms]).sum() if terms else None


def _weighted(name: str, output: Tensor) -> Tensor:
    weights = _weights(name, tuple(output.shape)).to(output.device)
    # Scores that a model has set to minus infinity say nothing.
    finite = torch.where(output.isfinite(), output, torch.zeros((), dtype=output.dtype, device=output.device))
    return (finite.float() * weights).sum()


def _size(output: Tensor) -> float:
    """Return the root of the mean square of what is finite, or 1 where that is nothing."""
    finite = output.detach().double()
    finite = finite[finite.isfinite()]
    return float(finite.square().mean().sqrt()) or 1.0 if finite.numel() else 1.0


@lru_cache(maxsize=256)
def _weights(name: str, shape: tuple[int, ...]) -> Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    weights = torch.randn(shape, generator=generator)
    return weights / max(weights.numel(), 1) ** 0.5
