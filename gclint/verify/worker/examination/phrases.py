"""Formats lists, errors and places in sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import PurePath

from gclint.verify.worker.examination.fault import Fault
from gclint.verify.worker.protocol import SourcePlace

ORDINALS = ("first", "second", "third", "fourth", "fifth")
_MANY = 3
_PACKAGE = re.compile(r"\bgclint_[0-9a-f]{12}\.")


def names(all_of_them: Collection[str]) -> str:
    """Return the first few names, and how many more there are."""
    first = ", ".join(f"`{each}`" for each in islice(all_of_them, _MANY))
    return first if len(all_of_them) <= _MANY else f"{first} and {len(all_of_them) - _MANY} more"


def of_step(number: int) -> str:
    """Return words that follow the name of a stage of a step, of which 0 is the first; nothing for that."""
    return f" of the {ORDINALS[number]} step" if number else ""


def plural(count: int, kinds: Iterable[str]) -> str:
    """Return the number of things with their classes."""
    return f"{count} of {', '.join(kinds)}"


def described(fault: Fault) -> str:
    """Return the class of an error and the first sentence of its message."""
    first = fault.message.strip().partition("\n")[0].partition(". ")[0].partition(" (or ")[0]
    return f"{fault.kind}: {first}".rstrip(":. ")


def without_package(text: str) -> str:
    """Return a text without the name of the package that gclint makes of a folder, for its imports."""
    return _PACKAGE.sub("", text)


def capitalised(text: str) -> str:
    """Return a text whose first letter is a capital."""
    return text[:1].upper() + text[1:]


def line(place: SourcePlace) -> str:
    """Return a place as ``file:line``."""
    return f"{PurePath(place.path).name}:{place.line}"
