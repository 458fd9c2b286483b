"""Audio: its length, channels and frames, and the inputs that must be as long."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.hints.failure import Failure, is_tensor
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

_SAMPLES = 1000
"""A tensor whose last dimension is longer than this holds samples, not a spectrogram."""
_MISMATCH = r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 1"


def whole_multiple(situation: Situation, failure: Failure) -> Plan | None:
    """Samples whose number must be a multiple of another number."""
    found = re.search(r"`(\w+)` length (\d+) is not a multiple of (\d+)", failure.message)
    value: Any = failure.inputs.get(found[1]) if found else None
    if found is None or not is_tensor(value):
        return None
    count = -(-int(found[2]) // int(found[3]))
    shape = (*value.shape[:-1], count * int(found[3]))
    return situation.plan.with_shapes({found[1]: shape})


def one_channel(situation: Situation, failure: Failure) -> Plan | None:
    """Samples that need a dimension for their only channel."""
    shape = failure.numbers(r"expected input\[1, (\d+), (\d+)\] to have 1 channels")
    unindexed = "too many indices for tensor of dimension 2" in failure.message
    for name, value in failure.inputs.items() if shape or unindexed else ():
        if not is_tensor(value) or value.dim() != 2:
            continue
        # Padding at the start makes it longer than the input.
        if value.shape == shape or value.shape[-1] > _SAMPLES:
            return situation.plan.with_rank(name, 3)
    return None


def channels_last(situation: Situation, failure: Failure) -> Plan | None:
    """A spectrogram whose bands and frames are swapped for the layer that keeps its end as padding."""
    sizes = failure.numbers(_MISMATCH)
    if sizes is None or "padding" not in failure.line:
        return None
    for name, value in failure.inputs.items():
        if is_tensor(value) and value.dim() == 3 and value.shape[1:] == sizes[::-1]:
            return replace(situation.plan, transposed=situation.plan.transposed | {name})
    return None


def one_token_each(situation: Situation, failure: Failure) -> Plan | None:
    """A text that needs a token for each position of the audio features, which are added to it."""
    sizes = failure.numbers(_MISMATCH)
    if sizes is None or sizes[0] != situation.length:
        return None
    line = failure.line
    if "audio" not in line or "input_ids" in line:
        # There are several streams of tokens, each with an offset of its own.
        return None
    return replace(situation.plan, length=sizes[1])


def as_long_as_samples(situation: Situation, failure: Failure) -> Plan | None:
    """A spectrogram that needs as many frames as the codec makes of the samples."""
    counts = failure.numbers(r"must match except in dimension 1. Expected size (\d+) but got size (\d+)")
    inputs = failure.inputs
    has_samples = any(is_tensor(value) and value.shape[-1] > _SAMPLES for value in inputs.values())
    if counts is None or not has_samples:
        return None
    for name, value in inputs.items():
        for before, after in (counts, counts[::-1]):
            if is_tensor(value) and value.dim() == 3 and before in value.shape:
                shape = tuple(after if each == before else each for each in value.shape)
                return situation.plan.with_shapes({name: shape})
    return None


def stated_length(situation: Situation, failure: Failure) -> Plan | None:
    """A spectrogram that needs the number of frames that the message states."""
    chunk = failure.numbers(r"to be a multiple of .{0,200}\((\d+)\), but got \d+")
    numbers = chunk or failure.numbers(r"mel input features to be of length (\d+)")
    if numbers:
        for name, value in failure.inputs.items():
            if "features" in name and is_tensor(value) and value.dim() == 3:
                shape = (*value.shape[:2], numbers[0])
                return situation.plan.with_shapes({name: shape})
    return None
