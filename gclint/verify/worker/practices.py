"""The set-ups in which people train, beside one process with everything trainable: one table.

Each is asked for by name, runs with the same tiny model and batch as the scenarios, and makes one row of a
class's result. Both sides import this module, so it needs nothing but Python.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gclint.verify.worker.modes import Mode

MISSING_LIBRARY = "missing library"
"""The symptom of a practice that the interpreter lacks a library for; its message says which extra has it."""
ALL = "all"
"""Asks for every usual practice."""
_SHORT: dict[str, Mode] = {"N": "non-reentrant", "R": "reentrant"}


class UnknownPractice(ValueError):
    """The table has no such practice; the message says which there are."""


@dataclass(frozen=True)
class Practice:
    """A way in which people train; how it is done stands in the room of its group."""

    group: str
    """The name that it is asked for by, together with others of its kind."""
    name: str
    """Unique in its group."""
    mode: Mode
    """How checkpointing is switched on."""
    does: str
    """What somebody does who trains so, to follow "with"."""
    data: str = ""
    """What the batches hold, if not what the synthesis makes."""
    is_usual: bool = True
    """Whether it runs where all practices, or all of its group, are asked for."""

    @property
    def title(self) -> str:
        """The name that it is asked for by alone."""
        return f"{self.group}:{self.name}"

    def control(self) -> Practice:
        """Return the same without checkpointing."""
        return replace(self, mode="plain")

    def reference(self) -> Practice:
        """Return what its gradients have to be those of."""
        return self.control()


AUTOCAST = "autocast"

PRACTICES: tuple[Practice, ...] = tuple(
    Practice(AUTOCAST, short, mode, "torch.autocast in bfloat16") for short, mode in _SHORT.items()
)
"""All practices, group by group, in the order in which they are run."""


def groups() -> tuple[str, ...]:
    """Return the names of the groups."""
    return tuple(dict.fromkeys(each.group for each in PRACTICES))


def practices_named(names: Iterable[str]) -> tuple[Practice, ...]:
    """Return the practices that names stand for, each once, in the order of the table.

    Args:
        names: ``all``, names of groups, or titles.

    Raises:
        UnknownPractice: one of the names stands for none.
    """
    asked = set()
    for name in names:
        found = [each for each in PRACTICES if _is_meant(each, name)]
        if not found:
            raise UnknownPractice(_unknown(name))
        asked.update(found)
    return tuple(each for each in PRACTICES if each in asked)


def _is_meant(practice: Practice, name: str) -> bool:
    if name == practice.title:
        return True
    # A group in which nothing is usual is asked for by its name only.
    is_usual = practice.is_usual or (name != ALL and not _has_usual(practice.group))
    return name in (ALL, practice.group) and is_usual


def _has_usual(group: str) -> bool:
    return any(each.is_usual for each in PRACTICES if each.group == group)


def _unknown(name: str) -> str:
    known = [ALL, *groups(), *(each.title for each in PRACTICES)]
    near = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    if ":" in name and (group := name.partition(":")[0]) in groups():
        there = ", ".join(each.title for each in PRACTICES if each.group == group)
    else:
        there = ", ".join((ALL, *groups()))
    return f"there is no set-up {name!r}{meant} (there are {there})"
