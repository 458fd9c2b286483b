"""Taking functions and legacy branches out of a text, and leaving what is left as a formatter would.

A comment directly above a function is about it and goes along; one behind it is about what follows.
Of the blank lines on both sides the larger number stays, which separates what stood around the function
as both were separated from it; where a block ends, those that follow it. Of a branch, the plain side stays,
with the comments above it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from gclint.code.file import SourceFile
from gclint.code.outline import Definition, colon
from gclint.code.tokens import TokenKind, tokens
from gclint.code.tree import blocks_of, statements_around
from gclint.code.walk import FUNCTIONS, dotted_name, text_of, walk
from gclint.edit.branch import LegacyBranch
from gclint.edit.differences import split_side
from gclint.edit.edits import edited
from gclint.finding import Edit
from gclint.network.evaluation.classes import nodes_of

# -- functions


def remove_functions(file: SourceFile, functions: Iterable[Definition]) -> list[Edit]:
    """Return the edits that take functions away; a block that held nothing else gets a ``pass``."""
    return [_removal(file, run) for run in _runs(functions)]


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
    first, last, rows = run[0], run[-1], len(file.line_starts)
    block, is_inner = _block(file, first.node)
    begins_block, ends_block = is_inner and block[0] is first.node, block[-1] is last.node
    end = _code_end(file, last)
    if begins_block and ends_block:
        return Edit(file.path, first.start + len(first.indent), end, "pass")
    top, bottom = file.position(first.start).row, file.position(end).row + 1
    while top > 1 and file.line(top - 1).startswith(f"{first.indent}#"):
        top -= 1
    above, below = top, bottom
    while above > 1 and not file.line(above - 1).strip():
        above -= 1
    while below <= rows and not file.line(below).strip():
        below += 1
    if begins_block:
        return Edit(file.path, file.row_start(top), file.row_start(below), "")
    if below > rows:
        # Whether the file's last line is a whole one stays as it is.
        start = file.row_start(above - 1) + len(file.line(above - 1))
        return Edit(file.path, start, end, "")
    if not ends_block and top - above >= below - bottom:
        above, bottom = top, below
    return Edit(file.path, file.row_start(above), file.row_start(bottom), "")


def _block(file: SourceFile, node: ast.stmt) -> tuple[list[ast.stmt], bool]:
    """Return the statements that one stands among, and whether they are in another one."""
    assert file.tree is not None  # the node is of it
    body = file.tree.module.body
    inner = (block for statement, _ in statements_around(body) for block in blocks_of(statement))
    block = next((each for each in (body, *inner) if any(part is node for part in each)), body)
    return block, block is not body


def _code_end(file: SourceFile, function: Definition) -> int:
    """Return the offset behind the function's last line of code, or comment that is indented further."""
    last = file.places.row(file.places.end(function.node))
    for row in range(last + 1, file.position(function.end).row):
        line = file.line(row)
        if line.strip() and len(line) - len(line.lstrip()) > len(function.indent):
            last = row
    return file.row_start(last) + len(file.line(last).rstrip())


# -- legacy branches


def replacement(branch: LegacyBranch, edits: Sequence[Edit]) -> Edit:
    """Return the edit that puts the plain side in the branch's place.

    Args:
        branch: a branch whose sides agree.
        edits: repairs of the calls in the plain side, made on the way.
    """
    file, places = branch.file, branch.file.places
    start, end = branch.span
    body_start, body_end = places.start(branch.plain_side[0]), places.end(branch.plain_side[-1])
    indent = _indent(file, start)
    behind = places.end(branch.node.test if branch.negated else branch.node.body[-1])
    header = colon(file.text, behind)
    above = [] if branch.negated else file.text[behind:header].splitlines()[1:]
    around = (*above, *file.text[header + 1 : body_start].splitlines())
    own = [line.strip() + file.newline for line in around if line.strip().startswith("#")]
    moved = [Edit(each.path, each.start - body_start, each.end - body_start, each.content) for each in edits]
    plain = edited(file.text[body_start:body_end], moved)
    lines = "".join(map(f"{{}}{indent}".format, own)) + _dedent(plain, _indent(file, body_start), indent)
    _, guards = split_side(branch.checkpointed_side)
    if guards:
        # They are the side's first statements, so that all of it down to them can stay as it is.
        kept = file.text[start : places.end(guards[-1])]
        lines = f"{kept}{file.newline}{indent}{lines}"
    return Edit(file.path, start, end, lines)


def _indent(file: SourceFile, offset: int) -> str:
    """Return the indentation of the line of a place."""
    line = file.line(file.position(offset).row)
    return line[: len(line) - len(line.lstrip())]


def _dedent(code: str, old: str, new: str) -> str:
    """Move lines from one indentation to another, strings over several lines left alone."""
    pieces: list[str] = []
    end = 0
    for token in tokens(code):
        if token.kind in (TokenKind.NEWLINE, TokenKind.JOIN) and code.startswith(old, token.end):
            pieces += [code[end : token.end], new]
            end = token.end + len(old)
    return "".join([*pieces, code[end:]])


# -- what only they use


def unused_helpers(branch: LegacyBranch) -> list[Definition]:
    """Return the functions of the same method that only the checkpointed side uses, and does not hold."""
    body, inside = branch.scope.body, set(_nodes(branch.checkpointed_side))
    used_inside = {node.id for node in inside if isinstance(node, ast.Name)}
    if used_inside.isdisjoint(body.functions):
        return []
    outside = [node for node in body.nodes if node not in inside]
    used = {node.id for node in outside if isinstance(node, ast.Name)}
    defined = Counter(node.name for node in outside if isinstance(node, FUNCTIONS))
    helpers = {
        nodes[-1]
        for name, nodes in body.functions.items()
        if name in used_inside - used and defined[name] == 1
    }
    return [each for each in branch.file.outline.definitions if each.node in helpers] if helpers else []


def removed_names(branch: LegacyBranch) -> set[str]:
    """Return the names, dotted ones in full and in part, that the checkpointed side uses."""
    return set(_names_used(_nodes(branch.checkpointed_side)))


def dotted_names(functions: Iterable[Definition]) -> set[str]:
    """Return the names in the code of functions, dotted ones in full and in part."""
    return {name for function in functions for name in _names_used(nodes_of(function))}


def _names_used(nodes: Iterable[ast.AST]) -> Iterator[str]:
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


def _nodes(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    return (node for statement in statements for node in walk(statement))
