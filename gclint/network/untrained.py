"""Calls that are never recomputed: no gradients are recorded there, or the model is not training."""

from __future__ import annotations

from enum import Enum

import libcst as cst

from gclint.network.evaluation.walk import dotted_name
from gclint.network.learned import is_decorated_unrecorded
from gclint.network.runsite import RunSite

_MODES = ("training", "is_grad_enabled")


class Untrained(Enum):
    """Why what a call runs is never recomputed."""

    UNRECORDED = "no gradients are recorded at this call, so there is nothing to recompute"
    EVALUATING = "the call is never reached in training, and nothing else is recomputed"


def untrained(site: RunSite) -> Untrained | None:
    """Return why checkpointing never recomputes what a call runs; None if it may."""
    method = None if site.scope.body is None else site.scope.body.definition
    if not site.records or (method is not None and is_decorated_unrecorded(method)):
        return Untrained.UNRECORDED
    if any(_excludes_training(site, arm.branch.test, holds=arm.taken) for arm in site.arms):
        return Untrained.EVALUATING
    return Untrained.EVALUATING if _is_behind_training(site) else None


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
