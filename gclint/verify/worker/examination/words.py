"""Lists in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import PurePath

from gclint.verify.worker.protocol import Place

_MANY = 3


def names(all_of_them: Collection[str]) -> str:
    """Return the first few names, and how many more there are."""
    first = ", ".join(f"`{each}`" for each in islice(all_of_them, _MANY))
    return first if len(all_of_them) <= _MANY else f"{first} and {len(all_of_them) - _MANY} more"


def plural(count: int, kinds: Iterable[str]) -> str:
    """Return a number of things with the classes that they are of."""
    return f"{count} of {', '.join(kinds)}"


def line(place: Place) -> str:
    """Return a place as people write it."""
    return f"{PurePath(place.path).name}:{place.line}"
