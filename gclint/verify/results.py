"""The results of a run so far: the latest one of each class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gclint.verify.worker.practices import MISSING_LIBRARY
from gclint.verify.worker.protocol import ClassResult, Discovered, Environment, Message, Unusable

_AGAIN = frozenset(("killed", "crowded out"))
"""Categories of classes that were not run for reasons outside of them: the next run may run them."""
_BROKEN = _AGAIN | {"verifier"}
"""These, and bugs of gclint: something went wrong."""


class UnusableResults(Exception):
    """A file has no results that a run can use, or cannot be written; the message says why."""


@dataclass
class Results:
    """All messages of the workers that are still valid."""

    environments: dict[str | None, Environment] = field(default_factory=dict)
    """By the folder that packages were imported from."""
    discovered: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the classes of each source."""
    classes: dict[tuple[str, str], ClassResult] = field(default_factory=dict)
    """By source and name."""
    unusable: dict[str, Unusable] = field(default_factory=dict)
    """Sources that cannot be imported."""
    problem: str | None = None
    """Why nothing, or nothing more, could be run."""
    is_finished: bool = False
    """Whether the run was finished, for results that were read from a file."""
    digests: dict[str, str] = field(default_factory=dict)
    """The digests of the sources when they were run."""

    def add(self, message: Message, *, tree: str | None, digest: str = "") -> None:
        """Add a message of a worker that imports packages from ``tree``, about a source with this digest."""
        if isinstance(message, Environment):
            self.environments[tree] = message
        elif isinstance(message, Unusable) and message.source is None:
            self.problem = message.message
        elif isinstance(message, (Discovered, ClassResult, Unusable)):
            self._add(str(message.source), message, digest)

    def _add(self, source: str, message: Discovered | ClassResult | Unusable, digest: str) -> None:
        if self.digests.get(source) != digest:
            self.forget(source)
            self.digests[source] = digest
        if isinstance(message, Discovered):
            known = self.discovered.get(source, ())
            self.discovered[source] = tuple(dict.fromkeys((*known, *message.classes)))
            self.unusable.pop(source, None)
        elif isinstance(message, ClassResult):
            self.classes[source, message.name] = message
        else:
            self.unusable[source] = message

    def forget(self, source: str) -> None:
        """Forget a source, which has changed."""
        self.discovered.pop(source, None)
        self.unusable.pop(source, None)
        for key in [key for key in self.classes if key[0] == source]:
            del self.classes[key]

    def copy(self, other: Results, source: str) -> None:
        """Copy what ``other`` has on a source."""
        self.digests[source] = other.digests[source]
        self.discovered[source] = other.discovered[source]
        self.classes.update({key: result for key, result in other.classes.items() if key[0] == source})

    def missing(self, source: str) -> tuple[str, ...] | None:
        """Return the names of the classes of a source that are still to be run; None for all of them.

        These have not been run yet, or were killed by the system.
        """
        if source not in self.discovered:
            return None
        return tuple(name for name in self.discovered[source] if self._is_missing(source, name))

    def _is_missing(self, source: str, name: str) -> bool:
        result = self.classes.get((source, name))
        return result is None or (result.outcome == "not run" and result.category in _AGAIN)

    @property
    def empty(self) -> list[str]:
        """The sources that were imported and have no class to run."""
        return sorted(source for source, names in self.discovered.items() if not names)

    def sorted(self) -> list[ClassResult]:
        """Return the results of the classes by source and name."""
        return [self.classes[key] for key in sorted(self.classes)]

    def of(self, outcome: str) -> list[ClassResult]:
        """Return the results of :meth:`sorted` with this outcome."""
        return [result for result in self.sorted() if result.outcome == outcome]

    @property
    def exit_status(self) -> int:
        """0 if everything that could be run passed, 1 if something failed, 2 if something went wrong.

        A set-up that fails is not a failure if another one of its group works.
        """
        something_broke = any(map(is_broken, self.of("not run")))
        if self.problem or self.unusable or something_broke or not (self.of("passed") or self.of("failed")):
            return 2
        setups = [each for result in self.sorted() for each in result.setups]
        if any(each.symptom == MISSING_LIBRARY for each in setups):
            return 2
        return 1 if self.of("failed") or any(map(has_no_way, self.sorted())) else 0


def is_broken(result: ClassResult) -> bool:
    """Return whether a class was not run because something went wrong that is not its own fault."""
    return result.outcome == "not run" and result.category in _BROKEN


def has_no_way(result: ClassResult) -> bool:
    """Return whether there is a group of set-ups of which some fail and none works."""
    works = {each.group for each in result.setups if each.outcome == "works"}
    fails = {each.group for each in result.setups if each.outcome == "fails"}
    return bool(fails - works) or any(not each.setting for each in result.advice)


def reasons(results: Iterable[ClassResult]) -> list[tuple[str, int]]:
    """Return the categories of classes that were not run with their counts, the most frequent first."""
    return Counter(result.category or "unknown" for result in results).most_common()
