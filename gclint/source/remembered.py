"""Facts that are computed once, and kept as long as what they are about."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Protocol, TypeVar, cast


class _HasFacts(Protocol):
    facts: dict[object, object]


_Subject = TypeVar("_Subject", bound=_HasFacts)
_Fact = TypeVar("_Fact")


def remembered(function: Callable[[_Subject], _Fact]) -> Callable[[_Subject], _Fact]:
    """Compute a fact only once; it is stored with its subject.

    A fact about a file has to follow from its text alone, however the files around it change, and may hold
    no nodes of its tree; one about a tree may.
    """

    @wraps(function)
    def recall(subject: _Subject) -> _Fact:
        if function not in subject.facts:
            subject.facts[function] = function(subject)
        return cast("_Fact", subject.facts[function])

    return recall
