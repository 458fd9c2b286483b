"""How the base class ``GradientCheckpointingLayer`` behaves in each release of transformers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from gclint.verify.worker.vocabulary import LAYER_PAST, PAST_KEY_VALUE, PAST_KEY_VALUES, USE_CACHE

Version: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class BaseClass:
    """The behaviour of the base class from one release on."""

    since: tuple[int, int]
    neutralised: frozenset[str]
    """The keyword arguments that it sets to None or False while it checkpoints."""


_HISTORY = (
    BaseClass((4, 52), frozenset()),
    BaseClass((4, 53), frozenset((USE_CACHE, PAST_KEY_VALUE, PAST_KEY_VALUES, LAYER_PAST))),
    BaseClass((5, 17), frozenset((USE_CACHE, PAST_KEY_VALUES, LAYER_PAST))),
)
"""The behaviour since each release that introduced or changed the base class."""

EVER_NEUTRALISED = frozenset(name for each in _HISTORY for name in each.neutralised)
"""The keyword arguments that the base class disables in any release."""

FIRST_WITH_SWITCH = "4.35"
"""The first release that sets the flags of modules itself."""
FIRST_WITH_BASE_CLASS = "4.52"
FIRST_NON_REENTRANT = "5.0"
"""The first release that checkpoints without reentry unless it is told otherwise."""
FIRST_WITH_EVERY_N_LAYERS = "5.16"
"""The first release that can recompute every n-th layer only."""
FIRST_WITH_OFFLOADING = "5.17"
"""The first release that can move what recomputation needs to the host."""
FIRST_FINDING_EMBEDDINGS = "4.54"
"""The first release whose models find their input embeddings by name, where they have no method for it."""

_WRAPS_FORWARD_SINCE = (5, 23)

_LAST_MINOR = {2: 11, 3: 5, 4: 57}
"""The last release before each next major one."""
_ZERO: Version = (0, 0, 0)
_CLAUSE = re.compile(
    r"(?P<operator>===|==|~=|>=|<=|!=|[<>^~=])?\s{0,99}v?(?P<numbers>\d{1,9}(?:\.\d{1,9}){0,9})"
    r"(?P<series>\.[*x])?(?P<suffix>[-_.+]?[a-z][\w.+-]{0,99})?(?:[,\s]{1,99}|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Releases:
    """The releases that code may run with: from ``start`` (inclusive) to ``end`` (exclusive)."""

    start: Version = _ZERO
    end: Version | None = None
    """None if there is no upper bound."""

    def __str__(self) -> str:
        """Return a description for messages."""
        if self.start == _ZERO:
            return "any transformers" if self.end is None else f"transformers before {_short(self.end)}"
        if self.end is None:
            return f"transformers {_short(self.start)} and later"
        is_series = self.start[2] == 0 and self.end == _after(self.start, 2)
        if is_series or self.end == _after(self.start, 3):
            return f"transformers {_short(self.start)}"
        return f"transformers >={_short(self.start)},<{_short(self.end)}"

    @property
    def says_something(self) -> bool:
        """Whether there is any bound."""
        return self != Releases()

    @property
    def without_base_class(self) -> Releases | None:
        """Those releases that do not have the base class yet; None if all have it."""
        return self._between(_ZERO, _since(_HISTORY[0]))

    @property
    def have_base_class(self) -> bool:
        """Whether any of them has the base class."""
        return self._between(_since(_HISTORY[0]), None) is not None

    @property
    def wrapping_forward(self) -> Releases | None:
        """Those that wrap ``forward`` when the class is created, so that a replacement is not recomputed."""
        return self._between((*_WRAPS_FORWARD_SINCE, 0), None)

    def come_before(self, version: str) -> bool:
        """Return whether any of them is older than ``version``."""
        return self.start < releases(version).start

    def end_before(self, version: str) -> bool:
        """Return whether all of them are older than ``version``."""
        return self.end is not None and self.end <= releases(version).start

    def not_neutralising(self, name: str) -> str | None:
        """Return a description of those whose base class does not disable ``name``; None if all do."""
        found = [part for part, each in self._parts() if name not in each.neutralised]
        return " and ".join(map(str, _joined(found))) or None

    def neutralise_somewhere(self, name: str) -> bool:
        """Return whether the base class of any of them disables the keyword argument ``name``."""
        return any(name in each.neutralised for _, each in self._parts())

    def _parts(self) -> Iterator[tuple[Releases, BaseClass]]:
        ends = [*map(_since, _HISTORY[1:]), None]
        for each, end in zip(_HISTORY, ends, strict=True):
            part = self._between(_since(each), end)
            if part is not None:
                yield part, each

    def within(self, other: Releases) -> Releases | None:
        """Return those that are among others as well; None if none is."""
        return self._between(other.start, other.end)

    def _between(self, start: Version, end: Version | None) -> Releases | None:
        start = max(start, self.start)
        end = min((each for each in (end, self.end) if each is not None), default=None)
        return None if end is not None and end <= start else Releases(start, end)

    def united(self, other: Releases) -> Releases:
        """Return the smallest range that contains both."""
        end = None if self.end is None or other.end is None else max(self.end, other.end)
        return Releases(min(self.start, other.start), end)


@dataclass(frozen=True)
class Assumed:
    """The releases that code is taken to run with, and why."""

    releases: Releases
    origin: str
    """What says so, in words."""
    guessed_from: str = ""
    """The same in few words, if neither the user, nor the code, nor its project says it."""
    is_installed: bool = False
    """Whether nothing says so, and an installed library stands for all."""


NEWEST_KNOWN = Releases((*_HISTORY[-1].since, 0))
"""The releases that are assumed if nothing else is known."""


def releases(text: str) -> Releases:
    """Parse a version, or a range as in requirements.

    A version alone includes all that begin with it: ``4.53`` stands for every 4.53.x. Versions that a range
    excludes with ``!=`` are included, which is the safe side.

    Raises:
        ValueError: the text is neither.
    """
    alternatives = [_range(part.strip()) for part in text.split("||")]
    found = alternatives[0]
    for each in alternatives[1:]:
        found = found.united(each)
    return found


def _range(text: str) -> Releases:
    if text in ("", "*"):
        return Releases()
    start, end, offset = _ZERO, None, 0
    while offset < len(text):
        clause = _CLAUSE.match(text, offset)
        if clause is None:
            raise ValueError(f"{text!r} is not a version or a range of versions")
        first, last = _bounds(clause)
        start = max(start, first)
        end = min((each for each in (end, last) if each is not None), default=None)
        offset = clause.end()
    if end is not None and end <= start:
        raise ValueError(f"no version satisfies {text!r}")
    final = _LAST_MINOR.get(start[0])
    if final is not None and start[1] > final and end is not None and end <= (start[0] + 1, 0, 0):
        before = f"{start[0]}.{final} is the last one before {start[0] + 1}.0"
        raise ValueError(f"{text!r} was never released: {before}")
    return Releases(start, end)


def _bounds(clause: re.Match[str]) -> tuple[Version, Version | None]:
    """Return the lower bound (inclusive) and upper bound (exclusive) of a clause such as ``>=4.52``."""
    numbers = [int(each) for each in clause["numbers"].split(".")[:3]]
    given = len(numbers)
    major, minor, micro = (*numbers, 0, 0)[:3]
    version: Version = (major, minor, micro)
    operator = clause["operator"]
    # A pre-release is older than its release.
    before = (clause["suffix"] or "").lstrip("-_.")[:1].lower() in ("a", "b", "c", "d", "r")
    if operator == "!=":
        return _ZERO, None
    if operator == ">=":
        return version, None
    if operator == ">":
        return version if before else _after(version, 3), None
    if operator == "<":
        return _ZERO, version
    if operator == "<=":
        return _ZERO, _after(version, given if clause["series"] else 3)
    if operator == "^":
        return version, _after(version, 1)
    if operator == "~":
        return version, _after(version, min(given, 2))
    if operator == "~=":
        return version, _after(version, max(given - 1, 1))
    exact = operator in ("==", "===", "=") and not clause["series"]
    return version, _after(version, 3 if exact else given)


def _after(version: Version, count: int) -> Version:
    """Return the first version after all that begin with the first ``count`` numbers of ``version``."""
    major, minor, micro = version
    if count == 1:
        return major + 1, 0, 0
    return (major, minor + 1, 0) if count == 2 else (major, minor, micro + 1)


def _since(base: BaseClass) -> Version:
    return (*base.since, 0)


def _joined(parts: list[Releases]) -> list[Releases]:
    """Merge adjacent ranges."""
    found: list[Releases] = []
    for part in parts:
        if found and found[-1].end == part.start:
            part = Releases(found.pop().start, part.end)
        found.append(part)
    return found


def _short(version: Version) -> str:
    return ".".join(map(str, version if version[2] else version[:2]))
