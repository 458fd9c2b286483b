"""How to build a model and its inputs again, elsewhere."""

from __future__ import annotations

import copy
import json
from typing import Any

from torch import Tensor

from gclint.verify.worker.examination.subject import is_computed
from gclint.verify.worker.protocol import Recipe
from gclint.verify.worker.specimen import Specimen

_FEW = 64
"""The most numbers of a tensor that are written out; larger tensors are random."""


def recipe(specimen: Specimen) -> Recipe:
    """Return what it takes to reproduce a failure."""
    kind = type(specimen.config)
    return Recipe(
        f"{kind.__module__}.{kind.__qualname__}",
        _fields(specimen.config),
        _inputs(specimen.inputs()),
        _inputs(specimen.other_inputs()) if specimen.other_inputs else {},
        specimen.keeps_cache,
    )


def _inputs(values: dict[str, Any]) -> dict[str, str]:
    return {name: _input(name, value) for name, value in values.items()}


def _input(name: str, value: Any) -> str:
    made = expression(value)
    # Its graph can be used only once, as if another network had computed it.
    return f"{made}.requires_grad_() * torch.ones(())" if is_computed(name, value) else made


def _fields(config: Any) -> dict[str, Any]:
    """Return the fields to make ``config`` from: only non-defaults, if these make the same one."""
    everything: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    changed: dict[str, Any] = json.loads(config.to_json_string(use_diff=True))
    try:
        again = type(config).from_dict(copy.deepcopy(changed))
    except Exception:
        # A configuration may reject a part of its fields; then all are used.
        return everything
    same = json.loads(again.to_json_string(use_diff=False)) == everything
    return changed if same else everything


def expression(value: Any) -> str:
    """Return Python that makes ``value``, or a similar value for large floating-point tensors."""
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
