"""Checks the syntax of a text in half the time of ``ast.parse``.

Only what does not parse is an error here. What CPython finds after parsing, such as a duplicate
parameter, is left to the compiler.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gclint.finding import Position, Problem
from gclint.source.file import SourceFile, of_text

_UNKNOWN_FEATURE = "_gclint_stops_behind_the_parser"
_TOO_NESTED = "the code is nested too deeply for Python to compile it"


@of_text
def syntax_problem(file: SourceFile) -> Problem | None:
    """Return why ``file`` is not Python, or None if it is.

    The running Python is asked first. What it cannot parse may be written for a newer Python, and
    LibCST knows the newest syntax; what both reject is an error, reported in Python's own words.
    """
    nul = file.text.find("\0")
    if nul != -1:
        # Python's own words differ from release to release, and name no place.
        message = "Python code cannot contain a NUL character; is this a binary file, or UTF-16?"
        return Problem(file.path, message, file.position(nul))
    if _parses(file.text):
        return None
    problem = compile_problem(file.path, file.text)
    return None if problem is None or _is_newer_syntax(problem, file.text) else problem


def _parses(text: str) -> bool:
    """Return whether the running Python can parse ``text``, without building a tree.

    CPython checks future statements right after parsing. An unknown one makes it stop there, in two fifths
    of the time of ``ast.parse``, which turns the whole tree into objects.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(f"from __future__ import {_UNKNOWN_FEATURE}\n{text}", "", "exec", dont_inherit=True)
        except SyntaxError as error:
            return _UNKNOWN_FEATURE in error.msg
        except (RecursionError, MemoryError, ValueError, OverflowError):
            return False
    return True


def compile_problem(path: Path, text: str) -> Problem | None:
    """Return why the running Python does not compile ``text``, or None if it does.

    This also finds errors beyond the grammar, such as a repeated keyword argument.
    """
    return _problem(path, lambda: compile(_compilable(text), str(path), "exec", dont_inherit=True))


_FEW = 8


def _compilable(text: str) -> str | ast.Module:
    """Return code without ``finally``: Python compiles what is under it twice, and again what is in that.

    A few do not matter, and Python compiles a text that is nested more deeply than its tree may be.
    """
    return _WithoutFinally().visit(ast.parse(text)) if text.count("finally") > _FEW else text


class _WithoutFinally(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> Any:
        """Leave expressions as they are, which may be nested deeply, and contain no statements."""
        return node if isinstance(node, ast.expr) else super().visit(node)

    def visit_Try(self, node: ast.Try) -> list[ast.stmt]:
        """Put what is under ``finally`` behind the statement."""
        self.generic_visit(node)
        after, node.finalbody = node.finalbody, []
        return [*([node] if node.handlers else node.body), *after]

    visit_TryStar = visit_Try  # noqa: N815


def _problem(path: Path, attempt: Callable[[], object]) -> Problem | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            attempt()
        except (RecursionError, MemoryError):
            return Problem(path, _TOO_NESTED)
        except SyntaxError as error:
            if error.msg.startswith("too many nested"):
                return Problem(path, _TOO_NESTED)
            position = Position(error.lineno, max(error.offset or 1, 1)) if error.lineno else None
            return Problem(path, f"syntax error: {error.msg}", position)
        except (ValueError, OverflowError) as error:
            return Problem(path, f"syntax error: {error}")
    return None


def _is_newer_syntax(problem: Problem, text: str) -> bool:
    """Return whether what the running Python rejects is valid in another release."""
    # LibCST has no limit of its own: very deeply nested code would overflow the stack.
    if problem.message == _TOO_NESTED:
        return False
    import libcst

    try:
        libcst.parse_module(text)
    except (libcst.ParserSyntaxError, ValueError):
        return False
    return True
