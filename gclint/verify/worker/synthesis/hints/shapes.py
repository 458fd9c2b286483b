"""Shapes of inputs that an inner module expects."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.hints.failure import ForwardError, is_tensor
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation, dimension

_GIVEN_AND_EXPECTED = (
    r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)",
    r"dimensions of batch2 tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]",
    r"width (\d+) but the model expects (\d+)",
)
"""Messages with the width of what a layer is given, and the one that it expects."""


def dimensions(situation: Situation, failure: ForwardError) -> Plan | None:
    """An input whose shape is unpacked into a different number of names."""
    numbers = failure.numbers(r"(?:not enough|too many) values to unpack \(expected (\d+)")
    if numbers is None:
        numbers = failure.numbers(r"range of \[-\d+, (\d+)\], but got (\d+)\)")
        if numbers is None and "Expected 3D (unbatched) or 4D (batched)" in failure.message:
            return _rank_by_content(situation, failure, 4)
        return _rank_by_content(situation, failure, numbers[1] + 1) if numbers else None
    for variables, line in failure.frames:
        for name in situation.parameters:
            value = variables.get(name)
            if is_tensor(value) and re.search(rf"\b{name}\b", line) and ".s" in line:
                rank = numbers[0] + ("[:-1]" in line)
                given: Any = failure.inputs.get(name)
                if given is not None and given.numel() == value.numel() and given.dim() < value.dim():
                    # An outer module has prepended dimensions.
                    rank -= value.dim() - given.dim()
                if given is not None and given.dim() > value.dim():
                    # An outer module has merged the first two dimensions.
                    rank += given.dim() - value.dim()
                return _with_rank(situation.plan, name, rank)
    return _rank_by_content(situation, failure, numbers[0])


def width(situation: Situation, failure: ForwardError) -> Plan | None:
    """An input whose last dimension or channels differ from the size that the first layer expects."""
    normalised = failure.numbers(r"expected input with shape \[\*, (\d+)\], but got input of size")
    if normalised:
        return _resized(situation, failure, -1, normalised[0], None)
    product = next(filter(None, map(failure.numbers, _GIVEN_AND_EXPECTED)), None)
    if product:
        return _resized(situation, failure, -1, product[1], product[0])
    widths = failure.mismatch(2)
    if widths:
        return _resized(situation, failure, -1, *_known_last(failure, widths))
    frames = failure.mismatch(1)
    image = failure.inputs.get("pixel_values")
    if frames and frames[1] == situation.get("num_frames") and image is not None and image.dim() == 4:
        return situation.plan.with_rank("pixel_values", 5)
    channels = failure.numbers(r"expected input\[.{0,100}\] to have (\d+) channels, but got (\d+) channels")
    if channels:
        found = (_resized(situation, failure, each, *channels[:2]) for each in (1, -3))
        return next(filter(None, found), None)
    return None


def mask(situation: Situation, failure: ForwardError) -> Plan | None:
    """A mask that must have the shape of the tensor that it selects from."""
    found = re.search(
        r"shape of the mask \[([^]]{0,100})\].{0,200}indexed tensor \[([^]]{0,100})\]", failure.message
    )
    if found is None:
        return None
    mask, content = ([int(each) for each in group.split(",")] for group in found.groups())
    for name, value in failure.inputs.items():
        if "mask" in name and is_tensor(value) and list(value.shape) == mask:
            shape = tuple(content[: len(mask)])
            return situation.plan.with_shapes({name: shape})
    return None


def longer_mask(situation: Situation, failure: ForwardError) -> Plan | None:
    """A mask that must cover what attention reads besides the sequence itself."""
    sizes = failure.mismatch(3)
    if sizes is None or "attention_mask" not in situation.parameters:
        return None
    # Without one, the model makes a mask that is as long as the sequence.
    given = failure.inputs.get("attention_mask")
    shape = (situation.batch, situation.length) if given is None else given.shape
    if len(shape) != 2 or shape[1] != sizes[1]:
        return None
    plan = situation.plan.with_shapes({"attention_mask": (shape[0], sizes[0])})
    return replace(plan, also=plan.also | {"attention_mask"})


def lengths(situation: Situation, failure: ForwardError) -> Plan | None:
    """Lengths of the parts of an input, which must add up to its length."""
    found = re.search(
        r"split_sizes to sum exactly to (\d+) .{0,400}split_sizes=\[([^]]{0,400})\]", failure.message
    )
    if found is None:
        return None
    total, sizes = int(found[1]), [int(each) for each in found[2].split(",")]
    for name, value in failure.inputs.items():
        if is_tensor(value) and value.tolist() == sizes:
            share = total // len(sizes)
            divided = (*[share] * (len(sizes) - 1), total - share * (len(sizes) - 1))
            return replace(situation.plan, given={**situation.plan.given, name: divided})
    for name, value in failure.inputs.items():
        if name.startswith("pixel") and is_tensor(value) and total == len(value) == len(sizes):
            shape = (len(value), sizes[0], *value.shape[-3:])
            return situation.plan.with_shapes({name: shape})
    return None


def larger_batch(situation: Situation, failure: ForwardError) -> Plan | None:
    """A batch whose rows are the frames or the windows of an item."""
    numbers = failure.numbers(r"shape '\[0, (\d+), ")
    inputs = failure.inputs
    name = next((name for name, value in inputs.items() if is_tensor(value)), None)
    count = situation.get("num_frames", "num_windows", default=numbers[0] if numbers else None)
    if numbers is None or name is None:
        return None
    shape = (len(inputs[name]) * count, *inputs[name].shape[1:])
    return situation.plan.with_shapes({name: shape})


def stated(situation: Situation, failure: ForwardError) -> Plan | None:
    """A shape that the message spells out."""
    found = re.search(r"must be a \dD tensor of shape \(([^()]*)\)", failure.message)
    name = next((name for name in failure.inputs if name.startswith(("pixel", "input"))), None)
    if found is None or name is None:
        return None
    shape = tuple(dimension(situation, word.strip()) for word in found[1].split(","))
    return situation.plan.with_shapes({name: shape})


def single_item(situation: Situation, failure: ForwardError) -> Plan | None:
    """A batch of one, for a model that reshapes the state of a single item to the size of the batch."""
    found = re.search(r"shape '\[(\d+(?:, \d+)*)\]' is invalid for input of size (\d+)", failure.message)
    shape = [int(each) for each in found[1].split(", ")] if found else []
    if found is None or shape[0] != situation.batch or math.prod(shape) != situation.batch * int(found[2]):
        return None
    return None if situation.plan.single else replace(situation.plan, single=True)


def _rank_by_content(situation: Situation, failure: ForwardError, rank: int) -> Plan | None:
    """Find the input by its number of elements, since an inner module may call it something else."""
    inputs = {n: v for n, v in failure.inputs.items() if is_tensor(v) and v.is_floating_point()}
    for variables, line in failure.frames[:4]:
        for local, value in variables.items():
            if not is_tensor(value) or not re.search(rf"\b{local}\b", line):
                continue
            for name, given in inputs.items():
                if given.numel() == value.numel() and given.dim() != rank:
                    return _with_rank(situation.plan, name, rank)
    return None


def _with_rank(plan: Plan, name: str, rank: int) -> Plan:
    # A shape that was learnt before has a different number of dimensions.
    shapes = {each: shape for each, shape in plan.shapes.items() if each != name}
    return replace(plan, shapes=shapes, ranks={**plan.ranks, name: rank})


def _known_last(failure: ForwardError, sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the two ``sizes``, that of the last dimension of an input second."""
    last = {value.shape[-1] for value in failure.inputs.values() if is_tensor(value) and value.dim()}
    return (sizes[0], sizes[1]) if sizes[1] in last and sizes[0] not in last else (sizes[1], sizes[0])


def _resized(
    situation: Situation, failure: ForwardError, dimension: int, size: int, before: int | None
) -> Plan | None:
    """Resize ``dimension`` of the input that the failing line uses from ``before`` to ``size``."""
    reached = [
        value for variables, line in failure.frames for value in variables.values() if is_tensor(value)
    ]
    numbers_of_elements = {value.numel() for value in reached[:6]}
    lines = " ".join(line for _, line in failure.frames[:6])
    # Among several of the same size, the one that the failing lines name comes first.
    inputs = sorted(failure.inputs.items(), key=lambda each: each[0] not in lines)
    for name, value in inputs:
        if not is_tensor(value) or not value.is_floating_point():
            continue
        if value.dim() < abs(dimension) + (dimension > 0) or value.numel() not in numbers_of_elements:
            continue
        if before is None or value.dim() == 3 or value.shape[dimension] == before:
            flat = "1d" in failure.line
            return _with_size(situation.plan, name, tuple(value.shape), dimension, size, before, flat)
    return None


def _with_size(
    plan: Plan, name: str, shape: tuple[int, ...], dimension: int, size: int, before: int | None, flat: bool
) -> Plan:
    """Give the input ``name`` the ``size`` in ``dimension``, if possible by transposing it."""
    reordered = len(shape) == 3 and name not in plan.transposed
    if reordered and size in (shape[1:] if dimension == 1 else shape[1:2]):
        return replace(plan, transposed=plan.transposed | {name})
    if len(shape) == 3 and dimension == 1 and not flat:
        # An image where the rules saw a sequence.
        return plan.with_shapes({name: (shape[0], size, 8, 8)})
    if len(shape) == 4 and dimension == -1:
        return plan.with_shapes({name: (shape[0], 16, size)})
    changed = list(shape)
    given = shape[dimension]
    # What reaches the layer may be several times as wide as the input.
    several = before is not None and given not in (before, size) and given * size % before == 0
    changed[dimension] = given * size // before if several and before else size
    return plan.with_shapes({name: tuple(changed)})
