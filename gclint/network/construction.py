"""Finds where a class sets its own checkpointing flag."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gclint.code.file import SourceFile
from gclint.code.lines import mentions
from gclint.code.naming import MODEL_BASE
from gclint.code.walk import assigned
from gclint.network.evaluation.body import Body
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.outside import FLAG

_CONSTRUCTOR = "__init__"


@dataclass(frozen=True)
class FlagSetting:
    """A statement of a class that sets the checkpointing flag of its instances."""

    file: SourceFile
    offset: int
    method: str | None
    """The method that contains it; None for the class body."""
    code: str
    """The code of the value."""

    @property
    def is_librarys(self) -> bool:
        """Whether it initializes the flag to False, as the library expects."""
        return self.code == "False" and self.method in (None, _CONSTRUCTOR)


def flag_settings(info: ClassInfo) -> Iterator[FlagSetting]:
    """Yield the statements of a class and its bases that set the flag."""
    for base in info.mro:
        yield from own_flag_settings(info, base)


def own_flag_settings(info: ClassInfo, base: ClassInfo) -> Iterator[FlagSetting]:
    """Yield the statements of ``base``, one of the classes in the MRO of ``info``, that set the flag.

    A property that computes the flag counts, too. The library's own base class of models is left out.
    """
    if base.name == MODEL_BASE or not mentions(base.definition.text, FLAG):
        return
    yield from _in_body(base)
    file = base.file
    for method in base.methods():
        if method.name == FLAG:
            yield FlagSetting(file, method.header, method.name, "a property")
        elif mentions(method.text, FLAG):
            scope = info.scope(method, base.module)
            for binding in scope.bindings(f"{scope.self_name}.{FLAG}"):
                start = file.places.start(binding.value)
                yield FlagSetting(file, start, method.name, file.source(binding.value))


def _in_body(base: ClassInfo) -> Iterator[FlagSetting]:
    """Yield the assignments in the class body."""
    file = base.file
    for node in Body.of_definition(base.definition).own_nodes:
        for target, value in assigned(node):
            if isinstance(target, ast.Name) and target.id == FLAG:
                yield FlagSetting(file, file.places.start(target), None, file.source(value))
