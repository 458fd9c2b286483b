"""Audio: its length, channels and frames, and what has to be as long."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.hints.failure import Failure, is_tensor
from gclint.verify.worker.synthesis.inputs.plan import Plan
from gclint.verify.worker.synthesis.inputs.situation import Situation

_SAMPLES = 1000
"""What is longer than this is samples rather than a spectrogram of them."""


def whole_multiple(situation: Situation, failure: Failure) -> Plan | None:
    """Samples whose number has to be a multiple of something."""
    found = re.search(r"`(\w+)` length (\d+) is not a multiple of (\d+)", failure.message)
    value: Any = failure.inputs.get(found[1]) if found else None
    if found is None or not is_tensor(value):
        return None
    count = -(-int(found[2]) // int(found[3]))
    shape = (*value.shape[:-1], count * int(found[3]))
    return situation.plan.with_shapes({found[1]: shape})


def one_channel(situation: Situation, failure: Failure) -> Plan | None:
    """Samples that have to come with their one channel."""
    shape = failure.numbers(r"expected input\[1, (\d+), (\d+)\] to have 1 channels")
    unindexed = "too many indices for tensor of dimension 2" in failure.message
    for name, value in failure.inputs.items() if shape or unindexed else ():
        if not is_tensor(value) or value.dim() != 2:
            continue
        # What is padded at its start is longer than the input.
        if value.shape == shape or value.shape[-1] > _SAMPLES:
            return situation.plan.with_rank(name, 3)
    return None


def channels_last(situation: Situation, failure: Failure) -> Plan | None:
    """A spectrogram whose bands are taken for its frames by what remembers the end of it."""
    sizes = failure.numbers(
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 1"
    )
    for name, value in failure.inputs.items() if sizes and "padding" in failure.line else ():
        if is_tensor(value) and value.dim() == 3 and value.shape[1:] == (sizes or ())[::-1]:
            return replace(situation.plan, transposed=situation.plan.transposed | {name})
    return None


def one_token_each(situation: Situation, failure: Failure) -> Plan | None:
    """A text that has to have a token for each place of the audio, which is added to it."""
    sizes = failure.numbers(
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 1"
    )
    if sizes is None or sizes[0] != situation.plan.length:
        return None
    line = failure.line
    if "audio" not in line or "input_ids" in line:
        # Several streams of tokens, each of which has an offset of its own.
        return None
    return replace(situation.plan, length=sizes[1])


def as_long_as_samples(situation: Situation, failure: Failure) -> Plan | None:
    """A spectrogram that has to have as many frames as the codec makes of the samples."""
    counts = failure.numbers(r"must match except in dimension 1. Expected size (\d+) but got size (\d+)")
    inputs = failure.inputs
    samples = [value for value in inputs.values() if is_tensor(value) and value.shape[-1] > _SAMPLES]
    for name, value in inputs.items() if counts is not None and samples else ():
        for before, after in (counts, counts[::-1]) if counts is not None else ():
            if is_tensor(value) and value.dim() == 3 and before in value.shape:
                shape = tuple(after if each == before else each for each in value.shape)
                return situation.plan.with_shapes({name: shape})
    return None


def stated_length(situation: Situation, failure: Failure) -> Plan | None:
    """A spectrogram that has to have the number of frames that the message says."""
    chunk = failure.numbers(r"to be a multiple of .{0,200}\((\d+)\), but got \d+")
    numbers = chunk or failure.numbers(r"mel input features to be of length (\d+)")
    if numbers:
        for name, value in failure.inputs.items():
            if "features" in name and is_tensor(value) and value.dim() == 3:
                shape = (*value.shape[:2], numbers[0])
                return situation.plan.with_shapes({name: shape})
    return None
