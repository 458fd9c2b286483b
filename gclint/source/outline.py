"""The definitions and imports of a text, found by one scan that does not parse it.

Parsing with LibCST takes ten times as long as ``ast.parse``, and most of a modeling file does not
matter to any rule. So a text is first split at its ``class``, ``def`` and ``import`` lines, and a
definition is parsed only when it is needed. The scan knows strings and comments; what it takes for a
definition is checked when it is parsed (see ``gclint.source.fragment``).
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise

from gclint.source.straight import straightened, with_line_feeds
from gclint.source.tokens import (
    COMMENT,
    JOIN,
    STRINGS,
    Kind,
    closing_bracket,
    header_end,
    open_brackets,
    scan,
    statement_end,
    tokens,
)

_TOKENS = re.compile(
    rf"""
    {STRINGS}
    | {COMMENT}
    | ^(?P<indent>[ \t\f]*)
      (?P<word>@|(?:class|def|async[ \t]+def|from|import
       |(?<![ \t\f])(?:if|elif|else|try|except|finally|for|while|with))\b)
    """,
    re.VERBOSE | re.MULTILINE,
)
_NAME = re.compile(rf"(?:class|def|async[ \t]+def)(?:[ \t]|{JOIN})+(\w+)")
_FIRST_PARAMETER = re.compile(r"(?:async\s+)?def\s+\w+\s*\(\s*(\w+)")
_GOES_ON = re.compile(
    r"(?<![ \t\f])[ \t\f]*(?:(?:and|or|in|is|if|for|else|not|lambda|await|async(?![ \t]+def\b))\b"
    r"|[-+*/%&|^<>=.,:!\"'(\[{~])"
)
_AWAITS_MORE = frozenset(",([{=+-*/%&|^<>@.:~")
# Only names, which need not be tokenized.
_PLAIN_BASES = re.compile(r"class\s+\w+\s*\(([\w.,\s]*)\)\s*:")
_OPENING = ("(", "[", "{")
_CLOSING = (")", "]", "}")
_LAYOUT = (Kind.NEWLINE, Kind.JOIN, Kind.COMMENT)
# No string can be part of an import, and brackets mean nothing.
_IMPORT_WORDS = re.compile(rf"{COMMENT}|{JOIN}|\w+|\.+|[*,]")


@dataclass(eq=False)
class Definition:
    """A class or function in a text, wherever it is.

    ``start`` is the beginning of the first line (that of the first decorator), ``header`` the offset
    of ``class``, ``def`` or ``async``.
    """

    outline: Outline = field(repr=False)
    is_class: bool
    name: str
    indent: str
    start: int
    header: int
    parent: Definition | None = field(repr=False)
    limit: int = field(repr=False)
    """Where the next definition outside of this one begins: at or after its end."""
    seen: int = field(repr=False)
    """The offset up to which the scan knows that the definition goes on."""
    children: list[Definition] = field(default_factory=list, repr=False)

    @cached_property
    def end(self) -> int:
        """The offset of the first line that no longer belongs to the definition."""
        return self.outline.block_end(self.header, len(self.indent))

    @cached_property
    def header_end(self) -> int | None:
        """The offset after the header's colon; None if there is none."""
        return header_end(self.outline.text, self.header, self.end)

    @property
    def is_local(self) -> bool:
        """Whether it is inside a function, at any depth."""
        return self.parent is not None and (not self.parent.is_class or self.parent.is_local)

    @property
    def text(self) -> str:
        """The definition's text, decorators included."""
        return self.outline.text[self.start : self.end]

    @property
    def code(self) -> str:
        """The definition's text, straightened for searches."""
        return self.outline.code[self.start : self.end]

    @cached_property
    def first_parameter(self) -> str | None:
        """The name of a function's first parameter, if it can be given by position."""
        simple = _FIRST_PARAMETER.match(self.outline.code, self.header)
        if simple is not None:
            return simple[1]
        text, start = self.outline.text, self.header
        opening = next(
            (token for token in tokens(text, start, self.header_end) if token.text in ("(", "[")), None
        )
        if opening is not None and opening.text == "[":  # type parameters
            start = closing_bracket(text, opening.start) or self.end
            opening = next(
                (token for token in tokens(text, start, self.header_end) if token.text == "("), None
            )
        inside = () if opening is None else tokens(text, opening.end, self.header_end)
        first = next((token for token in inside if token.kind not in _LAYOUT), None)
        return first.text if first is not None and first.kind is Kind.NAME else None

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """The bases of a class as they are written, if they are dotted names."""
        simple = _PLAIN_BASES.match(self.outline.code, self.header)
        if simple is not None:
            return tuple(name.strip() for name in simple[1].split(",") if name.strip())
        return tuple(filter(None, map(_dotted_name, self._arguments())))

    def _arguments(self) -> Iterator[list[str]]:
        """Yield the arguments of a class's header as their tokens."""
        text, depth, argument, is_inside = self.outline.text, 0, list[str](), False
        for token in tokens(text, self.header, self.header_end):
            if token.kind in _LAYOUT:
                continue
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if not is_inside:
                is_inside = depth == 1 and token.text == "("  # Type parameters come before it.
            elif depth == 0 or (depth == 1 and token.text == ","):
                yield argument
                argument = []
                if depth == 0:
                    return
            else:
                argument.append(token.text)

    def methods(self) -> Iterator[Definition]:
        """Yield the functions directly in a class; of several with one name, only the last."""
        latest = {child.name: child for child in self.children if not child.is_class}
        yield from latest.values()

    def method(self, name: str) -> Definition | None:
        """Return the method that a class defines itself under ``name``."""
        for child in reversed(self.children):
            if child.name == name and not child.is_class:
                return child
        return None


@dataclass(frozen=True, slots=True)
class ImportedName:
    """What an import statement makes of one name: ``from ..a import b as c`` binds ``c``."""

    bound: str
    """The name that is bound; for ``import a.b``, it is ``a``."""
    module: str
    """The module, without leading dots."""
    level: int
    """How many leading dots it has."""
    name: str | None
    """The name in the module; None if the module itself is imported."""


@dataclass(frozen=True, slots=True)
class ImportItem:
    """One of the items of an import statement, with its place."""

    start: int
    end: int
    path: str
    """What is imported, as it is written: a dotted name for a module, ``*`` for everything."""
    alias: str | None
    """The name after ``as``."""


@dataclass(frozen=True)
class ImportStatement:
    """An import statement's place; ``indent`` is empty at module level."""

    indent: str
    start: int
    end: int
    text: str = field(repr=False)

    @cached_property
    def module(self) -> str | None:
        """The module after ``from``, with its leading dots; None without ``from``."""
        before, _ = self._words()
        return "".join(before[1:]) if before else None

    @property
    def items(self) -> tuple[ImportItem, ...]:
        """The items of the statement."""
        found: list[ImportItem] = []
        listed: list[re.Match[str]] = []
        for word in [*self._words()[1], None]:
            if word is not None and word[0] != ",":
                listed.append(word)
            elif listed:
                words = [each[0] for each in listed]
                alias = words[-1] if len(words) > 2 and words[-2] == "as" else None
                path = "".join(words[:-2] if alias else words)
                place = self.start + listed[0].start(), self.start + listed[-1].end()
                found.append(ImportItem(*place, path, alias))
                listed = []
        return tuple(found)

    @cached_property
    def names(self) -> tuple[ImportedName, ...]:
        """The names that the statement binds; none for ``import *``."""
        found: list[ImportedName] = []
        module = self.module
        level = 0 if module is None else len(module) - len(module.lstrip("."))
        for item in self.items:
            if module is None:
                bound = item.alias or item.path.partition(".")[0]
                found.append(ImportedName(bound, item.path if item.alias else bound, 0, None))
            elif item.path != "*":
                found.append(ImportedName(item.alias or item.path, module[level:], level, item.path))
        return tuple(found)

    def _words(self) -> tuple[list[str], list[re.Match[str]]]:
        """The words before ``import``, and those after it."""
        before: list[str] = []
        words = (match for match in _IMPORT_WORDS.finditer(self.text) if match[0][0] not in "#\\")
        for match in words:
            if match[0] == "import":
                break
            before.append(match[0])
        return before, list(words)


class Outline:
    """What a text defines and imports."""

    def __init__(self, text: str) -> None:
        """Scan ``text``; if it is not valid Python, the result is some outline, never an error."""
        self.text = text
        self.code = straightened(text)
        """The text, straightened for searches: everything has the same offset, or nearly."""
        self.definitions: list[Definition] = []
        self.imports: list[ImportStatement] = []
        # There are thousands of these, and a list would take nine times as much memory for each.
        self._long_starts = array("L")
        self._long_ends = array("L")
        self._scan()

    @cached_property
    def classes(self) -> dict[str, Definition]:
        """Classes by name, except those in functions; of several with one name, the last."""
        return {
            definition.name: definition
            for definition in self.definitions
            if definition.is_class and not definition.is_local
        }

    def imported(self, name: str) -> ImportedName | None:
        """Return what is imported under a name; the first import of it counts."""
        for statement in self.imports:
            if name in statement.text:
                for imported in statement.names:
                    if imported.bound == name:
                        return imported
        return None

    def all_imported(self) -> Iterator[ImportedName]:
        """Yield everything that is imported."""
        for statement in self.imports:
            yield from statement.names

    @cached_property
    def functions(self) -> dict[str, Definition]:
        """Module-level functions by name."""
        return {d.name: d for d in self.definitions if not d.is_class and d.parent is None}

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """The places of the top-level definitions, and of the code between them."""
        bounds = [0]
        for definition in self.definitions:
            if definition.parent is None and not definition.indent and definition.start >= bounds[-1]:
                bounds += [definition.start, definition.end]
        return list(pairwise([*bounds, len(self.text)]))

    def block_end(self, header: int, indent: int) -> int:
        """Return the end of the block whose header is at ``header``, indented by ``indent`` characters."""
        known, depth = header, 0
        for match in _dedent(indent).finditer(self.code, header):
            end = match.end()
            if self.in_long_string(end):
                continue
            if depth <= 0 and not _may_be_inside(self.code, end):
                return end
            known, depth = end, depth + open_brackets(self.code, known, end)
            if depth <= 0:
                return end
        return len(self.text)

    def _is_left(self, definition: Definition, offset: int) -> bool:
        """Return whether a definition has ended before ``offset``, a line after all that were asked about."""
        indent = len(definition.indent)
        dedents = _dedent(indent).finditer(self.code, definition.seen - 1, offset)
        definition.seen = offset
        first = next((each.end() for each in dedents if not self.in_long_string(each.end())), None)
        if first is None:
            return False
        return not _may_be_inside(self.code, first) or self.block_end(definition.header, indent) <= offset

    def in_long_string(self, offset: int) -> bool:
        """Return whether an offset is inside a triple-quoted string."""
        index = bisect_right(self._long_starts, offset) - 1
        return index >= 0 and self._long_starts[index] < offset < self._long_ends[index]

    def is_code(self, offset: int) -> bool:
        """Return whether an offset is outside of strings and comments."""
        if self.in_long_string(offset):
            return False
        start = self.code.rfind("\n", 0, offset) + 1
        if self.in_long_string(start):
            start = self._long_ends[bisect_right(self._long_starts, start) - 1]
        end = self.code.find("\n", offset)
        return not any(
            token.kind in (Kind.STRING, Kind.COMMENT) and token.start < offset < token.end
            for token in tokens(self.code, start, len(self.code) if end == -1 else end)
        )

    def in_comment(self, offset: int) -> bool:
        """Return whether an offset is in a comment."""
        start = self.code.rfind("\n", 0, offset) + 1
        if self.code.find("#", start, offset) == -1:
            return False
        if self.in_long_string(start):
            start = self._long_ends[bisect_right(self._long_starts, start) - 1]
        return any(token.kind is Kind.COMMENT for token in tokens(self.code, start, offset))

    def _scan(self) -> None:
        open_definitions: list[Definition] = []
        decorators: re.Match[str] | None = None
        for match, end in scan(_TOKENS, self.code):
            kind = match.lastgroup
            # A string in single quotes can continue after a backslash at the end of a line, or in a field.
            if kind == "long" or (kind != "word" and self.code.find("\n", match.start(), end) != -1):
                self._long_starts.append(match.start())
                self._long_ends.append(end)
            if kind != "word":
                continue
            word = match["word"]
            if word == "@":
                if decorators is None or decorators["indent"] != match["indent"]:
                    decorators = match
            elif word in ("from", "import"):
                start = match.start("word")
                end = statement_end(self.code, start)
                self.imports.append(
                    ImportStatement(match["indent"], start, end, with_line_feeds(self.text[start:end]))
                )
            elif word[0] in "cda":
                decorated = decorators is not None and decorators["indent"] == match["indent"]
                start = decorators.start() if decorators is not None and decorated else match.start()
                decorators = None
                definition = self._definition(match, start, open_definitions)
                if definition is not None:
                    open_definitions.append(definition)
            elif open_definitions and self.block_end(open_definitions[0].header, 0) <= match.start():
                _close(open_definitions, 0, match.start())

    def _definition(
        self, match: re.Match[str], start: int, open_definitions: list[Definition]
    ) -> Definition | None:
        """Record the definition at ``match`` under the innermost open one that contains it."""
        name = _NAME.match(self.code, match.start("word"))
        if name is None:
            return None
        indent = match["indent"]
        _close(open_definitions, len(indent), start)
        # A function, or a class in another, can be ended by a line that is not a definition (`if …:`).
        while open_definitions and (open_definitions[-1].indent or not open_definitions[-1].is_class):
            # Not its `end`, which is cached: strings further on are not known yet.
            if not self._is_left(open_definitions[-1], match.start()):
                break
            open_definitions.pop().limit = start
        parent = open_definitions[-1] if open_definitions else None
        definition = Definition(
            self,
            match["word"] == "class",
            name[1],
            indent,
            start,
            match.start("word"),
            parent,
            len(self.text),
            match.start("word") + 1,
        )
        self.definitions.append(definition)
        if parent is not None:
            parent.children.append(definition)
        return definition


def _dotted_name(code: list[str]) -> str | None:
    """Return the dotted name that tokens spell, in brackets or not, and generic or not."""
    while code[:1] == ["("] and code[-1:] == [")"]:
        code = code[1:-1]
    if code[-1:] == ["]"] and "[" in code:
        code = code[: code.index("[")]  # A generic class, with what stands for its parameters.
    name = "".join(code)
    return name if name and all(part.isidentifier() for part in name.split(".")) else None


def _may_be_inside(code: str, offset: int) -> bool:
    """Return whether the line at ``offset`` may continue a statement whose brackets are still open.

    It does not if the line before ends with an operand, and this one begins with one.
    """
    if _GOES_ON.match(code, offset) is not None:
        return True
    while offset > 0:
        start = code.rfind("\n", 0, offset - 1) + 1
        line = code[start:offset].strip()
        if line and line[0] != "#":
            return line[-1] in _AWAITS_MORE or "#" in line
        offset = start
    return False


def _close(definitions: list[Definition], indent: int, offset: int) -> None:
    """Remove from a stack the definitions that end before a line at ``offset`` with this indentation."""
    while definitions and len(definitions[-1].indent) >= indent:
        definitions.pop().limit = offset


@cache
def _dedent(indent: int) -> re.Pattern[str]:
    """Match up to the beginning of a line whose code is indented by at most ``indent`` characters.

    The line end before it is part of the match: a pattern that begins with a literal is fast.
    """
    return re.compile(rf"\n(?=[ \t\f]{{0,{indent}}}[^\s#)\]}}])")
