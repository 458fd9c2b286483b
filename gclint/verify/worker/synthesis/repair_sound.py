"""What sound has to be like and what has to come with it, told from an error."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import torch

from gclint.verify.worker.synthesis.failure import Failure
from gclint.verify.worker.synthesis.inputs import make_inputs
from gclint.verify.worker.synthesis.plan import Plan, Situation
from gclint.verify.worker.synthesis.repair_inputs import SWITCHES

_SAMPLES = 1000
"""What is longer than this is sound rather than a spectrogram of it."""


def _multiple(situation: Situation, failure: Failure) -> Plan | None:
    """Sound whose length has to be a multiple of something."""
    found = re.search(r"`(\w+)` length (\d+) is not a multiple of (\d+)", failure.message)
    value = make_inputs(situation).get(found[1]) if found else None
    if found is None or not isinstance(value, torch.Tensor):
        return None
    count = -(-int(found[2]) // int(found[3]))
    shape = (*value.shape[:-1], count * int(found[3]))
    return replace(situation.plan, shapes={**situation.plan.shapes, found[1]: shape})


def _one_channel(situation: Situation, failure: Failure) -> Plan | None:
    """Samples that have to come with their one channel."""
    shape = failure.numbers(r"expected input\[1, (\d+), (\d+)\] to have 1 channels")
    unindexed = "too many indices for tensor of dimension 2" in failure.message
    for name, value in make_inputs(situation).items() if shape or unindexed else ():
        if not isinstance(value, torch.Tensor) or value.dim() != 2:
            continue
        # What is padded at its start is longer than the input.
        if value.shape == shape or value.shape[-1] > _SAMPLES:
            return replace(situation.plan, ranks={**situation.plan.ranks, name: 3})
    return None


def _channels_last(situation: Situation, failure: Failure) -> Plan | None:
    """A spectrogram whose bands are taken for its frames by what remembers the end of it."""
    sizes = failure.numbers(
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 1"
    )
    for name, value in make_inputs(situation).items() if sizes and "padding" in failure.frames[0][1] else ():
        if isinstance(value, torch.Tensor) and value.dim() == 3 and value.shape[1:] == (sizes or ())[::-1]:
            return replace(situation.plan, transposed=situation.plan.transposed | {name})
    return None


def _one_each(situation: Situation, failure: Failure) -> Plan | None:
    """A text that has to have a token for each place of the sound, which is added to it."""
    sizes = failure.numbers(
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 1"
    )
    if sizes is None or sizes[0] != situation.plan.length or "audio" not in failure.frames[0][1]:
        return None
    return replace(situation.plan, length=sizes[1])


def _as_long(situation: Situation, failure: Failure) -> Plan | None:
    """A spectrogram that has to have as many frames as the codec makes of the samples."""
    counts = failure.numbers(r"must match except in dimension 1. Expected size (\d+) but got size (\d+)")
    inputs = make_inputs(situation)
    samples = [
        value for value in inputs.values() if isinstance(value, torch.Tensor) and value.shape[-1] > _SAMPLES
    ]
    for name, value in inputs.items() if counts is not None and samples else ():
        for before, after in (counts, counts[::-1]) if counts is not None else ():
            if isinstance(value, torch.Tensor) and value.dim() == 3 and before in value.shape:
                shape = tuple(after if each == before else each for each in value.shape)
                return replace(situation.plan, shapes={**situation.plan.shapes, name: shape})
    return None


def _unset(situation: Situation, failure: Failure) -> Plan | None:
    """A variable that is set only where an input is given."""
    if not isinstance(failure.error, UnboundLocalError):
        return None
    variables, _ = failure.frames[0]
    names = {name for name in situation.parameters if name in variables and variables[name] is None}
    names -= situation.plan.also | SWITCHES
    return replace(situation.plan, also=situation.plan.also | names) if names else None


REPAIRS: tuple[Any, ...] = (_multiple, _one_channel, _channels_last, _one_each, _as_long, _unset)
