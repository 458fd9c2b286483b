"""Facts that are computed once, and kept as long as what they are about."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast


class _HasFacts(Protocol):
    facts: dict[object, object]


_Holder = TypeVar("_Holder", bound=_HasFacts)
_Fact = TypeVar("_Fact")
_Further = ParamSpec("_Further")


def remembered(
    function: Callable[Concatenate[_Holder, _Further], _Fact],
) -> Callable[Concatenate[_Holder, _Further], _Fact]:
    """Compute a fact only once; it is stored with the first argument, by the others.

    A fact about a file has to follow from its text alone, however the files around it change, and may hold
    no nodes of its tree; one about a tree may. The others are passed by position, and are hashable.
    """

    @wraps(function)
    def recall(holder: _Holder, /, *further: _Further.args, **options: _Further.kwargs) -> _Fact:
        key = (function, *further) if further else function
        if key not in holder.facts:
            holder.facts[key] = function(holder, *further, **options)
        return cast("_Fact", holder.facts[key])

    return recall
