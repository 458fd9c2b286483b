"""Where the arguments of a call stand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import dropwhile, pairwise, takewhile

from gclint.code.file import SourceFile
from gclint.code.walk import Arg, arguments, walk
from gclint.network.runsite import RunSite

_MARK = re.compile(r"\#[^\r\n]*|[^\s\\]")


def argument_place(site: RunSite, arg: Arg) -> tuple[int, int]:
    """Return where an argument that reaches a block stands in the file, with its name or stars.

    That of a wrapper function, or of an unpacked list or dict, is in another statement: then it is the whole
    call.
    """
    for call in (node for node in walk(site.call) if isinstance(node, ast.Call)):
        if arg in arguments(call):
            return argument_spans(site.scope.module.file, call)[arguments(call).index(arg)]
    return site.span(site.call)


def argument_spans(file: SourceFile, call: ast.Call) -> list[tuple[int, int]]:
    """Return where each argument of a call stands, with its keyword or stars, and with brackets around it."""
    places, closing = file.places, file.places.end(call) - 1
    values = [places.span(arg.value) for arg in arguments(call)]
    if values and values[0][1] > closing:
        # For Python, the call's brackets are those of a generator that is its only argument.
        values = [_generator(file, call.args[0], closing)]
    ends = [places.end(call.func), *(end for _, end in values)]
    starts = [*(start for start, _ in values), closing]
    gaps = [[*_marks(file.text, end, start)] for end, start in zip(ends, starts, strict=True)]
    found: list[tuple[int, int]] = []
    for (start, end), (before, behind) in zip(values, pairwise(gaps), strict=True):
        # Brackets of what stands before, the bracket or comma in front of the argument, and what is its own.
        own = [*dropwhile(lambda each: each[1] == ")", before)][1:]
        brackets = [*takewhile(lambda each: each[1] == ")", behind)]
        found.append((own[0][0] if own else start, brackets[-1][0] + 1 if brackets else end))
    return found


def _generator(file: SourceFile, node: ast.expr, closing: int) -> tuple[int, int]:
    """Return where a generator stands between the brackets of the call that it is the only argument of."""
    assert isinstance(node, ast.GeneratorExp)
    last = node.generators[-1]
    begin, end = file.places.start(node.elt), file.places.end((last.ifs or [last.iter])[-1])
    before = [*_marks(file.text, file.places.start(node) + 1, begin)]
    behind = [*_marks(file.text, end, closing)]
    return before[0][0] if before else begin, behind[-1][0] + 1 if behind else end


def _marks(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the characters between two expressions that are code: no comments, and no layout."""
    marks = ((match.start(), match[0]) for match in _MARK.finditer(text, start, end))
    return (each for each in marks if each[1][0] != "#")
