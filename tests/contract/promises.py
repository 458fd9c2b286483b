"""The four promises of the contract, asked of the steps before a repair and after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from tests.contract.steps import Outcome

SAME_WITHOUT, RECOMPUTED, WORKS, IMPORTS = 1, 2, 3, 4
_RELATIVE, _OF_LARGEST = 1e-4, 1e-6

Broken = tuple[int, str]
"""The promise that is broken, and how."""


def broken_plainly(before: Outcome, after: Outcome) -> Iterator[Broken]:
    """Yield what a step without checkpointing shows that has changed by a bit."""
    if before.error is not None:
        return
    if after.error is not None:
        yield SAME_WITHOUT, f"raises {after.error}"
        return
    for what, one, other in (
        ("outputs", before.values, after.values),
        ("cache", before.cache, after.cache),
        ("gradients", before.gradients, after.gradients),
        ("state", before.state, after.state),
    ):
        names = [name for name in one if not _is_equal(one[name], other.get(name))]
        names += [name for name in other if name not in one and what != "state"]
        if names:
            yield SAME_WITHOUT, f"{what} differ: {_some(names)}"
    if before.runs != after.runs:
        yield SAME_WITHOUT, f"blocks run {sum(before.runs.values())} and {sum(after.runs.values())} times"


def broken_with_checkpointing(plain: Outcome, before: Outcome, after: Outcome) -> Iterator[Broken]:
    """Yield what a step that may checkpoint shows that is worse than before.

    Args:
        plain: the same step without checkpointing, before the repair.
        before: the step before the repair.
        after: the step after it.
    """
    if before.error is not None or plain.error is not None:
        return
    if after.error is not None:
        yield WORKS, f"raises {after.error}"
        return
    yield from _recomputation(plain.runs, before.runs, after.runs)
    yield from _worse("gradients", plain.gradients, before.gradients, after.gradients)
    yield from _worse("outputs", plain.values, before.values, after.values)
    yield from _worse("cache", plain.cache, before.cache, after.cache)
    yield from _worse("state", plain.state, before.state, after.state)


def _recomputation(
    plain: Mapping[str, int], before: Mapping[str, int], after: Mapping[str, int]
) -> Iterator[Broken]:
    lost = [name for name, times in plain.items() if before.get(name, 0) > times >= after.get(name, 0)]
    often = [
        name for name, times in plain.items() if after.get(name, 0) > max(before.get(name, 0), 2 * times)
    ]
    total = f"{sum(before.values())} runs of blocks became {sum(after.values())}"
    if lost:
        yield RECOMPUTED, f"no longer recomputed ({total})"
    if often:
        yield RECOMPUTED, f"recomputed too often ({total})"


def _worse(
    what: str, plain: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Broken]:
    scale = _largest(plain)
    was_wrong = {name for name in plain if not _is_close(plain[name], before.get(name), scale)}
    is_wrong = {name for name in plain if not _is_close(plain[name], after.get(name), scale)}
    worse = [name for name in plain if name in is_wrong - was_wrong]
    if worse:
        lost = [name for name in worse if after.get(name) is None]
        how = f"{_some(lost)} lost" if lost else f"{_some(worse)} wrong"
        yield WORKS, f"{what}: {how}"


def _largest(values: Mapping[str, Any]) -> float:
    tensors = [each for each in values.values() if isinstance(each, Tensor) and each.numel()]
    return max((float(each.abs().max()) for each in tensors), default=0.0)


def _is_close(one: Any, other: Any, scale: float) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return _is_equal(one, other)
    if one.shape != other.shape:
        return False
    return bool(torch.allclose(one.double(), other.double(), rtol=_RELATIVE, atol=_OF_LARGEST * scale))


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return bool(torch.equal(one, other))
    return type(one) is type(other) and bool(one == other)


def _some(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} such as {names[0]}"
