"""Converts dataclasses to JSON and back, by the types of their fields: a round trip is exact, or an error.

A mapping, whose keys need not be texts, becomes a list of pairs.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gclint.cache.consulted import Damaged

_Value = TypeVar("_Value")
_PLAIN = (str, int, bool, float)


def encoded(value: object) -> Any:
    """Return a value as ``json`` can write it.

    Raises:
        TypeError: it holds something of a type that is not supported.
    """
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [encoded(each) for each in value]
    if isinstance(value, Mapping):
        return [[encoded(key), encoded(each)] for key, each in value.items()]
    if isinstance(value, frozenset):
        return sorted(map(encoded, value))
    if is_dataclass(value):
        own = [encoded(getattr(value, each.name)) for each in fields(value)]
        return {type(value).__name__: own}
    raise TypeError(f"{type(value).__name__} cannot be kept")


def decoded(kind: type[_Value], document: Any) -> _Value:
    """Return the value of type ``kind`` that was encoded as ``document``.

    Raises:
        Damaged: no such value is encoded like that.
    """
    try:
        return cast("_Value", _reader(cast("Any", kind))(document))
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
        raise Damaged(str(error)) from None


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _PLAIN or kind is type(None):
        return lambda document: _checked(document, kind)
    if origin in (Union, getattr(types, "UnionType", Union)):
        return lambda document: _of_union(document, arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return lambda document: tuple(map(_reader(arguments[0]), _checked(document, list)))
    if origin is tuple:
        return lambda document: _of_tuple(document, arguments)
    if origin is Mapping:
        pairs = _reader(tuple[tuple[arguments], ...])  # type: ignore[valid-type]
        return lambda document: dict(pairs(document))
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        row = _reader(tuple[tuple(get_type_hints(kind).values())])  # type: ignore[misc]
        return lambda document: kind(*row(document))
    if origin is frozenset:
        return lambda document: frozenset(map(_reader(arguments[0]), _checked(document, list)))
    if isinstance(kind, type) and issubclass(kind, Path):
        return lambda document: Path(_checked(document, str))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda document: kind[_checked(document, str)]
    if isinstance(kind, type) and is_dataclass(kind):
        return _of_dataclass(kind)
    raise TypeError(f"{kind} cannot be kept")


def _checked(document: Any, kind: type) -> Any:
    if type(document) is not kind:
        raise Damaged(f"this is not {kind.__name__}")
    return document


def _of_tuple(document: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(_checked(document, list)) != len(kinds):
        raise Damaged("a tuple has the wrong length")
    return tuple(_reader(kind)(each) for kind, each in zip(kinds, document, strict=True))


def _of_union(document: Any, kinds: tuple[Any, ...]) -> Any:
    for kind in kinds:
        try:
            return _reader(kind)(document)
        except (Damaged, KeyError):
            continue
    raise Damaged("this matches none of the types")


def _of_dataclass(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind, vars(sys.modules[kind.__module__]))
    readers = [(each.name, hints[each.name]) for each in fields(cast("Any", kind))]

    def read(document: Any) -> Any:
        own = _checked(document, dict).get(kind.__name__)
        if len(document) != 1 or not isinstance(own, list) or len(own) != len(readers):
            raise Damaged(f"this is not {kind.__name__}")
        values = zip(readers, own, strict=True)
        return kind(**{name: _reader(hint)(each) for (name, hint), each in values})

    return read
