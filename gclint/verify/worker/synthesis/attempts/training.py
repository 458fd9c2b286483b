"""Makes inputs as in training: the optional ones that a class takes, and batches of two lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from gclint.verify.worker.synthesis.attempts import trial
from gclint.verify.worker.synthesis.configurations.tree import descendants
from gclint.verify.worker.synthesis.inputs.forward import make_inputs
from gclint.verify.worker.synthesis.inputs.situation import Situation
from gclint.verify.worker.synthesis.inputs.training import LABELS, optional_inputs
from gclint.verify.worker.vocabulary import USE_CACHE

_LONGER = (3, -3)
"""How many more tokens the second batch has; a longer one first, since truncation cannot hide it."""


def as_trained(situation: Situation, model: Any) -> tuple[Situation, tuple[str, ...]]:
    """Return the situation with the optional inputs with which the class can be run.

    Args:
        situation: one in which the class has been run.
        model: the model that ran.

    Returns:
        The situation, and the names of the optional inputs that made it fail.
    """
    bare = make_inputs(situation)
    # The labels are always kept, since which of them count depends on the masks.
    names = [name for name in optional_inputs(situation) if name == LABELS or _changes(situation, name, bare)]
    if not set(names) - {LABELS}:
        return situation, ()
    whole = _with(situation, names)
    if _runs(whole, model):
        return whole, ()
    runs = _runs
    if not _runs(situation, model):
        # It needs its cache with any inputs.
        runs = partial(_runs, cached=True)
        if runs(whole, model):
            return whole, ()
    kept: list[str] = []
    for name in names:
        if runs(_with(situation, [*kept, name]), model):
            kept.append(name)
    return _with(situation, kept), tuple(name for name in names if name not in kept)


def with_other_length(situation: Situation, model: Any) -> Situation | None:
    """Return the situation with a text of another length, or None if that changes nothing or fails."""
    before = trial.shapes(make_inputs(situation))
    for more in _LONGER:
        other = replace(situation, plan=replace(situation.plan, length=situation.plan.length + more))
        try:
            if trial.shapes(make_inputs(other)) == before:
                return None
        except Exception:
            # The plan for the first length may not fit another one.
            continue
        if _runs(other, model) or (not _runs(situation, model) and _runs(other, model, cached=True)):
            return other
    return None


def _with(situation: Situation, names: Sequence[str]) -> Situation:
    return replace(situation, plan=replace(situation.plan, training=tuple(names)))


def _changes(situation: Situation, name: str, bare: dict[str, Any]) -> bool:
    """Return whether the optional input ``name`` can be made, and differs from the one in ``bare``."""
    value = make_inputs(_with(situation, [name])).get(name)
    return value is not None and (bare.get(name) is None or not torch.equal(value, bare[name]))


def _runs(situation: Situation, model: Any, *, cached: bool = False) -> bool:
    """Return whether a model can be run, without a cache as in training, or with its own."""
    was_finite = trial.has_finite_gradients(model)
    model.zero_grad(set_to_none=True)
    inputs = make_inputs(situation)
    if not cached and USE_CACHE in situation.parameters:
        inputs[USE_CACHE] = False
    try:
        with nullcontext() if cached else _uncached(model):
            trial.step(model, inputs)
    except Exception:
        # Whatever the error is, these inputs caused it: the class has run without them.
        return False
    return trial.has_finite_gradients(model) or not was_finite


@contextmanager
def _uncached(model: Any) -> Iterator[None]:
    """Disable the cache in all configurations of a model."""
    before = [
        (each, value)
        for each in descendants(model.config)
        if (value := getattr(each, USE_CACHE, None)) is not None
    ]
    for each, _ in before:
        setattr(each, USE_CACHE, False)
    try:
        yield
    finally:
        for each, value in before:
            setattr(each, USE_CACHE, value)
