"""Syntax trees are Python's own, and their nodes have their places in any text."""

from __future__ import annotations

import ast
import gc
import warnings
import weakref
from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.lines import begins_in_string, logical_lines
from gclint.code.tree import Tree, Unparsable, parsed
from gclint.code.walk import listed


def _file(text: str) -> SourceFile:
    return SourceFile(Path("modeling_x.py"), text.encode())


# -- trees


@pytest.mark.parametrize("code", ["x = (\n", "  x = 1\n", "f() = 1 2\n", "x = 'a\n", "x = \0\n", "(" * 5000])
def test_what_is_not_python_is_rejected(code: str) -> None:
    with pytest.raises(Unparsable):
        parsed(code)
    file = _file(code)
    assert file.tree is None
    assert (file.outline.definitions, file.outline.imports) == ([], [])


@pytest.mark.parametrize("is_enabled", [True, False])
@pytest.mark.parametrize("code", ["x = 1\n", "x = (\n"])
def test_the_collector_is_left_as_it_was(code: str, is_enabled: bool) -> None:
    before = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        assert (_file(code).tree is None) is (code == "x = (\n")
        assert gc.isenabled() is is_enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_warnings_are_for_whoever_runs_the_code() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parsed("x = '\\d' if 1is 1else 2\n").body


def test_all_definitions_are_listed_in_the_order_of_the_text() -> None:
    text = """\
@f
class A:
    def a(self):
        class B: pass
if x:
    async def c(): pass
elif y:
    class D: pass
else:
    def e(): pass
try:
    def f(): pass
except X:
    def g(): pass
else:
    def h(): pass
finally:
    def i(): pass
for x in y:
    def j(): pass
else:
    with k:
        def k(): pass
match x:
    case 1:
        def l(): pass
"""
    assert "".join(each.name for each in Tree(parsed(text)).definitions) == "AaBcDefghijkl"


# -- places

_SPANS = (
    "f(a)",
    "f( a ,b )",
    "'é' + f('ö', b)",
    '"""é\n€""" + g(x)',
    "[\n    x,\n    'ü', y\n]",
)


@pytest.mark.parametrize("code", _SPANS)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "x = '€'; ", "\f"])
def test_nodes_have_the_places_that_python_gives_them(code: str, newline: str, before: str) -> None:
    text = f"# é\ny = 1\n{before}z = {code}\n".replace("\n", newline)
    file = _file(text)
    tree = file.tree
    assert tree is not None
    nodes = [each for each in ast.walk(tree.module) if isinstance(each, (ast.expr, ast.stmt))]
    assert len(nodes) > 5
    for node in nodes:
        start, end = file.places.span(node)
        assert file.source(node) == text[start:end]
        # What Python says of a text has LF only.
        segment = ast.get_source_segment(text.replace(newline, "\n"), node)
        assert file.source(node).replace(newline, "\n") == segment
        assert file.places.row(start) == node.lineno


def test_a_node_has_its_place_without_the_brackets_around_it() -> None:
    file = _file("x = ( (a ) . b )\n")
    tree = file.tree
    assert tree is not None
    assert (
        file.source(next(each for each in ast.walk(tree.module) if isinstance(each, ast.Attribute)))
        == "(a ) . b"
    )


def test_a_definition_has_its_own_node_when_the_tree_is_made_again() -> None:
    file = _file("def f():\n    def g(): pass\nclass f: pass\n")
    first, inner, last = file.outline.definitions
    for number in range(200):  # More than are kept.
        assert _file(f"x = {number}\n").tree is not None
    assert [type(each.node) for each in (first, inner, last)] == [
        ast.FunctionDef,
        ast.FunctionDef,
        ast.ClassDef,
    ]
    assert inner.node in first.function.body
    assert file.tree is not None
    assert last.node is file.tree.definitions[2]


# -- lines


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_logical_lines_are_python_s(newline: str) -> None:
    text = "é = (1,  # b\n\n2)\n# c\n@d\ndef e(): '''\n''' \\\n + 1; f  # g\n\n    # h".replace("\n", newline)
    file = _file(text)
    lines = [*logical_lines(file)]
    assert [text[line.start : line.end].replace(newline, "\n") for line in lines] == [
        "é = (1,  # b\n\n2)",
        "# c",
        "@d",
        "def e(): '''\n''' \\\n + 1; f  # g",
        "# h",
    ]
    assert [line.rows for line in lines] == [(1, 3), None, (5, 5), (6, 8), None]
    assert [line.is_decorator for line in lines] == [False, False, True, False, False]
    comments = [comment for line in lines for comment in line.comments]
    assert [(each.row, each.text, each.is_alone) for each in comments] == [
        (1, "# b", False),
        (4, "# c", True),
        (8, "# g", False),
        (10, "# h", True),
    ]
    assert all(text[each.start : each.end] == each.text for each in comments)


def test_what_stands_before_broken_code_has_its_lines() -> None:
    assert [line.rows for line in logical_lines(_file("x = 1\n# a\ny = (\n"))][:2] == [(1, 1), None]


@pytest.mark.parametrize(
    "text",
    [
        "x = '''\n@'''\n",
        "x = b'''\n@'''\n",
        "f(a, [f'''{x}\n@'''])\n",
        "def f():\n    '''a\n    @\n    '''\n",
        "@f('''\n@''')\ndef g(): pass\n",
        "class A:\n    x = 1\n    def f(self, a='''\n@'''): pass\n",
        "if x:\n    pass\nelse:\n    y = 1; z = '''\n@'''\n",
        "with f('''\n@''') as g: pass\n",
        "class A(B, c='''\n@'''): pass\n",
        "try: pass\nexcept X:\n    [a for a in '''\n@''']\n",
        "match x:\n    case 1:\n        y = '''\n@'''\n",
        "x = 'a\\\n@'\n",
    ],
)
def test_a_row_in_a_string_is_known(text: str) -> None:
    file = _file(text)
    assert file.tree is not None
    row = file.position(text.rindex("@")).row
    assert [each for each in range(len(file.line_starts) + 1) if begins_in_string(file, each)] == (
        [row, row + 1] if text.endswith("    '''\n") else [row]
    )


@pytest.mark.parametrize(
    "text", ["x = ''\n@f\ndef g(): pass\n", "'''\n'''\n@f\ndef g(): pass\n", "x = (\n# @\n1)\n"]
)
def test_a_row_behind_a_string_is_known(text: str) -> None:
    file = _file(text)
    assert file.tree is not None
    assert not begins_in_string(file, file.position(text.index("@")).row)


def test_nodes_are_freed_without_the_collector() -> None:
    tree = ast.parse("class Otter:\n    def forward(self, x):\n        def inner(y):\n            return y\n")
    gone = weakref.ref(tree)
    gc.disable()
    try:
        assert len(listed(tree)[1]) == 4
        del tree
        assert gone() is None
    finally:
        gc.enable()
