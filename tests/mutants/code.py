"""Other code in functions that are there already: a mutant without importing anything anew."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType


class NotReplaceable(Exception):
    """The functions cannot be given their other code."""


def functions_below(folder: str) -> list[FunctionType]:
    """Return the functions that are there by now and were written in a folder."""
    # `isinstance` asks objects for their class, and some answer with a warning.
    found = (each for each in gc.get_objects() if type(each) is FunctionType)
    return [each for each in found if each.__code__.co_filename.startswith(folder)]


def replace_code(functions: Iterable[FunctionType], file: str, before: str, after: str) -> None:
    """Give the functions of an imported module the code that they have in another version of it.

    Args:
        functions: all that there are.
        file: the path of the module.
        before: its text.
        after: its other text, which defines the same functions.

    Raises:
        NotReplaceable: a function holds on to other variables of those around it, or there is none.
    """
    pairs: dict[tuple[str, int], list[tuple[CodeType, CodeType]]] = {}
    for old, new in _pairs(*(compile(text, file, "exec", dont_inherit=True) for text in (before, after))):
        pairs.setdefault((old.co_name, old.co_firstlineno), []).append((old, new))
    replaced = 0
    for function in functions:
        code = function.__code__
        if code.co_filename != file:
            continue
        for old, new in pairs.get((code.co_name, code.co_firstlineno), ()):
            if old == code:
                if old.co_freevars != new.co_freevars:
                    raise NotReplaceable(f"{function.__qualname__} holds on to other variables")
                function.__code__ = new
                replaced += 1
                break
    if not replaced:
        raise NotReplaceable(f"{file} is not imported")


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield old, new
    inner = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (old, new)]
    if [each.co_name for each in inner[0]] == [each.co_name for each in inner[1]]:
        for one, other in zip(*inner, strict=True):
            yield from _pairs(one, other)
