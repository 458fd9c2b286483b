"""The pieces of the graph of gradients behind a tensor, to see whether two tensors share some."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from torch import Tensor

from gclint.verify.worker.examination.tensors import tensors_in

_FARTHEST = 200
"""Nodes that are looked at behind one tensor; what is shared is mostly the first one."""
_LEAVES = "AccumulateGrad"
"""What adds up the gradient of a parameter: many graphs end there, and none is the worse for it."""


def nodes_behind(value: object, known: Container[Any]) -> list[Any]:
    """Return the nodes that compute a tensor, or those in a container; the nearest ones where they are many.

    What is behind a known node is known as well, and left out.
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
