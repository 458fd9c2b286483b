"""Feeding a class as training does: with the optional inputs that it takes, and batches of two lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from gclint.verify.worker.synthesis.attempts import trial
from gclint.verify.worker.synthesis.inputs.forward import make_inputs
from gclint.verify.worker.synthesis.inputs.situation import Situation
from gclint.verify.worker.synthesis.inputs.training import LABELS, optional_inputs

_LONGER = (3, -3)
"""How many tokens another batch has more; a longer one first, as what is cut to size hides nothing then."""


def as_trained(situation: Situation, model: Any) -> tuple[Situation, tuple[str, ...]]:
    """Return the situation with the optional inputs that the class can be run with.

    Args:
        situation: one that the class has been run in.
        model: the model that ran.

    Returns:
        The situation, and the names of the optional inputs that made it fail.
    """
    bare = make_inputs(situation)
    # Which labels count depends on the masks.
    names = [name for name in optional_inputs(situation) if name == LABELS or _changes(situation, name, bare)]
    if names == [LABELS]:
        return situation, ()
    if not names:
        return situation, ()
    whole = _with(situation, names)
    if _runs(whole, model):
        return whole, ()
    kept: list[str] = []
    for name in names:
        if _runs(_with(situation, [*kept, name]), model):
            kept.append(name)
    return _with(situation, kept), tuple(name for name in names if name not in kept)


def with_other_length(situation: Situation, model: Any) -> Situation | None:
    """Return the situation with a text of another length, or None where that changes nothing or fails."""
    before = trial.shapes(make_inputs(situation))
    for more in _LONGER:
        other = replace(situation, plan=replace(situation.plan, length=situation.plan.length + more))
        try:
            if trial.shapes(make_inputs(other)) == before:
                return None
        except Exception:
            # What the first length was found with may fit no other.
            continue
        if _runs(other, model):
            return other
    return None


def _with(situation: Situation, names: Sequence[str]) -> Situation:
    return replace(situation, plan=replace(situation.plan, training=tuple(names)))


def _changes(situation: Situation, name: str, bare: dict[str, Any]) -> bool:
    """Tell whether there is anything to make an optional input for."""
    value = make_inputs(_with(situation, [name])).get(name)
    return value is not None and (bare.get(name) is None or not torch.equal(value, bare[name]))


def _runs(situation: Situation, model: Any) -> bool:
    was_finite = trial.has_finite_gradients(model)
    model.zero_grad(set_to_none=True)
    try:
        trial.step(model, make_inputs(situation))
    except Exception:
        # Whatever it raises: the class ran without.
        return False
    return trial.has_finite_gradients(model) or not was_finite
