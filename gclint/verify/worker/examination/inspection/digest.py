"""Digests of values, to compare them with later ones, or in another process."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy
import torch
from torch import Tensor
from torch._C import DisableTorchFunction

_MANY = 64
_TOLERANCES = {torch.float64: 1e-9, torch.float32: 3e-5, torch.bfloat16: 3e-2, torch.float16: 5e-3}
"""How much values may differ by rounding, relative to themselves."""


@dataclass(frozen=True)
class Digest:
    """A tensor's shape, bits and size, or the text of something else."""

    text: str
    """A description for people: a value, or the shape and type of a tensor."""
    bits: int = 0
    size: float = 0.0
    projection: float = 0.0
    tolerance: float = 0.0

    @property
    def key(self) -> str:
        """A key that is the same for equal values."""
        return f"{self.text}#{self.bits}" if self.bits else self.text

    def is_close(self, other: Digest) -> bool:
        """Return whether two values differ only by rounding."""
        if self == other:
            return True
        if self.text != other.text or not self.tolerance:
            return False
        largest = self.tolerance * max(self.size, other.size)
        return abs(self.size - other.size) <= largest and abs(self.projection - other.projection) <= largest


def digest(value: Any) -> Digest:
    """Return the digest of a value."""
    if isinstance(value, Tensor):
        return _of_tensor(value)
    if isinstance(value, numpy.ndarray):
        return Digest(f"an array of {value.shape}", zlib.crc32(numpy.ascontiguousarray(value).tobytes()))
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device):
        return Digest(repr(value))
    if isinstance(value, list | tuple):
        inner = [digest(each) for each in value[:_MANY]]
        bits = zlib.crc32(repr(inner).encode())
        return Digest(f"({', '.join(each.text for each in inner)})", bits)
    if isinstance(value, dict):
        items = [(str(name), digest(each)) for name, each in list(value.items())[:_MANY]]
        bits = zlib.crc32(repr(items).encode())
        return Digest(f"{{{', '.join(f'{name}: {each.text}' for name, each in items)}}}", bits)
    return Digest(f"a `{type(value).__name__}`")


def shape(tensor: Tensor) -> Digest:
    """Return the digest of a tensor whose values do not matter."""
    return Digest(f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}")


def exact(tensor: Tensor) -> Digest:
    """Return the digest of a tensor without what tells whether another one is close, which takes longer."""
    return _of_tensor(tensor, is_exact=True)


def _of_tensor(tensor: Tensor, *, is_exact: bool = False) -> Digest:
    # Whoever watches functions of torch is not to see these.
    with DisableTorchFunction():
        known = shape(tensor)
        try:
            with torch.no_grad():
                return _of_values(tensor, known.text, is_exact=is_exact)
        except (RuntimeError, NotImplementedError, TypeError):
            # Sparse and quantized tensors, and those of function transforms, do not show their values.
            return known


def _of_values(tensor: Tensor, text: str, *, is_exact: bool) -> Digest:
    dense = tensor.detach().cpu().contiguous().reshape(-1)
    dense = dense.resolve_conj().resolve_neg()
    bits = zlib.crc32(dense.view(torch.uint8).numpy()) if dense.numel() else 0
    if is_exact or not dense.is_floating_point() or not dense.numel():
        if dense.numel() == 1 and not dense.is_floating_point():
            text = f"{text} {dense.item()}"
        return Digest(text, bits)
    values = dense.double()
    # Non-finite values, as in masks, count by position, so that they do not hide the others.
    beyond = 1.0 + float(values.nan_to_num(0.0, 0.0, 0.0).abs().max())
    values = values.nan_to_num(beyond / 2, beyond, -beyond)
    return Digest(
        text,
        bits,
        float(values.norm()),
        float(values @ _weights(values.numel())),
        _TOLERANCES.get(dense.dtype, 0.0),
    )


@lru_cache(maxsize=512)
def _weights(count: int) -> Tensor:
    """Return numbers between -1 and 1 that follow no pattern."""
    return torch.cos(torch.arange(count, dtype=torch.float64) ** 2 * 0.7 + 1.0)
