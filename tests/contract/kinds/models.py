"""The models of all kinds, by name."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.contract.kinds.frames import Slots, files
from tests.contract.packages import Package

Ways = tuple[Mapping[str, Any], ...]

_WAYS: Ways = (
    {"name": "plain", "off": True},
    {
        "name": "enable(use_reentrant=True)",
        "call": ["gradient_checkpointing_enable", [{"use_reentrant": True}]],
    },
    {
        "name": "enable(use_reentrant=False)",
        "call": ["gradient_checkpointing_enable", [{"use_reentrant": False}]],
    },
)
_SCENARIOS = ("train", "frozen base", "eval")
_WITH_CACHE = ("train with cache",)


@dataclass(frozen=True)
class Model:
    """A model with one twist."""

    kind: str
    name: str
    frame: str
    slots: Slots
    is_twin: bool = False
    """Whether the twist does no harm, so that the safe fix must be made."""
    ways: Ways = field(default=())
    """Further ways in which checkpointing is enabled."""

    @property
    def key(self) -> str:
        """The name among the models and twins of all kinds."""
        return f"{self.kind}: {self.name}{' (twin)' * self.is_twin}"

    def files(self, *, is_repaired: bool = False) -> dict[str, str]:
        """Return the files, as they are or as a fix would make them that asks nothing."""
        return files(self.frame, self.slots, is_repaired=is_repaired)

    @property
    def package(self) -> Package:
        """The files with the ways to train them."""
        scenarios = (*_SCENARIOS, *_WITH_CACHE * ("cache" in self.frame))
        script = "train.py" in self.slots
        ways = tuple({**way, "script": script} for way in (*_WAYS, *self.ways))
        return Package(self.files(), ways, scenarios)


@dataclass(frozen=True)
class Pair:
    """A model that a fix would harm, and its harmless twin."""

    name: str
    frame: str
    harmful: Slots
    harmless: Slots
    ways: Ways = ()

    def models(self, kind: str) -> tuple[Model, Model]:
        """Return the model and the twin."""
        return (
            Model(kind, self.name, self.frame, self.harmful, ways=self.ways),
            Model(kind, self.name, self.frame, self.harmless, is_twin=True, ways=self.ways),
        )


def pair(name: str, frame: str, both: Iterable[Slots], ways: Ways = ()) -> Pair:
    """Return the pair of two twists, the harmful one first."""
    harmful, harmless = both
    return Pair(name, frame, harmful, harmless, ways)


Generator = Callable[[], Iterable[Pair]]


def drawn(pairs: Iterable[Pair], number: int | None, seed: int) -> list[Pair]:
    """Return so many of the pairs, the same for the same seed; None for all of them."""
    found = list(pairs)
    if number is None or number >= len(found):
        return found
    # Those of a smaller sample are among those of a larger one.
    order = sorted(found, key=lambda each: random.Random(f"{seed}/{each.name}").random())
    return order[:number]
