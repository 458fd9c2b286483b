"""Facts that are computed once, and kept as long as what they are about."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast


class _HasFacts(Protocol):
    facts: dict[object, object]


_Subject = TypeVar("_Subject", bound=_HasFacts)
_Fact = TypeVar("_Fact")
_Further = ParamSpec("_Further")


def remembered(
    function: Callable[Concatenate[_Subject, _Further], _Fact],
) -> Callable[Concatenate[_Subject, _Further], _Fact]:
    """Compute a fact only once; it is stored with its subject, by what else it is about.

    A fact about a file has to follow from its text alone, however the files around it change, and may hold
    no nodes of its tree; one about a tree may. What else it is about is passed by position, and is hashable.
    """

    @wraps(function)
    def recall(subject: _Subject, /, *further: _Further.args, **options: _Further.kwargs) -> _Fact:
        key = (function, *further) if further else function
        if key not in subject.facts:
            subject.facts[key] = function(subject, *further, **options)
        return cast("_Fact", subject.facts[key])

    return recall
