"""Checks the syntax of a text.

Only what does not parse is an error here. What CPython finds after parsing, such as a duplicate
parameter, is left to the compiler.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gclint.code.file import SourceFile
from gclint.code.remembered import remembered
from gclint.code.trainer_settings import UnreadableSettings, are_settings, settings_module
from gclint.code.tree import line_starts
from gclint.finding import Position, Problem

_TOO_NESTED = "the code is nested too deeply for Python to compile it"
_ERROR = "syntax error: "
_MARKS = tuple(7 * mark for mark in "<|=>")
"""What git begins the lines with that it puts around both sides of a conflict."""


@remembered
def syntax_problem(file: SourceFile) -> Problem | None:
    """Return why the running Python cannot parse ``file``, or None if it can.

    LibCST knows the newest syntax: what only the running Python rejects may be written for a newer one.
    """
    if are_settings(file.path):
        return None if file.parses else settings_problem(file.path, file.text)
    nul = file.text.find("\0")
    if nul != -1:
        # Python's own words differ from release to release, and name no place.
        message = "Python code cannot contain a NUL character; is this a binary file, or UTF-16?"
        return Problem(file.path, message, file.position(nul))
    if file.parses:
        return None
    # What is parsed now after all had less room before, further down the stack.
    problem = _problem(file.path, lambda: ast.parse(file.text)) or Problem(file.path, _TOO_NESTED)
    if problem.message == _TOO_NESTED or not _is_newer_syntax(file.text):
        return problem
    own = ".".join(map(str, sys.version_info[:2]))
    why = problem.message.removeprefix(_ERROR)
    newer = "it may be written for a newer Python: run gclint with that one"
    return replace(problem, message=f"Python {own} cannot parse this: {why}; {newer}")


def compile_problem(path: Path, text: str) -> Problem | None:
    """Return why the running Python does not compile ``text``, or None if it does.

    This also finds errors beyond the grammar, such as a repeated keyword argument.
    """
    if are_settings(path):
        return settings_problem(path, text)
    return _problem(path, lambda: compile(_compilable(text), str(path), "exec", dont_inherit=True))


def settings_problem(path: Path, text: str) -> Problem | None:
    """Return why settings in YAML cannot be read, or None if they can."""
    try:
        settings_module(text, line_starts(text))
    except UnreadableSettings as error:
        return Problem(path, error.message, error.position)
    return None


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
            is_mark = (error.text or "").startswith(_MARKS)
            what = "a mark of a merge conflict; resolve the conflict first" if is_mark else error.msg
            return Problem(path, f"{_ERROR}{what}", position)
        except (ValueError, OverflowError) as error:
            return Problem(path, f"{_ERROR}{error}")
    return None


def _is_newer_syntax(text: str) -> bool:
    """Return whether what the running Python rejects is valid in another release."""
    import libcst

    try:
        libcst.parse_module(text)
    except (libcst.ParserSyntaxError, ValueError):
        return False
    return True
