"""Finds blocks that a model deliberately leaves out of checkpointing: a condition selects them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache

from gclint.verify.worker.examination.block_calls import BlockCall
from gclint.verify.worker.examination.explaining.mentions import tree_of
from gclint.verify.worker.examination.phrases import line
from gclint.verify.worker.protocol import SourcePlace

_SELECTING = re.compile(
    r"config|idx|index|every|interval|freq|ratio|first|last|skip|(^|_)(num|number|layers?|blocks?|i|n)(_|$)",
    re.IGNORECASE,
)
"""Names that select blocks, rather than describing how the model is trained."""


def left_out(
    kinds: Mapping[str, type],
    recomputed: frozenset[str],
    left: Sequence[str],
    calls: Sequence[BlockCall],
    still_off: Sequence[str],
    set_to_off: Set[str],
) -> dict[str, str]:
    """Return the blocks that are left out deliberately, each with the evidence.

    Flags of ``still_off`` are disabled although checkpointing was enabled, and those of ``set_to_off`` were
    disabled meanwhile: one that was merely not enabled may have been forgotten.
    """
    siblings: dict[type, list[str]] = {}
    for name in recomputed:
        siblings.setdefault(kinds[name], []).append(name)
    places: dict[str, list[SourcePlace]] = {}
    for call in calls:
        places.setdefault(call.block, []).append(call.place)
    found = {}
    for name in left:
        others = siblings.get(kinds[name], ())
        if others and name in still_off and name in set_to_off and set_to_off.isdisjoint(others):
            # If others were disabled first and enabled later, this one may merely have been forgotten.
            found[name] = (
                "its own `gradient_checkpointing` is set to False, unlike that of other instances of its "
                "class"
            )
            continue
        condition = _deciding_condition(places, name, others)
        if condition is not None:
            found[name] = condition
    return found


def _deciding_condition(
    places: Mapping[str, Sequence[SourcePlace]], name: str, others: Sequence[str]
) -> str | None:
    """Return the first condition that decides whether a block or one of the others is called, or None."""
    return next(
        (
            each
            for other in others
            for mine in places.get(name, ())
            for yours in places.get(other, ())
            for each in _conditions(mine, yours)
        ),
        None,
    )


def _conditions(mine: SourcePlace, yours: SourcePlace) -> Iterator[str]:
    """Yield the conditions that decide which blocks each of two calls runs."""
    if mine.path != yours.path or mine == yours:
        return
    for branch in _branches(mine.path):
        in_body = _contains(branch.body, mine), _contains(branch.body, yours)
        if in_body[0] == in_body[1] or not _mentions_blocks(branch.test):
            continue
        other = mine if in_body[1] else yours
        if _contains(branch.orelse, other) or isinstance(branch.body[-1], ast.Return | ast.Continue):
            place = SourcePlace(mine.path, branch.lineno, branch.lineno)
            yield f"condition at {line(place)}: `{ast.unparse(branch.test)}`"


@cache
def _branches(path: str) -> tuple[ast.If, ...]:
    return tuple(each for each in ast.walk(tree_of(path)) if isinstance(each, ast.If))


def _contains(body: Sequence[ast.stmt], place: SourcePlace) -> bool:
    return any(each.lineno <= place.line <= (each.end_lineno or each.lineno) for each in body)


def _mentions_blocks(test: ast.expr) -> bool:
    for each in ast.walk(test):
        if isinstance(each, ast.Mod):
            return True
        name = each.attr if isinstance(each, ast.Attribute) else each.id if isinstance(each, ast.Name) else ""
        if name and _SELECTING.search(name):
            return True
    return False
