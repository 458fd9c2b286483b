"""Taking functions out of a text, so that what is left stands as a formatter would have it.

A comment directly above a function is about it and goes along; one behind it is about what follows.
Of the blank lines on both sides the larger number stays, which separates what stood around the function
as both were separated from it; where a block ends, those that follow it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from gclint.finding import Edit
from gclint.network.evaluation.classes import nodes_of
from gclint.source.file import SourceFile
from gclint.source.outline import Definition
from gclint.source.tokens import Kind, tokens
from gclint.source.walk import dotted_name, text_of

_LINE_ENDS = (Kind.NEWLINE, Kind.JOIN)
_LAYOUT = (Kind.COMMENT, *_LINE_ENDS)


def remove_functions(file: SourceFile, functions: Iterable[Definition]) -> list[Edit]:
    """Return the edits that take functions away; a block that held nothing else gets a ``pass``."""
    return [_removal(file, run) for run in _runs(functions)]


def dotted_names(functions: Iterable[Definition]) -> set[str]:
    """Return the names in the code of functions, dotted ones in full and in part."""
    return {name for function in functions for name in names_used(nodes_of(function))}


def names_used(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names in nodes, also those of attributes, keywords and quoted types, and dotted ones."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield dotted_name(node) or node.attr
        for field in ("id", "attr", "arg", "name"):
            word = getattr(node, field, None)
            if isinstance(word, str):
                yield word
        text = text_of(node)
        if text is not None and text.replace(".", "_").isidentifier():
            yield text


def _runs(functions: Iterable[Definition]) -> Iterator[list[Definition]]:
    """Yield the functions that stand one right behind the other in the same block together."""
    run: list[Definition] = []
    for function in sorted(functions, key=lambda each: each.start):
        if run and (run[-1].end != function.start or run[-1].indent != function.indent):
            yield run
            run = []
        run.append(function)
    if run:
        yield run


def _removal(file: SourceFile, run: list[Definition]) -> Edit:
    first, last = run[0], run[-1]
    code_end = _code_end(file.text, last)
    begins_block, ends_block = _begins_block(file.text, first), _ends_block(file.text, last)
    if begins_block and ends_block:
        return Edit(file.path, first.start + len(first.indent), code_end, "pass")
    top, bottom = _first_row(file, first), file.position(code_end).row + 1
    above, below = top, bottom
    while above > 1 and not file.line(above - 1).strip():
        above -= 1
    while below <= len(file.line_starts) and not file.line(below).strip():
        below += 1
    if begins_block:
        return Edit(file.path, file.line_starts[top - 1], file.row_start(below), "")
    if below > len(file.line_starts):
        # Whether the file's last line is a whole one stays as it is.
        start = file.line_starts[above - 2] + len(file.line(above - 1))
        return Edit(file.path, start, code_end, "")
    if not ends_block and top - above >= below - bottom:
        above, bottom = top, below
    return Edit(file.path, file.row_start(above), file.row_start(bottom), "")


def _code_end(text: str, function: Definition) -> int:
    """Return the offset behind the function's last line of code, or comment that is indented further."""
    end = line_end = function.header
    for token in tokens(text, function.header, function.end):
        if token.kind in _LINE_ENDS:
            line_end = token.end
        elif (
            token.kind is not Kind.COMMENT or token.start - line_end > len(function.indent) or end > line_end
        ):
            end = token.end
    return end


def _begins_block(text: str, function: Definition) -> bool:
    """Return whether nothing but a header and comments stands before a function in its block."""
    start = 0 if function.parent is None else function.parent.header
    code = [token for token in tokens(text, start, function.start) if token.kind not in _LAYOUT]
    return bool(code) and code[-1].text == ":"


def _ends_block(text: str, function: Definition) -> bool:
    """Return whether no statement follows a function in its block."""
    following = next((token for token in tokens(text, function.end) if token.kind not in _LAYOUT), None)
    return following is None or following.start - function.end < len(function.indent)


def _first_row(file: SourceFile, function: Definition) -> int:
    """Return the row of the first of the comments right above a function, or of the function itself."""
    row = file.position(function.start).row
    while row > 1 and file.line(row - 1).startswith(f"{function.indent}#"):
        row -= 1
    return row
