"""How a call or a header is written anew, whatever its strings, brackets and comments hold."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.walk import walk
from gclint.edit.edits import edited
from gclint.edit.layout import Listing, argument_list, parameter_list
from gclint.edit.places import argument_spans
from gclint.finding import Refusal


def _file(text: str) -> SourceFile:
    return SourceFile(Path("a.py"), text.encode())


def _call(file: SourceFile) -> ast.Call:
    assert file.tree is not None
    return next(node for node in walk(file.tree.module) if isinstance(node, ast.Call))


def _reversed(file: SourceFile, listing: Listing | Refusal) -> str:
    assert isinstance(listing, Listing)
    return edited(file.text, [listing.written(listing.items[::-1])])


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("a, b", "b, a"),
        ("a, b\n  ", "b, a"),
        ("a, '# b,'", "'# b,', a"),
        ("a, '#',", "'#', a"),
        ("a, (b , c)", "(b , c), a"),
        ("*a, **(b)", "**(b), *a"),
        ("a, # c\n        b", "\n        b,\n        a  # c\n  "),
        ("\n        a,\n        b  # c,\n  ", "\n        b,  # c,\n        a\n  "),
        ("\n    a,  # b\n    # c\n  ", "\n    a,  # b\n    # c\n  "),
        (
            "  # a\n    # b\n    c,\n    d\n    # e\n\n    # f\n",
            "  # a\n    d,\n    # b\n    c\n    # e\n    # f\n",
        ),
        ("\r    a,\r    b,\r  ", "\r    b,\r    a,\r  "),
        ("\r\n    a,\r\n    b,\r\n  ", "\r\n    b,\r\n    a,\r\n  "),
        ("a  # c\n    , b", "\n      b,\n      a,  # c\n  "),
        ("a, '''\n# b'''", "\n      '''\n# b''',\n      a,\n  "),
        ("é, '€😀'", "'€😀', é"),
        ("p for p in q", "p for p in q"),
        ("", ""),
    ],
)
def test_a_call_is_written_as_it_stands(inner: str, expected: str) -> None:
    prefix = "if 1:\n  x = (f)" if "\r" not in inner else "if 1:\r  x = (f)"
    if "\r\n" in inner:
        prefix = prefix.replace("\r", "\r\n")
    file = _file(f"{prefix}({inner})  # é\n")
    call = _call(file)
    assert _reversed(file, argument_list(file, call)) == f"{prefix}({expected})  # é\n"


def test_names_that_arguments_are_passed_by_are_no_part_of_them() -> None:
    file = _file("f(a = (1), b=[2])\n")
    listing = argument_list(file, _call(file))
    assert isinstance(listing, Listing)
    assert [item.code for item in listing.items] == ["(1)", "[2]"]


def test_what_is_too_long_gets_a_line_for_each() -> None:
    long = "a" * 115
    file = _file(f"f({long}, b)\n")
    assert _reversed(file, argument_list(file, _call(file))) == f"f(\n    b,\n    {long},\n)\n"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("def f(a, b: int = 1) -> x:", "def f(b: int = 1, a) -> x:"),
        ("async  def f( a , *, b ):", "async  def f(b, *, a):"),
        (
            "def f(\n    a,  # c\n    *b,\n    **d\n) -> (x):",
            "def f(\n    **d,\n    *b,\n    a  # c\n) -> (x):",
        ),
        ("def f(a=lambda: (1), b=')'):", "def f(b=')', a=lambda: (1)):"),
    ],
)
def test_a_header_is_written_as_it_stands(header: str, expected: str) -> None:
    file = _file(f"@c(1)\n{header} pass\n")
    assert _reversed(file, parameter_list(file, file.outline.definitions[0])) == f"@c(1)\n{expected} pass\n"


def test_what_only_python_can_read_is_refused() -> None:
    file = _file(f"x = f(a{' and a' * 5000})\n")
    assert isinstance(argument_list(file, _call(file)), Refusal)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("f(a, b=1, *c, **d)", ["a", "b=1", "*c", "**d"]),
        ("(f)((a), ( # )\n(b) ), k = ((c)) ,)", ["(a)", "( # )\n(b) )", "k = ((c))"]),
        ("f(\n  a  # (\n  , \\\n  b)", ["a", "b"]),
        ("f( (p) for p in q if (p) )", ["(p) for p in q if (p)"]),
        ("f((p for p in q))", ["(p for p in q)"]),
        ("f(')', (1, 2), (yield))", ["')'", "(1, 2)", "(yield)"]),
    ],
)
def test_an_argument_stands_with_its_brackets_and_name(call: str, expected: list[str]) -> None:
    file = _file(f"x = {call}\n")
    assert [file.text[slice(*span)] for span in argument_spans(file, _call(file))] == expected
