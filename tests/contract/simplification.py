"""From one shape to others: to simpler ones, and to every feature by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tests.contract.grammar import FEATURES, Shape, settled


def singles() -> list[Shape]:
    """Return every value of every feature by itself, without a legacy branch and with the usual one."""
    return list(
        dict.fromkeys(
            settled(replace(start, **{name: value}))
            for name, values in FEATURES.items()
            for value in values
            for start in (Shape(), Shape(checkpoint="func call"))
        )
    )


_STEPPING_STONES: Mapping[str, tuple[str, ...]] = {
    "switch": ("true at construction", "script sets"),
    "checkpoint": ("func call", "torch non-reentrant"),
    "branch": ("every other",),
    "encoder": ("given by keyword",),
    "bias": ("before loop by keyword",),
    "returns": ("tuple",),
    "cache": ("past_key_values",),
    "stack": ("two stacks",),
    "block": ("gcl",),
}
"""The simplest special value of a feature, so that counterexamples of one kind end in the same model."""


def simpler(shape: Shape) -> Iterator[Shape]:
    """Yield the shapes with one special feature less, then those with a simpler special feature."""
    for name in shape.special:
        yield from _with(shape, name, next(iter(FEATURES[name])))
    for name, value in shape.special.items():
        stones = _STEPPING_STONES.get(name, ())
        for stone in stones[: stones.index(value)] if value in stones else stones:
            yield from _with(shape, name, stone)


def _with(shape: Shape, name: str, value: str) -> Iterator[Shape]:
    other = settled(replace(shape, **{name: value}))
    if _complexity(other) < _complexity(shape):
        yield other


def _complexity(shape: Shape) -> int:
    total = 0
    for name, value in shape.special.items():
        stones = _STEPPING_STONES.get(name, ())
        total += 10 + (stones.index(value) if value in stones else len(stones))
    return total
