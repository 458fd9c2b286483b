"""Calls that are never recomputed: no gradients are recorded there, or the model is not training."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

import libcst as cst

from gclint.network.assignments import GRADIENT_SWITCHES
from gclint.network.evaluation.classes import ClassInfo
from gclint.network.evaluation.values import Instance
from gclint.network.evaluation.walk import dotted_name, walk
from gclint.network.holders import attribute_uses, single_attributes
from gclint.network.importers import given_importing
from gclint.network.learned import is_decorated_unrecorded
from gclint.network.lineage import place_at
from gclint.network.runsite import RunSite, calls_as_sites
from gclint.source.outline import Definition
from gclint.source.words import word_ends

_MODES = ("training", "is_grad_enabled")
_KEEPING = re.compile(
    r"\.(?:config|eval|load_state_dict|modules|named_parameters|parameters|requires_grad_|state_dict|train)\b"
)
"""Uses of a module that do not run it."""
_MAX_DEPTH = 3


class Untrained(Enum):
    """Why what a call runs is never recomputed."""

    UNRECORDED = "no gradients are recorded at this call, so there is nothing to recompute"
    EVALUATING = "the call is never reached in training, and nothing else is recomputed"


def untrained(site: RunSite, _depth: int = _MAX_DEPTH) -> Untrained | None:
    """Return why checkpointing never recomputes what a call runs; None if it may."""
    method = None if site.scope.body is None else site.scope.body.definition
    if not site.records or (method is not None and is_decorated_unrecorded(method)):
        return Untrained.UNRECORDED
    choices: list[tuple[cst.If | cst.IfExp, bool]] = [(arm.branch, arm.taken) for arm in site.arms]
    choices += _choices(site)
    is_left = any(_is_left_in_training(site, choice, holds=holds) for choice, holds in choices)
    if is_left or _is_behind_training(site):
        return Untrained.EVALUATING
    # What is frozen as a whole is run by its model without gradients.
    is_forward = method is not None and method.name == "forward"
    is_frozen = is_forward and _depth > 0 and _is_run_unrecorded(site.owner, _depth)
    return Untrained.UNRECORDED if is_frozen else None


def _choices(site: RunSite) -> Iterator[tuple[cst.IfExp, bool]]:
    """Yield the conditional expressions that the call is a side of, and whether their tests hold there."""
    for node in () if site.statement is None else walk(site.statement):
        if isinstance(node, cst.IfExp):
            for side, holds in ((node.body, True), (node.orelse, False)):
                if site.call in walk(side):
                    yield node, holds


def _is_left_in_training(site: RunSite, choice: cst.If | cst.IfExp, *, holds: bool) -> bool:
    """Return whether training takes the other side of a choice, which hands on nothing that the call runs."""
    other = choice.orelse if holds else choice.body
    name = dotted_name(site.receiver)
    handed = (node.value for node in (() if other is None else walk(other)) if isinstance(node, cst.Arg))
    is_handed = name is not None and any(dotted_name(value) == name for value in handed)
    return not is_handed and _excludes_training(site, choice.test, holds=holds)


def _is_run_unrecorded(owner: ClassInfo, depth: int) -> bool:
    """Return whether no gradients are recorded wherever the file uses an object of a class."""
    module, code = owner.module, owner.file.outline.code
    if owner.is_model or not any(word in code for word in GRADIENT_SWITCHES):
        return False
    attributes = list(single_attributes(module, (owner.name,)))
    # Any other mention beside its own definition may be of an object that is trained.
    if len(attributes) + 1 != sum(1 for _ in word_ends(code, owner.name, 0, len(code))):
        return False
    heirs = any(owner in info.mro for info in module.classes.values() if info is not owner)
    if heirs or not attributes:
        return False
    found = False
    for offset in attribute_uses(module, attributes):
        place = place_at(module, offset)
        # Not where the object is only made.
        method = None if place is None or place.method == "__init__" else place.definition
        is_kept = code.startswith("getattr(", offset) or _KEEPING.match(code, offset + 1) is not None
        if place is None or method is None or is_kept:
            continue
        unrecorded = _is_unrecorded_at(owner, place.info, method, offset, depth)
        if unrecorded is False:
            return False
        found = found or unrecorded is True
    # Last, since it looks at the whole project.
    return found and not given_importing(module.library.project, owner.file, owner.name)


def _is_unrecorded_at(
    owner: ClassInfo, info: ClassInfo, method: Definition, offset: int, depth: int
) -> bool | None:
    """Return whether no gradients are recorded at an attribute; None if it calls something else."""
    if info is owner:
        return False
    sites = list(calls_as_sites(info.scope(method), offset, (owner,)))
    for site in sites:
        values = site.scope.evaluate(site.call.func) if site.span(site.call.func)[1] == offset + 1 else ()
        if values and Instance(owner) not in values:
            return None
    around = (site for site in sites if site.span(site.call)[0] <= offset < site.span(site.call)[1])
    return any(untrained(site, depth - 1) is Untrained.UNRECORDED for site in around)


def _excludes_training(site: RunSite, test: cst.BaseExpression, *, holds: bool) -> bool:
    """Return whether the model cannot be training if a test is true, or if it is false."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _excludes_training(site, test.expression, holds=not holds)
    if isinstance(test, cst.BooleanOperation):
        sides = [_excludes_training(site, side, holds=holds) for side in (test.left, test.right)]
        return any(sides) if isinstance(test.operator, cst.And) is holds else all(sides)
    if isinstance(test, cst.Call):
        return not holds and (dotted_name(test.func) or "").rpartition(".")[2] == "is_grad_enabled"
    return not holds and dotted_name(test) == f"{site.scope.self_name}.training"


def _is_behind_training(site: RunSite) -> bool:
    """Return whether a statement before the call returns while the model is training."""
    if site.scope.body is None or site.scope.body.definition is None:
        return False
    start, _ = site.scope.range_of(site.fragment, site.call)
    return any(
        isinstance(node, cst.If)
        and node.orelse is None
        and piece.fragment is not None
        and site.scope.range_of(piece.fragment, node)[1] <= start
        and _leaves(node.body)
        and _excludes_training(site, node.test, holds=False)
        for piece in site.scope.body.pieces_naming(_MODES)
        for node in piece.nodes or ()
    )


def _leaves(suite: cst.BaseSuite) -> bool:
    """Return whether a suite always ends the function."""
    last = suite.body[-1] if suite.body else None
    smalls = last.body if isinstance(last, cst.SimpleStatementLine) else suite.body
    return bool(smalls) and isinstance(smalls[-1], (cst.Return, cst.Raise))
