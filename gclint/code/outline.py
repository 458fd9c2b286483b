"""The definitions and imports of a text, as places and names that need no syntax tree any more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from gclint.code.tree import DEFINITIONS, DefinitionNode, OffsetTable, Tree, statements_around
from gclint.code.walk import text_of

_EXPORTS = "__all__"
_LISTS = (ast.List, ast.Tuple)
_REST_OF_LINE = re.compile(r"[^\r\n]*")


class Text(Protocol):
    """What an outline needs of a file."""

    @property
    def text(self) -> str:
        """The text itself."""

    @property
    def tree(self) -> Tree | None:
        """The syntax tree of the text; None if the running Python cannot parse it."""

    @property
    def places(self) -> OffsetTable:
        """Where nodes of the tree stand in the text."""

    @property
    def line_starts(self) -> Sequence[int]:
        """The offset at which each line begins."""

    def row_start(self, row: int) -> int:
        """Return the offset at which a row (counted from 1) begins; after the last, the end of the text."""

    def source(self, node: ast.AST) -> str:
        """Return the code of a node as it is written, without brackets around it."""


@dataclass(eq=False)
class Definition:
    """A class or function in a text, wherever it is."""

    outline: Outline = field(repr=False)
    number: int = field(repr=False)
    """Its index among all definitions of the text."""
    is_class: bool
    name: str
    indent: str
    """The white space before it."""
    start: int
    """Where its first line begins, that of its first decorator."""
    header: int
    """Where ``class``, ``def`` or ``async`` stands."""
    end: int
    """Where the first line begins that neither belongs to it nor is blank or a comment."""
    bases: tuple[str, ...]
    """The bases of a class as they are written, if they are dotted names."""
    first_parameter: str | None
    """The name of a function's first parameter, if it can be given by position."""
    parent: Definition | None = field(repr=False)
    children: list[Definition] = field(default_factory=list, repr=False)

    @property
    def node(self) -> DefinitionNode:
        """Its node, which is another one when the tree was made again in the meantime."""
        tree = self.outline.file.tree
        assert tree is not None  # the definition was found in it
        return tree.definitions[self.number]

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef:
        """Its node, if it is a function."""
        node = self.node
        assert not isinstance(node, ast.ClassDef)
        return node

    @cached_property
    def header_end(self) -> int:
        """The offset after the header's colon."""
        node, places = self.node, self.outline.file.places
        inside = [*_header_nodes(node)]
        start = max((places.end(each) for each in inside), default=self.header)
        return colon(self.outline.file.text, start) + 1

    @property
    def heading(self) -> tuple[int, int]:
        """Where its keyword begins and its name ends."""
        # The search for the name must not match the keyword.
        after = self.header + len("class" if self.is_class else "def")
        return self.header, self.outline.file.text.index(self.name, after) + len(self.name)

    @property
    def is_local(self) -> bool:
        """Whether it is inside a function, at any depth."""
        return self.parent is not None and (not self.parent.is_class or self.parent.is_local)

    @property
    def text(self) -> str:
        """The definition's text, decorators included."""
        return self.outline.file.text[self.start : self.end]

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
    module: str | None
    """The module after ``from``, with its leading dots; None without ``from``."""
    items: tuple[ImportItem, ...]
    text: str = field(repr=False)
    is_always_run: bool
    """Whether it is a statement of the module itself, not of one inside of another one."""

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


class Outline:
    """What a text defines and imports; nothing if the running Python cannot parse it."""

    def __init__(self, file: Text) -> None:
        """Describe ``file``."""
        self.file = file
        self.definitions: list[Definition] = []
        self.imports: list[ImportStatement] = []
        self.assigned: dict[str, type[ast.expr]] = {}
        """The names that statements at the module's level assign, each with the kind of its first value."""
        tree = file.tree
        if tree is not None:
            self._scan(tree.module.body)
            for name, node in tree.assignments.items():
                assert node.value is not None  # only such are there
                self.assigned[name] = type(node.value)

    @cached_property
    def classes(self) -> dict[str, Definition]:
        """Classes by name, except those in functions; of several with one name, the last."""
        return {
            definition.name: definition
            for definition in self.definitions
            if definition.is_class and not definition.is_local
        }

    @cached_property
    def _imported(self) -> dict[str, ImportedName]:
        found: dict[str, ImportedName] = {}
        for imported in self.all_imported():
            found.setdefault(imported.bound, imported)
        return found

    def imported(self, name: str) -> ImportedName | None:
        """Return what is imported under a name; the first import of it counts."""
        return self._imported.get(name)

    def all_imported(self) -> Iterator[ImportedName]:
        """Yield everything that is imported."""
        for statement in self.imports:
            yield from statement.names

    @cached_property
    def functions(self) -> dict[str, Definition]:
        """Module-level functions by name."""
        return {d.name: d for d in self.definitions if not d.is_class and d.parent is None}

    def exports(self, name: str) -> bool | None:
        """Return whether a star import gives a name, if the module has it; None if that is not known."""
        if _EXPORTS not in self.file.text:
            return not name.startswith("_")
        return None if self._exported is None else name in self._exported

    def lists(self, name: str) -> bool:
        """Return whether ``__all__`` has a name."""
        return self._exported is not None and name in self._exported

    @cached_property
    def _exported(self) -> frozenset[str] | None:
        """The names that the text lists in ``__all__``; None if there is no such list, or it is computed."""
        tree = self.file.tree
        listed = None if tree is None else tree.assignments.get(_EXPORTS)
        if listed is None or self.file.text.count(_EXPORTS) != 1 or not isinstance(listed.value, _LISTS):
            return None
        texts = {text_of(each) for each in listed.value.elts}
        return None if None in texts else frozenset(filter(None, texts))

    def around(self, offset: int) -> list[Definition]:
        """Return the definitions around a place, the innermost last."""
        return [each for each in self.definitions if each.start <= offset < each.end]

    def own_names(self, offset: int) -> set[str | None]:
        """Return the first parameters of the methods around a place, by which they know their objects."""
        methods = (each for each in self.around(offset) if each.parent is not None and each.parent.is_class)
        return {each.first_parameter for each in methods}

    def _scan(self, body: Sequence[ast.stmt]) -> None:
        known: dict[DefinitionNode | None, Definition | None] = {None: None}
        own = set(body)
        for statement, around in statements_around(body):
            if isinstance(statement, DEFINITIONS):
                known[statement] = self._definition(statement, known[around])
            elif isinstance(statement, (ast.Import, ast.ImportFrom)):
                self.imports.append(self._import(statement, is_always_run=statement in own))

    def _definition(self, node: DefinitionNode, parent: Definition | None) -> Definition:
        file = self.file
        header = file.places.start(node)
        line = file.line_starts[node.lineno - 1]
        decorator = node.decorator_list[0] if node.decorator_list else None
        start = line
        if decorator is not None:
            # The ``@`` is before it, which may be in brackets on later rows.
            at = file.text.rindex("@", 0, file.places.start(decorator))
            start = file.line_starts[file.places.row(at) - 1]
        positional = [] if isinstance(node, ast.ClassDef) else [*node.args.posonlyargs, *node.args.args]
        definition = Definition(
            self,
            len(self.definitions),  # They are visited in the same order as those of the tree.
            isinstance(node, ast.ClassDef),
            node.name,
            file.text[line:header],
            start,
            header,
            _end(file, node),
            tuple(filter(None, map(base_name, node.bases))) if isinstance(node, ast.ClassDef) else (),
            positional[0].arg if positional else None,
            parent,
        )
        self.definitions.append(definition)
        if parent is not None:
            parent.children.append(definition)
        return definition

    def _import(self, node: ast.Import | ast.ImportFrom, *, is_always_run: bool) -> ImportStatement:
        file = self.file
        start, end = file.places.span(node)
        before = file.text[file.line_starts[node.lineno - 1] : start]
        items = tuple(ImportItem(*file.places.span(each), each.name, each.asname) for each in node.names)
        module = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else None
        indent = before[: len(before) - len(before.lstrip())]
        return ImportStatement(indent, start, end, module, items, file.text[start:end], is_always_run)


def base_name(base: ast.expr) -> str | None:
    """Return the dotted name of a base, generic or not; None for any other expression."""
    parts: list[str] = []
    node = base.value if isinstance(base, ast.Subscript) else base
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else None


def _header_nodes(node: DefinitionNode) -> Iterator[ast.AST]:
    """Yield the nodes of a header that may hold a colon."""
    if isinstance(node, ast.ClassDef):
        yield from node.bases
        yield from node.keywords
    else:
        args = node.args
        every = (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg)
        yield from (each for each in (*every, *args.defaults, *args.kw_defaults, node.returns) if each)
    yield from getattr(node, "type_params", ())


def colon(text: str, offset: int) -> int:
    """Return where the colon of a header stands, from behind all that may hold one, outside of comments."""
    while text[offset] != ":":
        found = _REST_OF_LINE.match(text, offset) if text[offset] == "#" else None
        offset = found.end() if found else offset + 1
    return offset


def _end(file: Text, node: DefinitionNode) -> int:
    """Return where the first line behind a definition begins that is neither blank nor a comment."""
    row = node.end_lineno or node.lineno
    while row < len(file.line_starts):
        start = file.line_starts[row]
        line = file.text[start : file.row_start(row + 2)].lstrip(" \t\f\r\n")
        if line and line[0] != "#":
            return start
        row += 1
    return len(file.text)
