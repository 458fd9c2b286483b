"""Checks whether a file is still Python after edits; only what they touch is parsed, unless that is wrong."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from operator import itemgetter

from gclint.codemod.edits import edited
from gclint.finding import Edit, Problem
from gclint.source.file import SourceFile
from gclint.source.syntax import compile_problem, syntax_problem


def damage(file: SourceFile, edits: Sequence[Edit]) -> Problem | None:
    """Return the syntax error that ``file`` would have after edits and does not have now."""
    try:
        for edit in edits:
            file.encode(edit.content)
    except UnicodeEncodeError:
        return Problem(file.path, f"the result contains a character that {file.encoding} cannot encode")
    pieces = _touched_pieces(file, edits)
    if pieces is not None and all(compile_problem(file.path, piece) is None for piece in pieces):
        return None
    text = edited(file.text, edits)
    problem = compile_problem(file.path, text)
    if problem is None or compile_problem(file.path, file.text) is None:
        return problem
    return syntax_problem(SourceFile(file.path, file.encode(text)))


def _touched_pieces(file: SourceFile, edits: Sequence[Edit]) -> list[str] | None:
    """Return the new text of the top-level definitions, and of the code between them, that edits change.

    Returns None if one edit changes several of them.
    """
    pieces = file.outline.pieces
    by_piece: defaultdict[int, list[Edit]] = defaultdict(list)
    for edit in edits:
        index = bisect_right(pieces, edit.start, key=itemgetter(0)) - 1
        if edit.end > pieces[index][1]:
            return None
        by_piece[index].append(edit)
    return [
        edited(
            file.text[slice(*pieces[index])],
            [Edit(e.path, e.start - pieces[index][0], e.end - pieces[index][0], e.content) for e in own],
        )
        for index, own in by_piece.items()
    ]
