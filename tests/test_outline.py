"""Definitions and imports found by a scan are those that Python's own parser finds."""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gclint.source.file import SourceFile, UnreadableFile
from gclint.source.outline import Definition, ImportedName, Outline

_ANY_DEFINITION = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, order=True)
class _Defined:
    """A definition's lines, and what it is."""

    start: int
    header: int
    end: int
    is_class: bool
    name: str
    parent: str | None


@dataclass(frozen=True)
class _Imported:
    """An import statement's lines, and what it binds."""

    start: int
    end: int
    at_module_level: bool
    names: tuple[ImportedName, ...]


@dataclass(frozen=True)
class _Found:
    definitions: tuple[_Defined, ...]
    imports: tuple[_Imported, ...]


class _Lines:
    """A text's lines as Python counts them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]

    def row(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def starts_line(self, offset: int) -> bool:
        return offset in self._starts or offset == len(self._text)

    def opens(self, node: ast.stmt) -> bool:
        """Tell whether a statement is the first thing on its line."""
        line = self._text[self._starts[node.lineno - 1] :].encode()
        return not line[: node.col_offset].strip(b" \t\f")

    def last_code(self, start: int, end: int) -> int:
        """Return the last row that holds more than a comment."""
        rows = range(self.row(start), self.row(end - 1) + 1)
        return max(row for row in rows if self._line(row).strip() and not self._line(row).strip().startswith("#"))

    def _line(self, row: int) -> str:
        end = self._starts[row] if row < len(self._starts) else len(self._text)
        return self._text[self._starts[row - 1] : end]


def _outlined(text: str) -> _Found:
    """Return what the outline says, once it has kept what it promises about offsets."""
    outline, lines = Outline(text), _Lines(text)
    for each in outline.definitions:
        assert lines.starts_line(each.start)
        assert lines.starts_line(each.end)
        assert each.start <= each.header < each.end <= each.limit <= len(text)
        inside = [other for other in outline.definitions if each.start < other.start < each.limit]
        assert all(each in _ancestors(other) for other in inside)
    definitions = [
        _Defined(
            lines.row(each.start),
            lines.row(each.header),
            lines.last_code(each.header, each.end),
            each.is_class,
            each.name,
            None if each.parent is None else each.parent.name,
        )
        for each in outline.definitions
    ]
    imports = [
        _Imported(lines.row(each.start), lines.row(each.end - 1), not each.indent, each.names)
        for each in outline.imports
    ]
    return _Found(tuple(sorted(definitions)), tuple(imports))


def _ancestors(definition: Definition) -> Iterator[Definition]:
    while definition.parent is not None:
        definition = definition.parent
        yield definition


def _parsed(text: str) -> _Found:
    """Return what there is to find, leaving out what does not begin on a line of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    lines = _Lines(text)
    definitions: list[_Defined] = []
    imports: list[_Imported] = []

    def visit(node: ast.AST, parent: str | None) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _ANY_DEFINITION) and lines.opens(child):
                definitions.append(_defined(child, parent))
            elif isinstance(child, (ast.Import, ast.ImportFrom)) and lines.opens(child):
                names = tuple(_names(child))
                imports.append(
                    _Imported(child.lineno, child.end_lineno or 0, child.col_offset == 0, names)
                )
            visit(child, child.name if isinstance(child, _ANY_DEFINITION) else parent)

    visit(tree, None)
    return _Found(tuple(sorted(definitions)), tuple(imports))


def _defined(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, parent: str | None) -> _Defined:
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    assert node.end_lineno is not None
    return _Defined(first, node.lineno, node.end_lineno, isinstance(node, ast.ClassDef), node.name, parent)


def _names(node: ast.Import | ast.ImportFrom) -> Iterator[ImportedName]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            if alias.name != "*":
                yield ImportedName(alias.asname or alias.name, node.module or "", node.level, alias.name)
        else:
            bound = alias.asname or alias.name.partition(".")[0]
            yield ImportedName(bound, alias.name if alias.asname else bound, 0, None)


def _assert_found(text: str) -> None:
    found, expected = _outlined(text), _parsed(text)
    assert found.definitions == expected.definitions
    assert found.imports == expected.imports


def _library_files() -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    left_out = {"test", "tests", "idlelib", "lib2to3", "site-packages", "turtledemo"}
    return sorted(path for path in library.rglob("*.py") if left_out.isdisjoint(path.relative_to(library).parts))


def test_standard_library_is_outlined_as_it_is_parsed() -> None:
    wrong = []
    files = _library_files()
    assert len(files) > 300
    for path in files:
        try:
            text = SourceFile(path, path.read_bytes()).text
            expected = _parsed(text)
        except (UnreadableFile, SyntaxError):
            continue
        found = _outlined(text)
        different = set(found.definitions) ^ set(expected.definitions)
        wrong += [f"{path}: {each}" for each in sorted(different)]
        if found.imports != expected.imports:
            wrong.append(f"{path}: {set(found.imports) ^ set(expected.imports)}")
    assert wrong == []
