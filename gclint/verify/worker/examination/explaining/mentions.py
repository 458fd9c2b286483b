"""How near to a line of the model something is named: what the line reads is what matters most."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache

from gclint.verify.worker.branches import FUNCTIONS
from gclint.verify.worker.examination.block_calls import source_lines
from gclint.verify.worker.protocol import SourcePlace

_CALLERS = 4
"""The most frames to read; further ones are those of the model around the block."""
_DEEPEST = 2
"""How far to follow calls from these."""
_WORD = re.compile(r"[^\W\d]\w*")
_MANGLED = re.compile(r"^_[^_]\w*?(?=__)")
"""What Python puts before the name of an attribute that begins with two underscores."""

_BROAD = ("Exception", "BaseException", "RuntimeError")
"""The exceptions as which one of torch's own can be caught."""

ON_LINE, IN_FUNCTION, IN_CALLED, ELSEWHERE = 1, 2, 3, 4


def nearness(words: Sequence[str], stack: Sequence[SourcePlace], path: str = "") -> int:
    """Return whether a word is read on the innermost line, in what runs, in what that calls, or elsewhere.

    The functions that are called are looked for in the files of the lines, and in a further one.
    """
    wanted = {_MANGLED.sub("", each) for word in words for each in _WORD.findall(word)}
    if stack and not wanted.isdisjoint(_read(stack[0].path, stack[0].line, stack[0].line)):
        return ON_LINE
    running = [_read(each.path, *_around(each)) for each in stack[:_CALLERS]]
    named = frozenset[str]().union(*running)
    if not wanted.isdisjoint(named):
        return IN_FUNCTION
    paths = {path, *(each.path for each in stack[:_CALLERS])}
    for _ in range(_DEEPEST):
        called = [
            _read(each, first, last) for each in paths for first, last, name in _spans(each) if name in named
        ]
        named = named.union(*called)
    return ELSEWHERE if wanted.isdisjoint(named) else IN_CALLED


def code_at(place: SourcePlace) -> str:
    """Return the text of a line without its indentation; empty if it cannot be read."""
    lines = source_lines(place.path)
    return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""


def called_at(place: SourcePlace) -> frozenset[str]:
    """Return the names of the functions that are called on some lines."""
    called = (
        each.func
        for each in ast.walk(tree_of(place.path))
        if isinstance(each, ast.Call) and place.line <= each.lineno <= place.end_line
    )
    return frozenset(str(getattr(each, "attr", getattr(each, "id", ""))) for each in called)


def handler_of(place: SourcePlace) -> SourcePlace | None:
    """Return the innermost handler of any exception around a line."""
    handlers = [
        handler.lineno
        for node in ast.walk(tree_of(place.path))
        if isinstance(node, ast.Try) and node.body[0].lineno <= place.line <= (node.body[-1].end_lineno or 0)
        for handler in node.handlers
        if handler.type is None or ast.unparse(handler.type) in _BROAD
    ]
    return SourcePlace(place.path, max(handlers), max(handlers)) if handlers else None


def condition_of(place: SourcePlace) -> str:
    """Return the innermost condition on which it depends whether a line is reached, or nothing."""
    nodes = list(ast.walk(tree_of(place.path)))
    around = [
        (part[0].lineno, ast.unparse(node.test))
        for node in nodes
        if isinstance(node, ast.If)
        for part in (node.body, node.orelse)
        if part and part[0].lineno <= place.line <= (part[-1].end_lineno or 0)
    ]
    condition = max(around, default=(0, ""))[1]
    computed = [
        (node.lineno, ast.unparse(node.value))
        for node in nodes
        if isinstance(node, ast.Assign) and node.lineno < place.line
        if [ast.unparse(each) for each in node.targets] == [condition]
    ]
    return max(computed, default=(0, condition))[1]


def _around(place: SourcePlace) -> tuple[int, int]:
    """Return the first and last line of the function around a line."""
    around = [(first, last) for first, last, _ in _spans(place.path) if first <= place.line <= last]
    return max(around, default=(place.line, place.line))


@cache
def _read(path: str, first: int, last: int) -> frozenset[str]:
    """Return the names, attributes and texts that lines read, but for what they only write to."""
    return frozenset(word for line, word in _words(path) if first <= line <= last)


@cache
def tree_of(path: str) -> ast.Module:
    """Return the tree of a file of the model, as it was imported."""
    try:
        return ast.parse("".join(source_lines(path)))
    except SyntaxError:  # What is at this path is not what was imported.
        return ast.Module([], [])


@cache
def _spans(path: str) -> tuple[tuple[int, int, str], ...]:
    """Return the first and last line of each function, with its name."""
    functions = [each for each in ast.walk(tree_of(path)) if isinstance(each, FUNCTIONS)]
    return tuple((each.lineno, each.end_lineno or each.lineno, each.name) for each in functions)


@cache
def _words(path: str) -> tuple[tuple[int, str], ...]:
    tree = tree_of(path)
    written = {id(each) for node in ast.walk(tree) for each in _written(node)}
    return tuple(word for node in ast.walk(tree) if id(node) not in written for word in _named(node))


def _written(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is only written to, such as ``kept.log`` in ``kept.log.append(x)``."""
    held: ast.AST | None = None
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        held = node
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        held = node.value.func.value if isinstance(node.value.func, ast.Attribute) else None
    while held is not None:
        yield held
        held = held.value if isinstance(held, ast.Attribute | ast.Subscript) else None


def _named(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Name):
        yield node.lineno, node.id
    elif isinstance(node, ast.Attribute):
        yield node.end_lineno or node.lineno, node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from ((node.lineno, word) for word in _WORD.findall(node.value))
