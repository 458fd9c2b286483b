"""How to build and feed a model once more, elsewhere."""

from __future__ import annotations

import json
from typing import Any

from torch import Tensor

from gclint.verify.worker.protocol import Recipe
from gclint.verify.worker.specimen import Specimen

_FEW = 64
"""Numbers of a tensor that are written out; others are drawn."""


def recipe(specimen: Specimen) -> Recipe:
    """Return what somebody needs who wants to see a failure."""
    kind = type(specimen.config)
    return Recipe(
        f"{kind.__module__}.{kind.__qualname__}",
        json.loads(specimen.config.to_json_string(use_diff=False)),
        {name: expression(value) for name, value in specimen.inputs().items()},
    )


def expression(value: Any) -> str:
    """Return Python that makes ``value``, or for large tensors of fractions one much like it."""
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {expression(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        inner = ", ".join(expression(each) for each in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    return repr(value)


def _tensor(value: Tensor) -> str:
    shape = tuple(value.shape)
    if value.is_floating_point() and value.numel() > _FEW:
        return f"torch.randn({shape}, generator=torch.Generator().manual_seed(0)).to({value.dtype})"
    if value.numel() and bool((value == value.flatten()[0]).all()):
        return f"torch.full({shape}, {value.flatten()[0].item()!r}, dtype={value.dtype})"
    return f"torch.tensor({value.tolist()!r}, dtype={value.dtype})"
