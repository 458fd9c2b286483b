"""Images and audio that suit a model: their size, patches and stages, channels, frames and length."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.configurations.fields import Unit, kind_of
from gclint.verify.worker.synthesis.configurations.tree import fields_of
from gclint.verify.worker.synthesis.hints.failure import ForwardError, is_tensor
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

_LARGEST = 256
"""The side of the largest image, in pixels."""
_SAMPLES = 1000
"""A tensor whose last dimension is longer than this holds samples, not a spectrogram."""


def fewer_tokens(situation: Situation, failure: ForwardError) -> Plan | None:
    """A tower that makes fewer tokens of a small image than the configuration says."""
    sizes = failure.numbers(r"shape '\[(\d+), (\d+), (\d+)\]' is invalid for input of size (\d+)")
    if sizes is None or 0 in sizes or sizes[3] % (sizes[0] * sizes[1]):
        return None
    names = {
        name
        for part in situation.parts
        for name, value in fields_of(part).items()
        if isinstance(name, str) and kind_of(name) is Unit.IMAGE_TOKENS and value == sizes[2]
    }
    count = sizes[3] // (sizes[0] * sizes[1])
    return situation.plan.with_values({("=", name): count for name in names}) if names else None


def larger_for_padding(situation: Situation, failure: ForwardError) -> Plan | None:
    """Images so small that the last stage is smaller than its reflection padding."""
    if "Padding size should be less than the corresponding input dimension" not in failure.message:
        return None
    return _twice(situation)


def larger_patches(situation: Situation, failure: ForwardError) -> Plan | None:
    """A neck that upsamples patches by a fixed factor, to the sizes of a pyramid made of the pixels."""
    sides = failure.numbers(r"must match except in dimension 1. Expected size (\d+) but got size (\d+)")
    patch = situation.get("patch_size")
    if sides is None or not isinstance(patch, int) or 2 * min(sides) != max(sides):
        return None
    sizes = situation.plan.sizes
    return replace(situation.plan, sizes=replace(sizes, patch=2 * sizes.patch)) if patch < 16 else None


def patch_grid(situation: Situation, failure: ForwardError) -> Plan | None:
    """A field that says how many patches there are along the side of an image."""
    counts = failure.numbers(r"\(batch_size, (\d+)\).{0,200}but got shape.{0,100}\[\d+, (\d+)\]")
    if counts is None or situation.get("num_patches") != math.isqrt(counts[0]):
        return None
    return situation.plan.with_values({("=", "num_patches"): math.isqrt(counts[1])})


def all_stages(situation: Situation, failure: ForwardError) -> Plan | None:
    """A neck that joins all stages of its backbone, which returns only the last one."""
    channels = failure.numbers(r"expected input\[.{0,100}\] to have (\d+) channels, but got (\d+) channels")
    names = situation.get("stage_names")
    if channels is None or not isinstance(names, list) or channels[0] != channels[1] * (len(names) - 1):
        return None
    return _all_stages(situation, names)


def every_stage(situation: Situation, failure: ForwardError) -> Plan | None:
    """A head that reads more stages than its backbone returns."""
    names, given = situation.get("stage_names"), situation.get("_out_indices")
    if not isinstance(failure.error, IndexError) or "list index out of range" not in failure.message:
        return None
    if not isinstance(names, list) or not isinstance(given, list) or len(given) >= len(names) - 1:
        return None
    return _all_stages(situation, names)


def _all_stages(situation: Situation, names: list[str]) -> Plan:
    return situation.plan.with_values(
        {("=", "_out_indices"): list(range(1, len(names))), ("=", "_out_features"): names[1:]}
    )


def stated_size(situation: Situation, failure: ForwardError) -> Plan | None:
    """Images, or spectrograms used as images, of the size that the message states."""
    pattern = r"[Ii]nput (image|audio) size \((\d+)\*(\d+)\) doesn't match model \((\d+)\*(\d+)\)"
    found = re.search(pattern, failure.message)
    if found is None:
        return None
    numbers = [int(each) for each in found.groups()[1:]]
    words = ("pixel", "mask") if found[1] == "image" else ("audio",)
    shapes = {}
    for name, value in failure.inputs.items():
        if any(word in name for word in words) and is_tensor(value) and value.dim() == 4:
            # Some models concatenate two images first, so only the ratio counts.
            height = value.shape[-2] * numbers[2] // numbers[0]
            shapes[name] = (*value.shape[:-2], height, value.shape[-1] * numbers[3] // numbers[1])
    return situation.plan.with_shapes(shapes)


def larger_for_pyramid(situation: Situation, failure: ForwardError) -> Plan | None:
    """Images that a pyramid shrinks to nothing."""
    if not re.search(
        "input with spatial size|output size is too small|be greater than actual input size"
        "|reshape tensor of 0 elements",
        failure.message,
        re.IGNORECASE,
    ):
        return None
    sizes = situation.plan.sizes
    if 2 * sizes.image > _LARGEST:
        return None
    return replace(situation.plan, sizes=replace(sizes, image=2 * sizes.image))


def larger_for_crops(situation: Situation, failure: ForwardError) -> Plan | None:
    """Crops that are larger than the feature map that they are cut from."""
    found = failure.numbers(r"index (\d+) is out of bounds for dimension \d+ with size (\d+)")
    if found is None or situation.model_class.main_input_name != "pixel_values":
        return None
    return _twice(situation)


def _twice(situation: Situation) -> Plan | None:
    """Return the plan for images twice as large, or None if they would be too large."""
    sizes = situation.plan.sizes
    if 2 * sizes.image > _LARGEST:
        return None
    # Shapes that were learnt from errors are those of the smaller images.
    shapes = {name: shape for name, shape in situation.plan.shapes.items() if "pixel" not in name}
    return replace(situation.plan, shapes=shapes, sizes=replace(sizes, image=2 * sizes.image))


def whole_multiple(situation: Situation, failure: ForwardError) -> Plan | None:
    """Samples whose number must be a multiple of another number."""
    found = re.search(r"`(\w+)` length (\d+) is not a multiple of (\d+)", failure.message)
    value: Any = failure.inputs.get(found[1]) if found else None
    if found is None or not is_tensor(value):
        return None
    count = -(-int(found[2]) // int(found[3]))
    shape = (*value.shape[:-1], count * int(found[3]))
    return situation.plan.with_shapes({found[1]: shape})


def one_channel(situation: Situation, failure: ForwardError) -> Plan | None:
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


def channels_last(situation: Situation, failure: ForwardError) -> Plan | None:
    """A spectrogram whose bands and frames are swapped for the layer that keeps its end as padding."""
    sizes = failure.mismatch(1)
    if sizes is None or "padding" not in failure.line:
        return None
    for name, value in failure.inputs.items():
        if is_tensor(value) and value.dim() == 3 and value.shape[1:] == sizes[::-1]:
            return replace(situation.plan, transposed=situation.plan.transposed | {name})
    return None


def one_token_each(situation: Situation, failure: ForwardError) -> Plan | None:
    """A text that needs a token for each position of the audio features, which are added to it."""
    sizes = failure.mismatch(1)
    if sizes is None or sizes[0] != situation.length:
        return None
    line = failure.line
    if "audio" not in line or "input_ids" in line:
        # There are several streams of tokens, each with an offset of its own.
        return None
    return replace(situation.plan, length=sizes[1])


def as_long_as_samples(situation: Situation, failure: ForwardError) -> Plan | None:
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


def stated_length(situation: Situation, failure: ForwardError) -> Plan | None:
    """A spectrogram that needs the number of frames that the message states."""
    chunk = failure.numbers(r"to be a multiple of .{0,200}\((\d+)\), but got \d+")
    numbers = chunk or failure.numbers(r"mel input features to be of length (\d+)")
    if numbers:
        for name, value in failure.inputs.items():
            if "features" in name and is_tensor(value) and value.dim() == 3:
                shape = (*value.shape[:2], numbers[0])
                return situation.plan.with_shapes({name: shape})
    return None
