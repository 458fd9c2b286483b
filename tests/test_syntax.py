"""What is told about a text that is not Python, and what is taken for Python."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

from gclint.code.file import SourceFile
from gclint.code.syntax import compile_problem, syntax_problem
from gclint.finding import Position


def _problem(text: str) -> tuple[str, Position | None] | None:
    problem = syntax_problem(SourceFile(Path("modeling_x.py"), text.encode()))
    return None if problem is None else (problem.message, problem.position)


def _message(text: str) -> str:
    problem = _problem(text)
    assert problem is not None
    return problem[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1",
        "\ufeffx = 1\n",
        "x = 1\r\ny = 2\r\n",
        "x = 1\ry = 2\r",
        "\x0cclass A:\n\tx = 1\n",
        "# -*- coding: utf-8 -*-\nx = 'é'\n",
        "x = '\\d'\n",  # warned about by Python
        "assert (x, 'always true')\n",
    ],
)
def test_python_is_accepted_without_a_warning(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _problem(text) is None


def test_syntax_error_has_pythons_words_and_its_place() -> None:
    assert _problem("x = 1\ny = é é\n") == ("syntax error: invalid syntax", Position(2, 7))


def test_unclosed_bracket_is_told_where_it_opens() -> None:
    assert _problem("x = 1\nf(a,\n") == ("syntax error: '(' was never closed", Position(2, 2))


@pytest.mark.parametrize(("before", "after"), [("x = 1\n", ""), ("f(\n", ")\n")])
def test_merge_conflict_is_called_so(before: str, after: str) -> None:
    found = _problem(f"{before}<<<<<<< HEAD\n2\n=======\n3\n>>>>>>> side\n{after}")
    message = "syntax error: a mark of a merge conflict; resolve the conflict first"
    assert found == (message, Position(2, 1))


@pytest.mark.parametrize("text", ["def f(a, a): pass\n", "nonlocal x\n"])
def test_what_parses_is_left_to_whoever_compiles_it(text: str) -> None:
    assert _problem(text) is None
    assert compile_problem(Path("modeling_x.py"), text) is not None


def test_nul_is_told_with_its_place() -> None:
    problem = _problem("x = 1\ny = \0\n")
    assert problem is not None
    assert problem[1] == Position(2, 5)
    assert "NUL" in problem[0]


@pytest.mark.parametrize("text", ["x = " + "(" * 5000 + ")" * 5000, "x = " + "-" * 100_000 + "1"])
def test_endless_nesting_is_told_and_kills_nothing(text: str) -> None:
    assert _message(text) == "the code is nested too deeply for Python to compile it"


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("def f[T](x: T) -> T: pass\n", (3, 12)),
        ("type X = int\n", (3, 12)),
        ('f"{x[\'a\'] + y["b"]}"\n', (3, 12)),
        ("try: pass\nexcept A, B: pass\n", (3, 14)),
    ],
)
def test_syntax_of_a_newer_python_is_called_so(text: str, since: tuple[int, int]) -> None:
    if sys.version_info >= since:
        assert _problem(text) is None
        return
    problem = _problem(f"x = 1\n{text}")
    assert problem is not None
    message, position = problem
    own = ".".join(map(str, sys.version_info[:2]))
    assert message.startswith(f"Python {own} cannot parse this: ")
    assert message.endswith("; it may be written for a newer Python: run gclint with that one")
    assert "syntax error" not in message
    assert position is not None
    assert position.row >= 2


def test_compiling_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_problem(Path("x.py"), "x = '\\d'\nassert (x, 'always true')\n") is None


def test_compiling_finds_more_than_syntax() -> None:
    text = "f(a=1, a=2)\n"
    assert _problem(text) is None
    problem = compile_problem(Path("x.py"), text)
    assert problem is not None
    assert problem.message == "syntax error: keyword argument repeated: a"
