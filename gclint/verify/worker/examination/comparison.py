"""When two tensors count as equal, and which gradients are more than noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

RELATIVE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""How far values may be apart, as a part of themselves."""
ABSOLUTE = {torch.float64: 1e-10, torch.float32: 3e-6, torch.bfloat16: 1e-2, torch.float16: 1e-3}
"""How far they may be apart besides, as a part of the largest value (among gradients, of all parameters).

What recomputation computes in another order differs by a few roundings, and some gradients, such as that of a
bias in front of a normalisation, are nothing but roundings.
"""


def close(one: Tensor, other: Tensor, largest: float | None = None) -> bool:
    """Return whether two tensors are the same but for rounding; those without fractions must be equal.

    Args:
        one: the reference.
        other: what is compared with it.
        largest: what to measure absolute differences by; the reference's largest value if not given.
    """
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if torch.equal(one, other):
        return True
    if not (one.is_floating_point() or one.is_complex()):
        return False
    scale = _size(one) if largest is None else largest
    real = one.abs().dtype
    relative, absolute = RELATIVE.get(real, 0.0), ABSOLUTE.get(real, 0.0) * scale
    return bool(torch.allclose(other, one, rtol=relative, atol=absolute, equal_nan=True))


def near(one: float, other: float) -> bool:
    """Return whether two losses in single precision are the same but for rounding."""
    return close(torch.tensor(one), torch.tensor(other), max(abs(one), 1.0))


def largest(gradients: Mapping[str, Tensor | None]) -> float:
    """Return the largest absolute value in all gradients."""
    return max((_size(each) for each in gradients.values() if each is not None), default=0.0)


def touched(gradients: Mapping[str, Tensor | None], largest: float) -> dict[str, Tensor]:
    """Return the gradients that are more than noise.

    Args:
        gradients: by the parameters' names.
        largest: the largest value in any of them.
    """
    return {
        name: gradient
        for name, gradient in gradients.items()
        if gradient is not None and _size(gradient) > ABSOLUTE.get(gradient.dtype, 0.0) * largest
    }


def same(one: Any, other: Any) -> bool:
    """Return whether two values of an attribute are the same."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return close(one, other)
    # What is no number is not equal to itself.
    return type(one) is type(other) and bool(one == other or (one != one and other != other))


def _size(tensor: Tensor) -> float:
    values = tensor.detach().coalesce().values() if tensor.is_sparse else tensor.detach()
    if not values.numel():
        return 0.0
    size = float(values.abs().max())
    if math.isfinite(size):
        return size
    finite = values[values.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0
