"""How near to a line of the model something is named: what the line reads is what matters most."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache

from gclint.verify.worker.examination.trace import source_lines
from gclint.verify.worker.protocol import Place

_CALLERS = 4
"""The most frames to read; further ones are those of the model around the block."""
_WORD = re.compile(r"[^\W\d]\w*")
_MANGLED = re.compile(r"^_[^_]\w*?(?=__)")
"""What Python puts before the name of an attribute that begins with two underscores."""

ON_LINE, IN_FUNCTION, ELSEWHERE = 1, 2, 3


def nearness(words: Sequence[str], stack: Sequence[Place]) -> int:
    """Return whether one of the words is on the innermost line, in the functions that run, or elsewhere."""
    wanted = {_MANGLED.sub("", each) for word in words for each in _WORD.findall(word)}
    if stack and not wanted.isdisjoint(_WORD.findall(code_at(stack[0]))):
        return ON_LINE
    if any(not wanted.isdisjoint(_words_of_function(each)) for each in stack[:_CALLERS]):
        return IN_FUNCTION
    return ELSEWHERE


def code_at(place: Place) -> str:
    """Return the text of a line without its indentation; empty if it cannot be read."""
    lines = source_lines(place.path)
    return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""


def _words_of_function(place: Place) -> frozenset[str]:
    lines = source_lines(place.path)
    around = [(first, last) for first, last in _functions(place.path) if first <= place.line <= last]
    first, last = max(around, default=(place.line, place.line))
    return frozenset(_WORD.findall("".join(lines[first - 1 : last])))


@cache
def _functions(path: str) -> tuple[tuple[int, int], ...]:
    return tuple(_spans(path))


def _spans(path: str) -> Iterator[tuple[int, int]]:
    try:
        tree = ast.parse("".join(source_lines(path)))
    except SyntaxError:  # What is at this path is not what was imported.
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            yield node.lineno, node.end_lineno
