"""What models take and return: tensors and caches in any container, in other types, and the loss of them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PretrainedConfig

from gclint.verify.worker.vocabulary import CACHES

_DEEPEST = 8
_SPARSE = frozenset(
    (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
)
_MOST_NODES = 200
"""How many nodes are visited at most for one tensor; a shared one is usually the first."""
_LEAVES = "AccumulateGrad"
"""The node that accumulates the gradient of a parameter, which many graphs may share without harm."""
_TOKENS = ("decoder_input_ids", "input_ids")
"""Inputs that grow by a token in each call; the first one that exists counts."""
_PER_TOKEN = ("mask", "position", "token_type", "labels")
"""Parts of the names of inputs that have a value for each token; without them there is a default."""
OWN = "loss"
"""The name of the output that is the model's own loss."""


def is_cache(value: object) -> bool:
    """Return whether ``value`` is a cache of what layers have computed for earlier tokens."""
    if isinstance(value, dict | set | Tensor | nn.Module | PretrainedConfig):
        return False
    kind = type(value)
    return callable(getattr(kind, "update", None)) or any("Cache" in each.__name__ for each in kind.__mro__)


def is_cache_name(name: str) -> bool:
    """Return whether an argument or output with this name is a cache."""
    return name in CACHES


def address_of(tensor: Tensor) -> int | None:
    """Return where the storage of a tensor is; None for those that have none of their own.

    These are sparse tensors, and those of function transforms.
    """
    try:
        address: int = tensor.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return None
    return address


def tensors_in(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in ``value``, which is at ``path``, with the path to them, except those in caches.

    A component of a path is a key, the name of a field, or an index.
    """
    if isinstance(value, Tensor):
        yield path, value
    elif depth < _DEEPEST and not is_cache(value):
        for name, each in _items(value):
            if not is_cache_name(name):
                yield from tensors_in(each, f"{path}.{name}" if path else name, depth + 1)


def all_tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in ``value`` and in its dictionaries, lists and tuples, also those of caches."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from all_tensors(each)


def outputs_of(value: Any) -> dict[str, Tensor]:
    """Return the tensors that a model has returned, with their paths."""
    found = tensors_in((value,) if isinstance(value, Tensor) else value)
    return {path: dense(tensor) for path, tensor in found}


def dense(tensor: Tensor) -> Tensor:
    """Return a sparse tensor as a dense one, which can be compared; any other as it is."""
    return tensor.to_dense() if tensor.layout in _SPARSE else tensor


def requires_grad(value: object) -> bool:
    """Return whether ``value`` is a tensor through which gradients flow."""
    return isinstance(value, Tensor) and value.requires_grad


def move(value: Any, device: torch.device) -> Any:
    """Return ``value`` with its tensors, also those in containers, on a device."""
    return _mapped(value, lambda each: each.to(device))


def in_type(value: Any, kind: torch.dtype) -> Any:
    """Return ``value`` with floating-point tensors, also those in containers, in a type."""
    return _mapped(value, lambda each: each.to(kind) if each.is_floating_point() else each)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if type(value) is dict:
        return {name: _mapped(each, change) for name, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_mapped(each, change) for each in value)
    if isinstance(value, dict):
        # One of another kind has more than its items.
        for name in list(value):
            value[name] = _mapped(value[name], change)
    return value


def _items(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        yield from ((str(name), each) for name, each in value.items())
    elif isinstance(value, list | tuple):
        names = getattr(value, "_fields", None) or map(str, range(len(value)))
        yield from zip(names, value, strict=True)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((each.name, getattr(value, each.name)) for each in fields(value))


def nodes_behind(value: object, known: Container[Any]) -> list[Any]:
    """Return the nodes that compute a tensor, or those in a container; only the nearest if there are many.

    The nodes behind a known one are known as well, so they are skipped.
    """
    roots = [each.grad_fn for _, each in tensors_in(value) if each.grad_fn is not None]
    found = dict.fromkeys(roots)
    waiting = [node for node in found if node not in known]
    while waiting and len(found) < _MOST_NODES:
        for node, _ in waiting.pop(0).next_functions:
            if node is not None and node not in found and node.name() != f"torch::autograd::{_LEAVES}":
                found[node] = None
                if node not in known:
                    waiting.append(node)
    return list(found)


def continued(inputs: Mapping[str, Any], outputs: Any) -> dict[str, Any] | None:
    """Return the inputs of the call for one more token; None if there is no cache to continue."""
    returned = outputs if isinstance(outputs, Mapping) else {}
    caches = {name: each for name, each in returned.items() if is_cache_name(name)}
    grown = next((name for name in _TOKENS if isinstance(inputs.get(name), Tensor)), None)
    if grown is None or not any(each is not None for each in caches.values()):
        return None
    kept = {
        name: each
        for name, each in inputs.items()
        if not any(part in name for part in _PER_TOKEN) or "encoder" in name.replace("decoder", "")
    }
    return {**kept, grown: inputs[grown][:, -1:], **caches}


class DoublePrecision(TorchDispatchMode):  # type: ignore[misc]
    """Makes, while it is entered, operations return double precision even if another type is requested."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return func(
            *(_doubled_type(each) for each in args),
            **{name: _doubled_type(each) for name, each in (kwargs or {}).items()},
        )


def _doubled_type(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value


def total_loss(outputs: Mapping[str, Tensor], scales: dict[str, float]) -> Tensor | None:
    """Return the model's own loss plus a weighted sum of all other outputs that require grad, if any do.

    The plain sum of the output of a normalisation has no gradient at all, so every element has its own
    weight, which depends only on the name and shape of the output. Large outputs would dominate the others,
    so each is divided by its size, which is added to ``scales`` if it is not known there.
    """
    terms = []
    for name, output in outputs.items():
        if output.requires_grad and output.numel():
            real = torch.view_as_real(output) if output.is_complex() else output
            term = real if name == OWN and not real.dim() else _weighted(name, real)
            terms.append(term / scales.setdefault(name, _mean_size(real)))
    return torch.stack([each.float() for each in terms]).sum() if terms else None


def _weighted(name: str, output: Tensor) -> Tensor:
    weights = _weights(name, tuple(output.shape)).to(output.device)
    # Scores that a model has set to minus infinity are left out.
    finite = torch.where(output.isfinite(), output, torch.zeros((), dtype=output.dtype, device=output.device))
    return (finite.float() * weights).sum()


def _mean_size(output: Tensor) -> float:
    """Return the root mean square of the finite values, or 1 if there are none."""
    finite = output.detach().double()
    finite = finite[finite.isfinite()]
    return float(finite.square().mean().sqrt()) or 1.0 if finite.numel() else 1.0


@lru_cache(maxsize=256)
def _weights(name: str, shape: tuple[int, ...]) -> Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    weights = torch.randn(shape, generator=generator)
    return weights / max(weights.numel(), 1) ** 0.5
