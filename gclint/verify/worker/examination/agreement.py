"""Compares tensors, each relative to its own size and to what rounding does to it."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import torch
from torch import Tensor

RELATIVE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 5e-2, torch.float16: 1e-2}
"""How much values may differ, relative to themselves."""
ABSOLUTE = {torch.float64: 1e-10, torch.float32: 3e-6, torch.bfloat16: 1e-2, torch.float16: 1e-3}
"""How much they may differ in addition, relative to the largest value in the same tensor.

If recomputation adds in another order, the sum differs by a few roundings of what it adds up.
"""
TIMES = 10
"""The most that rounding may change, as a multiple of the effect of the last bit of all parameters. That
effect is too small a measure: another kernel rounds differently at each step of a computation."""
COARSE = 1e-2
"""If rounding may change more than this share of a tensor's largest value, the tensor cannot be compared: an
error of this size would be taken for rounding. In coarse types it is ten times the relative tolerance."""


class Agreement(Enum):
    """The result of comparing two tensors."""

    SAME = "same"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """They differ no more than by rounding, but that is too much to judge anything."""
    NEAR = "near"
    """They differ slightly, but by more than the measured effect of rounding. Another kernel may round
    differently: double precision decides."""


def compare(expected: Tensor, found: Tensor, noise: float = 0.0) -> Agreement:
    """Compare a tensor with the reference, on which ``noise`` is the largest measured effect of rounding."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return Agreement.DIFFERENT
    if close(expected, found):
        return Agreement.SAME
    # Whole numbers, such as choices among experts, either change or do not.
    slack = TIMES * noise if is_fractional(expected) else noise and math.inf
    if not slack or not close(expected, found, slack):
        # In double precision, an error from a coarser type vanishes, so it must look like rounding.
        near = min(TIMES * slack, COARSE * largest(expected))
        return Agreement.NEAR if slack and deviation(expected, found) <= near else Agreement.DIFFERENT
    coarse = max(COARSE, 10 * RELATIVE.get(_real(expected), 0.0))
    return Agreement.UNKNOWN if slack > coarse * largest(expected) else Agreement.SAME


def close(one: Tensor, other: Tensor, slack: float = 0.0) -> bool:
    """Return whether two tensors are the same except for rounding and ``slack``; integers must be equal."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if torch.equal(one, other) or math.isinf(slack):
        return True
    if not is_fractional(one):
        return False
    # Subnormal numbers have fewer digits, down to none.
    absolute = ABSOLUTE.get(_real(one), 0.0) * largest(one) + torch.finfo(_real(one)).tiny + slack
    return bool(torch.allclose(other, one, RELATIVE.get(_real(one), 0.0), absolute, equal_nan=True))


def deviation(one: Tensor, other: Tensor) -> float:
    """Return the largest difference of two tensors."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return math.inf
    if torch.equal(one, other):
        return 0.0
    kind = torch.complex128 if one.is_complex() else torch.float64
    difference = (one.to(kind) - other.to(kind)).abs()
    # Values that are infinite or NaN in both do not differ.
    difference[(one == other) | ((one != one) & (other != other))] = 0.0
    worst = float(difference.max()) if difference.numel() else 0.0
    return math.inf if math.isnan(worst) else worst


def is_fractional(tensor: Tensor) -> bool:
    """Return whether a tensor has a floating-point or complex type."""
    return bool(tensor.is_floating_point() or tensor.is_complex())


def is_nothing(gradient: Tensor | None) -> bool:
    """Return whether a gradient is missing, or zero everywhere."""
    return gradient is None or not bool(gradient.any())


def hides_all(gradient: Tensor) -> bool:
    """Return whether a gradient that is not zero has no other finite value, as NaN agrees with any NaN."""
    finite = gradient.isfinite()
    # Mostly all are, and to pick them takes longer than to see that.
    return not bool(finite.all()) and bool(gradient.any()) and not bool(gradient[finite].any())


def largest(tensor: Tensor) -> float:
    """Return the largest finite absolute value."""
    if not tensor.numel():
        return 0.0
    if tensor.dtype == torch.bool:
        return float(tensor.any())
    size = float(tensor.abs().max())
    if math.isfinite(size):
        return size
    finite = tensor[tensor.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0


def same(one: Any, other: Any) -> bool:
    """Return whether two values of an attribute are the same."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return close(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    # NaN is not equal to itself.
    return type(one) is type(other) and bool(one == other or (one != one and other != other))


def _real(tensor: Tensor) -> torch.dtype:
    return {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(tensor.dtype, tensor.dtype)
