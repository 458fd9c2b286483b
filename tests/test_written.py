"""LibCST's nodes for those of Python's tree, and their places in the file."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

from gclint.codemod.written import Written, written
from gclint.finding import Refusal
from gclint.source.file import SourceFile

_CODE = """\
class A(nn.Module):
    @(yes)
    @no(1)  # once
    async def f(self, x, *, b=(1, 2)) -> (int):
        y = f((a), (b, c), ((d, e)), (g for g in z), *h, **(i), j=(k), m=(\t(n) ))
        y = (f)( p for p in q ).r[1, s, 2:3]; z = - 1 if (y) else "a" f"b{y}" 'c'
        if x: y = not x and y and z; return
        elif 1 < x <= (3): elif_y = [*z, (yield)]
        else: (u), v = lambda w: (w), {**y, 1: {2.0, ...}}
        async with a as b:
            await b( # why
                x ,  # so
              # and
                ((y, ), )
            )
"""
_TEXTS = {
    "plain": _CODE,
    "CR LF": _CODE.replace("\n", "\r\n"),
    "CR": _CODE.replace("\n", "\r"),
    "tabs": _CODE.replace("    ", "\t"),
    "form feeds": _CODE.replace("        y", "\f        y").replace(", ", ",\f"),
    "characters of several bytes": _CODE.replace("f(", "ƒλ(").replace("'c'", "'€😀'").replace("why", "¿"),
    "no last line end": _CODE.removesuffix("\n"),
}


def _file(text: str) -> SourceFile:
    return SourceFile(Path("a.py"), text.encode())


def _nodes(file: SourceFile) -> list[ast.AST]:
    """Return the nodes that have a twin: none in a formatted string, whose places depend on the release."""
    assert file.tree is not None
    every = list(ast.walk(file.tree.module))
    formatted = {part for node in every if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    indices = {node.slice for node in every if isinstance(node, ast.Subscript)}
    return [
        node
        for node in every
        if isinstance(node, (ast.expr, ast.stmt, ast.keyword))
        and node not in formatted
        and not isinstance(node, ast.Slice)
        and not (isinstance(node, ast.Tuple) and node in indices)
    ]


def _unbracketed(code: str) -> str:
    """Return code without the brackets and layout around it."""
    return code.strip("() \t\f")


@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
def test_each_node_has_a_twin_at_its_place(text: str) -> None:
    file = _file(text)
    nodes = _nodes(file)
    assert len(nodes) > 90
    for node in nodes:
        found = written(file, node)
        assert isinstance(found, Written)
        twin = found.twin(node)
        start, end = found.span(twin)
        if isinstance(node, (ast.ClassDef, ast.AsyncFunctionDef)):
            assert start == file.places.start(node)
        elif isinstance(node, (ast.Tuple, ast.GeneratorExp)):
            # Python counts their brackets, LibCST does not.
            assert _unbracketed(file.text[start:end]) == _unbracketed(file.source(node))
        else:
            assert (start, end) == file.places.span(node)


def _written(text: str, code: str) -> tuple[Written, ast.expr]:
    """Return what is written around the expression that is ``code``, and the expression."""
    file = _file(text)
    node = next(each for each in _nodes(file) if isinstance(each, ast.expr) and file.source(each) == code)
    found = written(file, node)
    assert isinstance(found, Written)
    return found, node


def test_of_tuples_in_brackets_each_has_its_own_twin() -> None:
    text = "x = ((a, b), c), d\n"
    for code, outer in (("(a, b)", "(a, b)"), ("((a, b), c)", "((a, b), c)")):
        found, node = _written(text, code)
        assert found.source(found.twin(node)) == outer
    found, node = _written(text, "((a, b), c), d")
    assert len(cst.ensure_type(found.twin(node), cst.Tuple).elements) == 2


def test_what_a_twin_spans_has_no_brackets_around_it_and_what_an_argument_spans_has() -> None:
    text = "x = f(a=((b)), *(c))\n"
    found, node = _written(text, "f(a=((b)), *(c))")
    first, second = cst.ensure_type(found.twin(node), cst.Call).args
    assert [text[slice(*found.span(arg))] for arg in (first, second)] == ["a=((b))", "*(c)"]
    assert found.span(first.value) == (text.index("b"), text.index("b") + 1)
    assert found.source(first.value) == "((b))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if x:\n    y = 1\n    z = f(a)  # b\n", "    z = f(a)"),
        ("if x: y = 1; z = f(a); w\n", "z = f(a)"),
        ("if x:\n    y\nelif f(a):\n    z\n", "if x:\n    y\nelif f(a):\n    z"),
        ("@f(a)\n@c\nclass A:\n    b\n", "@f(a)\n@c\nclass A: pass"),
        ("class A:\n    def b(self, c=f(a)):\n        d\n", "    def b(self, c=f(a)): pass"),
        ("try:\n    b\nexcept C:\n    f(a)\n", "    f(a)"),
    ],
)
def test_no_more_than_a_statement_is_parsed(text: str, expected: str) -> None:
    found, _ = _written(text, "f(a)")
    assert found.module.code.removeprefix("if 1:\n") == expected


def test_what_only_python_can_read_is_refused() -> None:
    file = _file(f"x = f(a){' and a' * 5000}\n")
    call = next(node for node in _nodes(file) if isinstance(node, ast.Call))
    assert isinstance(written(file, call), Refusal)
