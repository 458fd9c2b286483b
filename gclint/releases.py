"""What the base class of layers, ``GradientCheckpointingLayer``, does in each release of transformers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gclint.verify.worker.vocabulary import LAYER_PAST, PAST_KEY_VALUE, PAST_KEY_VALUES, USE_CACHE


@dataclass(frozen=True)
class BaseClass:
    """The base class as it is from one release on."""

    since: tuple[int, int]
    neutralised: frozenset[str]
    """The arguments that it sets to None or False while it checkpoints, where they are passed by keyword."""


_HISTORY = (
    BaseClass((4, 52), frozenset()),
    BaseClass((4, 53), frozenset((USE_CACHE, PAST_KEY_VALUE, PAST_KEY_VALUES, LAYER_PAST))),
    BaseClass((5, 17), frozenset((USE_CACHE, PAST_KEY_VALUES, LAYER_PAST))),
)
"""Each change of it, the first one being that it is there at all."""

EVER_NEUTRALISED = frozenset(name for each in _HISTORY for name in each.neutralised)
"""What the base class sets to None or False in one release or another."""


def base_class(version: str) -> BaseClass | None:
    """Return the base class of a release; None where there is none yet.

    Raises:
        ValueError: this is not a version.
    """
    numbers = re.match(r"(\d+)\.(\d+)(?!\d)", version)
    if numbers is None:
        raise ValueError(f"{version!r} is not a version of transformers")
    release = int(numbers[1]), int(numbers[2])
    return next((each for each in reversed(_HISTORY) if each.since <= release), None)
