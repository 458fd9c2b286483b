"""Finds where a class sets its own checkpointing flag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gclint.network.evaluation.classes import ClassInfo
from gclint.network.outside import FLAG
from gclint.source.file import SourceFile
from gclint.source.naming import MODEL_BASE
from gclint.source.words import has_word, word_ends

_CLASS_ATTRIBUTE = re.compile(r"[ \t]{0,99}(?::[^=\n]{1,400})?=[ \t]{0,99}\({0,99}[ \t]{0,99}(\w{1,99})")
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
    text = base.file.text
    if base.name == MODEL_BASE or not has_word(text, FLAG, base.definition.header, base.definition.end):
        return
    yield from _in_body(base)
    for method in base.methods():
        if method.name == FLAG:
            yield FlagSetting(base.file, method.header, method.name, "a property")
            continue
        if not has_word(text, FLAG, method.header, method.end):
            continue
        scope = info.scope(method, base.module)
        if scope.self_name is None or scope.body is None:
            continue
        key = f"{scope.self_name}.{FLAG}"
        for piece in scope.body.pieces(key):
            for binding in piece.bindings.get(key, ()):
                if piece.fragment is not None:
                    offset = piece.fragment.span(binding.value)[0]
                    yield FlagSetting(base.file, offset, method.name, _shown(binding.value))


def _in_body(base: ClassInfo) -> Iterator[FlagSetting]:
    """Yield the assignments in the class body."""
    text = base.file.text
    for end in word_ends(text, FLAG, base.definition.header, base.definition.end):
        start = end - len(FLAG)
        line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
        indent = text[line:start]
        value = _CLASS_ATTRIBUTE.match(text, end)
        inside = any(each.start <= start < each.end for each in base.definition.children)
        if (
            value
            and not inside
            and indent
            and not indent.strip()
            and not base.file.outline.in_long_string(start)
        ):
            yield FlagSetting(base.file, start, None, value[1])


def _shown(value: cst.BaseExpression) -> str:
    if isinstance(value, cst.Name):
        return value.value
    return cst.Module([]).code_for_node(value)
