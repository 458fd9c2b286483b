"""Finds the statements that a repair changes, so that a run can show whether they are executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher


def changed_places(before: str, after: str) -> list[tuple[int, int]]:
    """Return the lines of the statements in functions of ``after`` that differ from ``before``.

    If something was removed, this is the statement after it. Code outside of functions runs whenever the
    file is imported, and the header of a class when the class is used.
    """
    try:
        tree = ast.parse(after)
    except (SyntaxError, ValueError):
        return []
    lines = _changed_lines(before, after)
    return sorted({span for owned, span in _watchable(tree) if not lines.isdisjoint(owned)})


def changed_parts(before: str, after: str) -> list[int]:
    """Return the lines of changed calls that need not be executed when their statement is.

    These are calls in an arm of a condition, in a later operand of ``and`` or ``or``, in a lambda,
    and in a comprehension.
    """
    try:
        known = {key for key, _ in _parts(ast.parse(before))}
        found = list(_parts(ast.parse(after)))
    except (SyntaxError, ValueError):
        return []
    calls = {
        part.lineno: part
        for key, part in found
        if key not in known and any(isinstance(each, ast.Call) for each in ast.walk(part))
    }
    return sorted(calls)


def _parts(tree: ast.AST) -> Iterator[tuple[tuple[str, ...], ast.expr]]:
    """Yield expressions whose execution depends on others, each with all that it and its condition say."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            yield ("if", ast.dump(node.test), ast.dump(node.body)), node.body
            yield ("else", ast.dump(node.test), ast.dump(node.orelse)), node.orelse
        elif isinstance(node, ast.BoolOp):
            values = [ast.dump(each) for each in node.values]
            for number, each in enumerate(node.values[1:], start=2):
                yield (type(node.op).__name__, *values[:number]), each
        elif isinstance(node, ast.Lambda):
            yield ("lambda", ast.dump(node)), node.body
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            yield ("for", ast.dump(node)), node


def _changed_lines(before: str, after: str) -> set[int]:
    """Return the numbers of the changed lines of ``after``, and of those before which some were removed."""
    earlier, later = (_code_lines(text) for text in (before, after))
    matcher = SequenceMatcher(
        None, [text for _, text in earlier], [text for _, text in later], autojunk=False
    )
    changed: set[int] = set()
    for kind, _, _, start, end in matcher.get_opcodes():
        if kind == "delete":
            changed.update(number for number, _ in later[start : start + 1])
        elif kind != "equal":
            changed.update(number for number, _ in later[start:end])
    return changed


def _code_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with code, and their numbers."""
    return [
        (number, line.rstrip())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


def _watchable(tree: ast.AST, *, inside: bool = False) -> Iterator[tuple[set[int], tuple[int, int]]]:
    """Yield lines that run whenever a statement in a function does, and where that statement is.

    For the header of a function, this is the first line of its body.
    """
    for node in ast.iter_child_nodes(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = next((each for each in node.body if not is_inert(each)), None)
            if first is not None:
                yield _own_lines(node), _span(first)
        elif inside and isinstance(node, ast.stmt) and not is_inert(node):
            yield _own_lines(node), _span(node)
        yield from _watchable(node, inside=inside or is_function)


def is_inert(node: ast.stmt) -> bool:
    """Return whether a statement does nothing: a string, or a declaration."""
    return isinstance(node, ast.Global | ast.Nonlocal | ast.Pass | ast.ClassDef) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _own_lines(statement: ast.stmt) -> set[int]:
    """Return the lines of a statement that are not those of statements inside of it."""
    own = set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    for node in ast.walk(statement):
        if node is not statement and isinstance(node, ast.stmt | ast.ExceptHandler):
            own -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return own


def _span(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.end_lineno or statement.lineno
