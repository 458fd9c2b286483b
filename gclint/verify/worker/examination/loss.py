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
    """Return the model's own loss plus a weighted sum of all other outputs that require grad, if any do.

    The plain sum of the output of a normalisation has no gradient at all, so every element has its own
    weight, which depends only on the name and shape of the output. Large outputs would dominate the others,
    so each is divided by its size.

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
    # Scores that a model has set to minus infinity are left out.
    finite = torch.where(output.isfinite(), output, torch.zeros((), dtype=output.dtype, device=output.device))
    return (finite.float() * weights).sum()


def _size(output: Tensor) -> float:
    """Return the root mean square of the finite values, or 1 if there are none."""
    finite = output.detach().double()
    finite = finite[finite.isfinite()]
    return float(finite.square().mean().sqrt()) or 1.0 if finite.numel() else 1.0


@lru_cache(maxsize=256)
def _weights(name: str, shape: tuple[int, ...]) -> Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    weights = torch.randn(shape, generator=generator)
    return weights / max(weights.numel(), 1) ** 0.5
