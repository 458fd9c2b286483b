"""Where a class gives its own checkpointing flag a value."""

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
    """A statement of a class that sets the flag of its own objects."""

    file: SourceFile
    offset: int
    method: str | None
    """The method that it stands in; None for the class's own body."""
    code: str
    """The value."""

    @property
    def is_librarys(self) -> bool:
        """Whether the flag begins as False here, as the library expects it."""
        return self.code == "False" and self.method in (None, _CONSTRUCTOR)


def flag_settings(info: ClassInfo) -> Iterator[FlagSetting]:
    """Yield where a class, or a base of it, sets its flag."""
    for base in info.mro:
        yield from own_flag_settings(info, base)


def own_flag_settings(info: ClassInfo, base: ClassInfo) -> Iterator[FlagSetting]:
    """Yield where one of the classes that ``info`` inherits from sets the flag, or computes it as a property.

    The library's own base of models is left out: it does so as the library does.
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
    """Yield what the class's own body assigns."""
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
