"""Replacing a legacy branch by its plain side, and what only the checkpointed side has used."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from gclint.codemod.branch import LegacyBranch
from gclint.codemod.differences import split_side
from gclint.codemod.removal import names_used
from gclint.finding import Edit
from gclint.source.outline import Definition
from gclint.source.tokens import Kind, header_end, tokens
from gclint.source.walk import FUNCTIONS, walk


def replacement(branch: LegacyBranch, edits: Sequence[Edit]) -> Edit:
    """Return the edit that puts the plain side in the branch's place.

    Args:
        branch: a branch whose sides agree.
        edits: repairs of the calls in the plain side, made on the way.
    """
    file, places = branch.file, branch.file.places
    start, end = branch.span
    body_start, body_end = places.start(branch.plain_side[0]), places.end(branch.plain_side[-1])
    indent = file.text[file.line_starts[file.position(start).row - 1] : start]
    above, header = start, start
    if not branch.negated:
        above = places.end(branch.node.body[-1])
        header = next(token.start for token in tokens(file.text, above) if token.text == "else")
    plain = _plain_text(file.text, above, header, body_start, body_end, edits)
    lines = _dedent(plain, _line_indent(file.text, body_start), indent)
    _, guards = split_side(branch.checkpointed_side)
    if guards:
        # They are the side's first statements, so that all of it down to them can stay as it is.
        kept = file.text[start : places.end(guards[-1])]
        lines = f"{kept}{file.newline}{indent}{lines}"
    return Edit(file.path, start, end, lines)


def _plain_text(
    text: str, checkpointed_end: int, header: int, start: int, end: int, edits: Sequence[Edit]
) -> str:
    """Return the plain side's code with edits made, and with the comments that stand before it."""
    between = text[header_end(text, header) : start]
    above = text[checkpointed_end:header].splitlines()[1:]
    own = [line.strip() for line in (*above, *between.splitlines()) if line.strip().startswith("#")]
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.content + text[edit.end :]
        end += len(edit.content) - (edit.end - edit.start)
    indent = _line_indent(text, start)
    newline = "\r\n" if "\r\n" in between else "\n"
    return "".join(comment + newline + indent for comment in own) + text[start:end]


def _line_indent(text: str, offset: int) -> str:
    line = text[max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1 : offset]
    return line[: len(line) - len(line.lstrip())]


def _dedent(code: str, old: str, new: str) -> str:
    """Move lines from one indentation to another, strings over several lines left alone."""
    pieces: list[str] = []
    end = 0
    for token in tokens(code):
        if token.kind in (Kind.NEWLINE, Kind.JOIN) and code.startswith(old, token.end):
            pieces += [code[end : token.end], new]
            end = token.end + len(old)
    return "".join([*pieces, code[end:]])


def removed_names(branch: LegacyBranch) -> set[str]:
    """Return the names, dotted ones in full and in part, that the checkpointed side uses."""
    return set(names_used(_nodes(branch.checkpointed_side)))


def unused_helpers(branch: LegacyBranch) -> list[Definition]:
    """Return the functions of the same method that only the checkpointed side uses, and does not hold."""
    body, inside = branch.scope.body, set(_nodes(branch.checkpointed_side))
    used_inside = {node.id for node in inside if isinstance(node, ast.Name)}
    if body is None or used_inside.isdisjoint(body.functions):
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


def _nodes(statements: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    return (node for statement in statements for node in walk(statement))
