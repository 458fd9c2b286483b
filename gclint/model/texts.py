"""Texts that code puts together from other texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from gclint.code.names import names
from gclint.model.values import Constant, Fixed, Thing, Value

_METHODS = names(
    """
    capitalize casefold format join lower lstrip removeprefix removesuffix replace rstrip strip swapcase
    title upper
    """
)
_MOST = 16
_LONGEST = 200


def texts(value: Value) -> frozenset[str] | None:
    """Return the texts that a value may be; None if it may also be something else."""
    found = {each.value if isinstance(each, Constant) else None for each in value.things}
    return frozenset(each for each in found if isinstance(each, str)) if all(map(_is_text, found)) else None


def computed(values: Sequence[Value], compute: Callable[..., object]) -> Value | None:
    """Return what a function of literals gives for these values; None if that is not known, or is no text."""
    literals = [_literals(value) for value in values]
    results: set[Thing] = set()
    for given in product(*(each or () for each in literals)) if all(literals) else ():
        try:
            result = compute(*given)
        except (ValueError, TypeError, LookupError, OverflowError, MemoryError):
            return None
        if not isinstance(result, str) or len(result) > _LONGEST or len(results) >= _MOST:
            return None
        results.add(Constant(result))
    return Value(frozenset(results)) if results else None


def of_method(receiver: Value, name: str, arguments: Sequence[Value]) -> Value | None:
    """Return what a method of a text gives; None if that is not known."""
    if name not in _METHODS or texts(receiver) is None:
        return None
    return computed([receiver, *arguments], lambda text, *given: getattr(text, name)(*given))


def _literals(value: Value) -> list[object] | None:
    """Return the literals and tuples of literals that a value may be; None if it may be something else."""
    found: list[object] = []
    for thing in value.things:
        if isinstance(thing, Constant):
            if isinstance(thing.value, (str, bytes)) and len(thing.value) > _LONGEST:
                return None
            found.append(thing.value)
        elif isinstance(thing, Fixed):
            items = [_literals(each) for each in thing.items]
            if not all(each is not None and len(each) == 1 for each in items):
                return None
            found.append(tuple(each[0] for each in items if each))
        else:
            return None
    return found if len(found) <= _MOST else None


def _is_text(value: object) -> bool:
    return isinstance(value, str)
