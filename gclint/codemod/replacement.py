"""Replacing a legacy branch by its plain side, and what only the checkpointed side has used."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from gclint.codemod.branch import LegacyBranch, is_within
from gclint.codemod.differences import split_side
from gclint.finding import Edit
from gclint.network.evaluation.walk import dotted_name, walk
from gclint.source.outline import Definition
from gclint.source.tokens import Kind, header_end, tokens


def replacement(branch: LegacyBranch, edits: Sequence[Edit]) -> Edit:
    """Return the edit that puts the plain side in the branch's place.

    Args:
        branch: a branch whose sides agree.
        edits: repairs of the calls in the plain side, made on the way.
    """
    file, fragment = branch.fragment.file, branch.fragment
    start, end = branch.span
    body_start, body_end = fragment.span(branch.plain_side)
    indent = file.text[file.line_starts[file.position(start).row - 1] : start]
    above, header = start, start
    if not branch.negated:
        above, header = fragment.span(branch.node.body)[1], fragment.span(branch.orelse)[0]
    plain = _plain_text(file.text, above, header, body_start, body_end, edits)
    lines = _dedent(plain, _line_indent(file.text, body_start), indent)
    _, guards = split_side(branch.checkpointed_side)
    if guards:
        # They are the side's first statements, so that all of it down to them can stay as it is.
        kept = file.text[start : fragment.span(guards[-1])[1]]
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
    found: set[str] = set()
    for node in walk(branch.checkpointed_side):
        if isinstance(node, cst.Name):
            found.add(node.value)
        elif isinstance(node, cst.Attribute):
            found.add(dotted_name(node) or "")
    return found


def unused_helpers(branch: LegacyBranch) -> list[Definition]:
    """Return the functions of the same method that only the checkpointed side uses, and does not hold."""
    used_inside = {node.value for node in walk(branch.checkpointed_side) if isinstance(node, cst.Name)}
    pieces = [] if branch.scope.body is None else branch.scope.body.pieces()
    helpers = [
        (name, node, piece.fragment)
        for piece in pieces
        for name, node in piece.functions.items()
        if name in used_inside and piece.fragment is not None
    ]
    if not helpers:
        return []  # As nearly always: places take their time.
    file = branch.fragment.file
    start, end = branch.fragment.span(branch.checkpointed_side)
    used_elsewhere = [
        node.value
        for piece in pieces
        for root in piece.nodes or ()
        for node in walk(root)
        if isinstance(node, cst.Name) and not is_within(piece.fragment, node, start, end)
    ]
    by_start = {definition.start: definition for definition in file.outline.definitions}
    found: list[Definition] = []
    for name, node, fragment in helpers:
        first, _ = fragment.span(node)
        definition = by_start.get(file.line_starts[file.position(first).row - 1])
        # Its own definition names it once.
        if definition is not None and used_elsewhere.count(name) == 1 and not start <= first < end:
            found.append(definition)
    return found
