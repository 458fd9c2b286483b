"""The autograd graph of a tensor, to see whether two tensors share parts of it."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from torch import Tensor

from gclint.verify.worker.examination.tensors import tensors_in

_FARTHEST = 200
"""How many nodes are visited at most for one tensor; a shared one is usually the first."""
_LEAVES = "AccumulateGrad"
"""The node that accumulates the gradient of a parameter, which many graphs may share without harm."""


def nodes_behind(value: object, known: Container[Any]) -> list[Any]:
    """Return the nodes that compute a tensor, or those in a container; only the nearest if there are many.

    The nodes behind a known one are known as well, so they are skipped.
    """
    roots = [each.grad_fn for each in _tensors(value) if each.grad_fn is not None]
    found = dict.fromkeys(roots)
    waiting = [node for node in found if node not in known]
    while waiting and len(found) < _FARTHEST:
        for node, _ in waiting.pop(0).next_functions:
            if node is not None and node not in found and node.name() != f"torch::autograd::{_LEAVES}":
                found[node] = None
                if node not in known:
                    waiting.append(node)
    return list(found)


def _tensors(value: object) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [each for _, each in tensors_in(value)]
