"""Definitions and imports are all that Python's own parser finds, and have their places in the text."""

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

from gclint.code.file import SourceFile, UnreadableFile
from gclint.code.outline import Definition, ImportedName

_ANY_DEFINITION = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, order=True)
class _Defined:
    """A definition's lines, and what it is."""

    start: int
    header: int
    end: int
    is_class: bool
    name: str
    parent: str
    """The enclosing definition; empty at module level."""


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

    def is_indented(self, node: ast.stmt) -> bool:
        """Tell whether there is white space before the line of a statement."""
        return self._line(node.lineno)[:1] in (" ", "\t", "\f")

    def last_code(self, start: int, end: int) -> int:
        """Return the last row that holds more than a comment."""
        rows = range(self.row(start), self.row(end - 1) + 1)
        return max(
            row for row in rows if self._line(row).strip() and not self._line(row).strip().startswith("#")
        )

    def _line(self, row: int) -> str:
        end = self._starts[row] if row < len(self._starts) else len(self._text)
        return self._text[self._starts[row - 1] : end]


def _outlined(file: SourceFile) -> _Found:
    """Return what the outline says, once it has kept what it promises about offsets."""
    text, outline, lines = file.text, file.outline, _Lines(file.text)
    for each in outline.definitions:
        assert lines.starts_line(each.start)
        assert lines.starts_line(each.end)
        assert each.start <= each.header < each.header_end <= each.end <= len(text)
        assert text[each.header_end - 1] == ":"
        assert text[: each.header].endswith(each.indent)
        inside = [other for other in outline.definitions if each.start < other.start < each.end]
        assert all(each in _ancestors(other) for other in inside)
        assert each.node.name == each.name
    definitions = [
        _Defined(
            lines.row(each.start),
            lines.row(each.header),
            lines.last_code(each.header, each.end),
            each.is_class,
            each.name,
            "" if each.parent is None else each.parent.name,
        )
        for each in outline.definitions
    ]
    imports = [
        _Imported(lines.row(each.start), lines.row(each.end - 1), not each.indent, each.names)
        for each in outline.imports
    ]
    return _Found(tuple(sorted(definitions)), tuple(imports))


def _file(text: str) -> SourceFile:
    return SourceFile(Path("x.py"), text.encode())


def _ancestors(definition: Definition) -> Iterator[Definition]:
    while definition.parent is not None:
        definition = definition.parent
        yield definition


def _parsed(text: str) -> _Found:
    """Return what there is to find."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    lines = _Lines(text)
    definitions: list[_Defined] = []
    imports: list[_Imported] = []

    def visit(node: ast.AST, parent: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _ANY_DEFINITION):
                definitions.append(_defined(child, parent))
            elif isinstance(child, (ast.Import, ast.ImportFrom)):
                place = (child.lineno, child.end_lineno or 0, not lines.is_indented(child))
                imports.append(_Imported(*place, tuple(_names(child))))
            visit(child, child.name if isinstance(child, _ANY_DEFINITION) else parent)

    visit(tree, "")
    return _Found(tuple(sorted(definitions)), tuple(imports))


def _defined(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, parent: str) -> _Defined:
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


def _library_files() -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    left_out = {"test", "tests", "idlelib", "lib2to3", "site-packages", "turtledemo"}
    return sorted(
        path for path in library.rglob("*.py") if left_out.isdisjoint(path.relative_to(library).parts)
    )


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_standard_library_is_outlined_as_it_is_parsed(every: int) -> None:
    wrong = []
    files = _library_files()
    assert len(files) > 300
    for path in files[::every]:
        try:
            file = SourceFile(path, path.read_bytes())
            expected = _parsed(file.text)
        except (UnreadableFile, SyntaxError):
            continue
        found = _outlined(file)
        different = set(found.definitions) ^ set(expected.definitions)
        wrong += [f"{path}: {each}" for each in sorted(different)]
        if found.imports != expected.imports:
            wrong.append(f"{path}: {set(found.imports) ^ set(expected.imports)}")
    assert wrong == []


_ODD = """\
'''class A:'''
s = 'class A:  # no comment'
# class A:
s = \"\"\"
class A:
    def f(self): pass
\"\"\"
s = '''\\
import os
\"\"\"
from a import b
''' + 'x'
s = f\"{x!r:>{10}} 'class A:'\"
x = [
                    1,  # ]
                    classes, 2]
classes = defs = imports = 1
x = 1; import json
import os.path as p, json
import \\
                    os
from .... import a  # from x import y
from x import (  # )
                    a,
                    # b,
                    c as d,
)
from.x import(a)
\f
@a  # def f():
# class B:
@ a.b(
                    'x',  # )
)

class \\
  D1(B,
                    c={')': 1}  # of it:
):  # class A:
	# Indented by a tab, and the next one by spaces.
	async  def D2(self, a: 'x:y' = {1: 2}, *, b=lambda: 0): pass
	def D3(a=\"(#\",
    # )
                    b=1) -> x[1:2]: x = 1; y = 2  # def f():
if (x
    ):
  @a
  class D4:

    def D5(
    ): ''' :
x'''
\f
# Of D4, although it ends before it.
elif y:
    def D6(self, /):
        s = 'a\\
b'
        def D7(): pass
        from .. import b
else:
    for x in y:
        class D8: pass
try:
    pass
except X:
    while x:
        def D9(): pass
finally:
    with x as y:
        def D10(a=\"(#\"): import os
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["\n", "", "  # The end"])
def test_odd_text_is_outlined_as_it_is_parsed(newline: str, end: str) -> None:
    text = (_ODD.rstrip("\n") + end).replace("\n", newline)
    file = _file(text)
    assert _outlined(file) == _parsed(text)
    assert len(file.outline.definitions) == 10
    for each in file.outline.definitions:
        assert ast.parse(f"{text[each.header : each.header_end]} pass")
        # What stands behind it is neither blank nor a comment.
        assert re.match(r"[ \t\f]*[^\s#]|\Z", text[each.end :])


_LOOKED_UP = """\
from a import Twice
import b as Twice

class A:
    def f(self): pass
    class Inner: pass
    if x:
        @property
        def f(self): return 1
    def g(self):
        def f(): pass

if x:
    def h():
        class Local:
            class Deeper: pass
else:
    class A: x = 2
    def h(): return A
"""


def test_names_are_looked_up_as_python_binds_them() -> None:
    outline = _file(_LOOKED_UP).outline
    assert list(outline.classes) == ["A", "Inner"]
    assert outline.classes["A"].text == "    class A: x = 2\n"
    assert list(outline.functions) == ["h"]
    assert outline.functions["h"].text == "    def h(): return A\n"
    assert outline.imported("Twice") == ImportedName("Twice", "a", 0, "Twice")
    first = next(each for each in outline.definitions if each.name == "A")
    assert [each.name for each in first.methods()] == ["f", "g"]
    method = first.method("f")
    assert method is not None
    assert method.text == "        @property\n        def f(self): return 1\n"
    assert first.method("Inner") is None
    assert first.method("h") is None


def test_lone_carriage_returns_keep_their_offsets() -> None:
    text = "x = 1\rclass A:\r    def f(self):\r        pass\r\nimport a\r"
    outline = _file(text).outline
    method = outline.classes["A"].method("f")
    assert method is not None
    assert method.text == "    def f(self):\r        pass\r\n"
    assert outline.classes["A"].text == "class A:\r    def f(self):\r        pass\r\n"
    (statement,) = outline.imports
    assert text[statement.start : statement.end] == "import a"


def test_the_items_of_an_import_have_their_places() -> None:
    text = "x = 1\nfrom . . a.b import (  # c\n    d,\n    e  as \\\n f,  # g\n)\nimport h . i, j as k\n"
    first, second = _file(text).outline.imports
    assert (first.module, second.module) == ("..a.b", None)
    listed = [(text[item.start : item.end], item.path, item.alias) for item in first.items + second.items]
    assert listed == [
        ("d", "d", None),
        ("e  as \\\n f", "e", "f"),
        ("h . i", "h.i", None),
        ("j as k", "j", "k"),
    ]
