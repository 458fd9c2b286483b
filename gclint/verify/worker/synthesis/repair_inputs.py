"""What the inputs should have been, told from an error."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import torch

from gclint.verify.worker.synthesis.documentation import dimension
from gclint.verify.worker.synthesis.failure import Failure
from gclint.verify.worker.synthesis.inputs import make_inputs
from gclint.verify.worker.synthesis.plan import Plan, Situation
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

SWITCHES = CACHE_ARGUMENTS | {
    "return_dict", "output_attentions", "output_hidden_states", "cache_position", "inputs_embeds",
    "decoder_inputs_embeds", "labels", "position_ids", "encoder_outputs", "return_loss",
}  # fmt: skip
_ANSWERS = {"labels", "start_positions", "end_positions"}


def _none_in_line(situation: Situation, failure: Failure) -> Plan | None:
    """An input that is None in the line that fails."""
    if "NoneType" not in failure.message and "None" not in failure.message:
        return None
    for variables, line in failure.frames:
        names = {
            name
            for name in situation.parameters
            if name in variables and variables[name] is None and re.search(rf"\b{name}\b", line)
        }
        names -= situation.plan.also | SWITCHES
        if names:
            return replace(situation.plan, also=situation.plan.also | names)
    return None


def _asked_for(situation: Situation, failure: Failure) -> Plan | None:
    """An input that the message names."""
    if not re.search("specif|provide|requir|missing|must|expect|need|pass|set", failure.message):
        return None
    names = {name for name in situation.parameters if re.search(rf"\b{name}\b", failure.message)}
    names -= situation.plan.also | SWITCHES
    names -= set(make_inputs(situation))
    return replace(situation.plan, also=situation.plan.also | names) if names else None


def _instead(situation: Situation, failure: Failure) -> Plan | None:
    """An input that another one shall take the place of."""
    found = re.search(r"cannot pass `?(\w+)`?.*[Pp]ass `?(\w+)`? instead", failure.message, re.S)
    if found is None:
        return None
    plan = situation.plan
    return replace(plan, without=plan.without | {found[1]}, also=(plan.also | {found[2]}) - {found[1]})


def _unwanted(situation: Situation, failure: Failure) -> Plan | None:
    """An input that is handed on to a part that does not take it."""
    found = re.search(r"unexpected keyword argument '(\w+)'", failure.message)
    if found is None or found[1] not in make_inputs(situation):
        return None
    return replace(situation.plan, without=situation.plan.without | {found[1]})


def _not_both(situation: Situation, failure: Failure) -> Plan | None:
    """Two inputs that exclude each other: the first one stays."""
    if not re.search(r"both|exactly one|either.* or|one of|at the same time", failure.message):
        return None
    given = [name for name in make_inputs(situation) if re.search(rf"\b{name}\b", failure.message)]
    if len(given) == 1 and "both" in failure.message:
        given = [*given, *given]
    if len(given) < 2:
        return None
    return replace(
        situation.plan,
        without=situation.plan.without | set(given[1:]),
        also=situation.plan.also - set(given[1:]),
    )


def _dimensions(situation: Situation, failure: Failure) -> Plan | None:
    """An input whose shape is unpacked into another number of names."""
    numbers = failure.numbers(r"(?:not enough|too many) values to unpack \(expected (\d+)")
    if numbers is None:
        numbers = failure.numbers(r"range of \[-\d+, (\d+)\], but got (\d+)\)")
        if numbers is None and "Expected 3D (unbatched) or 4D (batched)" in failure.message:
            return _rank_by_content(situation, failure, 4)
        return _rank_by_content(situation, failure, numbers[1] + 1) if numbers else None
    for variables, line in failure.frames:
        for name in situation.parameters:
            value = variables.get(name)
            if isinstance(value, torch.Tensor) and re.search(rf"\b{name}\b", line) and ".s" in line:
                rank = numbers[0] + ("[:-1]" in line)
                given = make_inputs(situation).get(name)
                if given is not None and given.numel() == value.numel() and given.dim() < value.dim():
                    # An outer module puts dimensions of its own in front.
                    rank -= value.dim() - given.dim()
                if given is not None and given.dim() > value.dim():
                    # The outer module has put the first two dimensions together.
                    rank += given.dim() - value.dim()
                return _with_rank(situation.plan, name, rank)
    return _rank_by_content(situation, failure, numbers[0])


def _with_rank(plan: Plan, name: str, rank: int) -> Plan:
    # A shape that was learnt before has another number of dimensions.
    shapes = {each: shape for each, shape in plan.shapes.items() if each != name}
    return replace(plan, shapes=shapes, ranks={**plan.ranks, name: rank})


def _rank_by_content(situation: Situation, failure: Failure, rank: int) -> Plan | None:
    """Find the input by its content, where an inner module calls it something else."""
    inputs = {
        n: v
        for n, v in make_inputs(situation).items()
        if isinstance(v, torch.Tensor) and v.is_floating_point()
    }
    for variables, line in failure.frames[:4]:
        for local, value in variables.items():
            if not isinstance(value, torch.Tensor) or not re.search(rf"\b{local}\b", line):
                continue
            for name, given in inputs.items():
                if given.numel() == value.numel() and given.dim() != rank:
                    return _with_rank(situation.plan, name, rank)
    return None


def _features(situation: Situation, failure: Failure) -> Plan | None:
    """An input whose last dimension, or whose channels, a first layer expects to be of another size."""
    normalised = failure.numbers(r"expected input with shape \[\*, (\d+)\], but got input of size")
    if normalised:
        return _resized(situation, failure, -1, normalised[0], None)
    product = failure.numbers(r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)")
    if product:
        return _resized(situation, failure, -1, product[1], product[0])
    widths = failure.numbers(
        r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 2"
    )
    if widths:
        return _resized(situation, failure, -1, *_known_last(situation, widths))
    frames = failure.numbers(
        r"size of tensor a \(\d+\) must match the size of tensor b \((\d+)\) at non-singleton dimension 1"
    )
    image = make_inputs(situation).get("pixel_values")
    if frames and frames[0] == situation.get("num_frames") and image is not None and image.dim() == 4:
        return replace(situation.plan, ranks={**situation.plan.ranks, "pixel_values": 5})
    patches = failure.numbers(r"width (\d+) but the model expects (\d+)")
    if patches:
        return _resized(situation, failure, -1, patches[1], patches[0])
    unbatched = failure.numbers(r"expected input\[1, (\d+), (\d+)\] to have 1 channels")
    if unbatched:
        for name, value in make_inputs(situation).items():
            if isinstance(value, torch.Tensor) and tuple(value.shape) == unbatched:
                return replace(situation.plan, ranks={**situation.plan.ranks, name: 3})
    channels = failure.numbers(r"expected input\[.*\] to have (\d+) channels, but got (\d+) channels")
    if channels:
        return _resized(situation, failure, 1, channels[0], channels[1]) or _resized(
            situation, failure, -3, channels[0], channels[1]
        )
    return None


def _known_last(situation: Situation, sizes: tuple[int, ...]) -> tuple[int, int]:
    """Return the two ``sizes``, the one that an input has last."""
    last = {
        value.shape[-1]
        for value in make_inputs(situation).values()
        if isinstance(value, torch.Tensor) and value.dim()
    }
    return (sizes[0], sizes[1]) if sizes[1] in last and sizes[0] not in last else (sizes[1], sizes[0])


def _resized(
    situation: Situation, failure: Failure, dimension: int, size: int, before: int | None
) -> Plan | None:
    """Give the input that the failing line works on another size in ``dimension``."""
    reached = [
        value
        for variables, line in failure.frames
        for value in variables.values()
        if isinstance(value, torch.Tensor)
    ]
    numbers_of_elements = {value.numel() for value in reached[:6]}
    said = " ".join(line for _, line in failure.frames[:6])
    # Of several of the same size, it is the one that the failing lines name.
    inputs = sorted(make_inputs(situation).items(), key=lambda each: each[0] not in said)
    for name, value in inputs:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            continue
        if value.dim() < abs(dimension) + (dimension > 0) or value.numel() not in numbers_of_elements:
            continue
        if before is None or value.dim() == 3 or value.shape[dimension] == before:
            flat = "1d" in failure.frames[0][1]
            return _with_size(situation.plan, name, tuple(value.shape), dimension, size, before, flat)
    return None


def _with_size(
    plan: Plan, name: str, shape: tuple[int, ...], dimension: int, size: int, before: int | None, flat: bool
) -> Plan:
    """Give the input ``name`` the ``size`` in ``dimension``, maybe by another order of dimensions."""
    reordered = len(shape) == 3 and name not in plan.transposed
    if reordered and size in (shape[1:] if dimension == 1 else shape[1:2]):
        return replace(plan, transposed=plan.transposed | {name})
    if len(shape) == 3 and dimension == 1 and not flat:
        # An image where the rules saw a sequence.
        return replace(plan, shapes={**plan.shapes, name: (shape[0], size, 8, 8)})
    if len(shape) == 4 and dimension == -1:
        return replace(plan, shapes={**plan.shapes, name: (shape[0], 16, size)})
    changed = list(shape)
    given = shape[dimension]
    # What the layer sees may be several times as wide as the input.
    several = before is not None and given not in (before, size) and given * size % before == 0
    changed[dimension] = given * size // before if several and before else size
    return replace(plan, shapes={**plan.shapes, name: tuple(changed)})


def _longer(situation: Situation, failure: Failure) -> Plan | None:
    """Sound or series that are too short for a kernel, or that have to have a length of their own."""
    multiple = re.search(r"`(\w+)` length (\d+) is not a multiple of (\d+)", failure.message)
    value = make_inputs(situation).get(multiple[1]) if multiple else None
    if multiple and value is not None:
        shape = (*value.shape[:-1], (int(multiple[2]) // int(multiple[3]) + 1) * int(multiple[3]))
        return replace(situation.plan, shapes={**situation.plan.shapes, multiple[1]: shape})
    chunk = failure.numbers(r"to be a multiple of .*\((\d+)\), but got \d+")
    numbers = chunk or failure.numbers(r"mel input features to be of length (\d+)")
    if numbers:
        for name, value in make_inputs(situation).items():
            if "features" in name and isinstance(value, torch.Tensor) and value.dim() == 3:
                shape = (*value.shape[:2], numbers[0])
                return replace(situation.plan, shapes={**situation.plan.shapes, name: shape})
    return None


def _image_size(situation: Situation, failure: Failure) -> Plan | None:
    """Images of the size that the message asks for."""
    numbers = failure.numbers(r"[Ii]nput image size \((\d+)\*(\d+)\) doesn't match model \((\d+)\*(\d+)\)")
    if numbers is None:
        return None
    shapes = {}
    for name, value in make_inputs(situation).items():
        if ("pixel" in name or "mask" in name) and isinstance(value, torch.Tensor) and value.dim() == 4:
            # Some put two images together first, so it is the ratio that counts.
            height = value.shape[-2] * numbers[2] // numbers[0]
            shapes[name] = (*value.shape[:-2], height, value.shape[-1] * numbers[3] // numbers[1])
    return replace(situation.plan, shapes={**situation.plan.shapes, **shapes})


def _mask_shape(situation: Situation, failure: Failure) -> Plan | None:
    """A mask that has to have the shape of what it selects from."""
    found = re.search(r"shape of the mask \[(.*?)\].*indexed tensor \[(.*?)\]", failure.message)
    if found is None:
        return None
    mask, content = ([int(each) for each in group.split(",")] for group in found.groups())
    for name, value in make_inputs(situation).items():
        if "mask" in name and isinstance(value, torch.Tensor) and list(value.shape) == mask:
            shape = tuple(content[: len(mask)])
            return replace(situation.plan, shapes={**situation.plan.shapes, name: shape})
    return None


def _lengths(situation: Situation, failure: Failure) -> Plan | None:
    """Lengths of the parts of an input that have to add up to the whole."""
    found = re.search(r"split_sizes to sum exactly to (\d+) .*split_sizes=\[(.*?)\]", failure.message)
    if found is None:
        return None
    total, sizes = int(found[1]), [int(each) for each in found[2].split(",")]
    for name, value in make_inputs(situation).items():
        if isinstance(value, torch.Tensor) and value.tolist() == sizes:
            lengths = (
                *[total // len(sizes)] * (len(sizes) - 1),
                total - total // len(sizes) * (len(sizes) - 1),
            )
            return replace(situation.plan, given={**situation.plan.given, name: lengths})
    for name, value in make_inputs(situation).items():
        if name.startswith("pixel") and isinstance(value, torch.Tensor) and total == len(value) == len(sizes):
            shape = (len(value), sizes[0], *value.shape[-3:])
            return replace(situation.plan, shapes={**situation.plan.shapes, name: shape})
    return None


def _codebooks(situation: Situation, failure: Failure) -> Plan | None:
    """Tokens of several codebooks in rows below one another."""
    if "view size is not compatible" in failure.message:
        names = {"decoder_input_ids", "input_ids"} & set(situation.plan.shapes)
        shapes = {name: shape for name, shape in situation.plan.shapes.items() if name not in names}
        return replace(
            situation.plan, shapes=shapes, ranks={**situation.plan.ranks, **dict.fromkeys(names, 3)}
        )
    found = re.search(r"shape '\[(.*?)\]' is invalid for input of size (\d+)", failure.message)
    count = situation.get("num_codebooks", "num_channels", "n_codes_given")
    if found is None or not isinstance(count, int) or str(count) not in found[1].split(", "):
        return None
    for name in ("decoder_input_ids", "input_ids"):
        value = make_inputs(situation).get(name)
        if value is not None and value.numel() == int(found[2]):
            shape = (value.shape[0] * count, *value.shape[1:])
            return replace(situation.plan, shapes={**situation.plan.shapes, name: shape})
    return None


def _streams(situation: Situation, failure: Failure) -> Plan | None:
    """Tokens of several streams beside one another."""
    numbers = failure.numbers(
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 1"
    )
    if (
        numbers is None
        or numbers[0] != situation.plan.length
        or "input_ids" not in "".join(line for _, line in failure.frames[:2])
    ):
        return None
    value = make_inputs(situation).get("input_ids")
    if value is None or value.dim() != 2:
        return None
    return replace(situation.plan, shapes={**situation.plan.shapes, "input_ids": (*value.shape, numbers[1])})


def _shorter(situation: Situation, failure: Failure) -> Plan | None:
    """A sequence that has as many places as there are codebooks at most."""
    count = situation.get("num_codebooks")
    if not isinstance(count, int) or count >= situation.plan.length or "out of range" not in failure.message:
        return None
    return replace(situation.plan, length=count)


def _more_heads(situation: Situation, failure: Failure) -> Plan | None:
    """Maps of attention, a channel each, of which a convolution wants so many."""
    numbers = failure.numbers(r"input_channels must be divisible by (\d+)")
    sizes = situation.plan.sizes
    return replace(situation.plan, sizes=replace(sizes, heads=numbers[0])) if numbers else None


def _larger_batch(situation: Situation, failure: Failure) -> Plan | None:
    """A batch whose rows are the frames or the windows of an item."""
    numbers = failure.numbers(r"shape '\[0, (\d+), ")
    inputs = make_inputs(situation)
    name = next((name for name, value in inputs.items() if isinstance(value, torch.Tensor)), None)
    count = situation.get("num_frames", "num_windows", default=numbers[0] if numbers else None)
    if numbers is None or name is None:
        return None
    shape = (len(inputs[name]) * count, *inputs[name].shape[1:])
    return replace(situation.plan, shapes={**situation.plan.shapes, name: shape})


def _tokens_wanted(situation: Situation, failure: Failure) -> Plan | None:
    """An input of tokens under a name that the rules take for sound."""
    if "got torch.FloatTensor" not in failure.message or "indices" not in failure.message:
        return None
    names = {name for name in make_inputs(situation) if "values" in name}
    return replace(situation.plan, tokens=situation.plan.tokens | names)


def _stated_shape(situation: Situation, failure: Failure) -> Plan | None:
    """A shape that the message spells out."""
    found = re.search(r"must be a \dD tensor of shape \((.*?)\)", failure.message)
    name = next((name for name in make_inputs(situation) if name.startswith(("pixel", "input"))), None)
    if found is None or name is None:
        return None
    shape = tuple(dimension(situation, word.strip()) for word in found[1].split(","))
    return replace(situation.plan, shapes={**situation.plan.shapes, name: shape})


def _larger_image(situation: Situation, failure: Failure) -> Plan | None:
    """Images that shrink to nothing on their way through a pyramid."""
    if not re.search(
        "spatial size|output size is too small|be greater than actual input size|at least one",
        failure.message,
        re.IGNORECASE,
    ):
        return None
    sizes = situation.plan.sizes
    return replace(situation.plan, sizes=replace(sizes, image=sizes.image * 2)) if sizes.image < 256 else None


def _without_answers(situation: Situation, failure: Failure) -> Plan | None:
    given = _ANSWERS & set(make_inputs(situation))
    return replace(situation.plan, without=situation.plan.without | given) if given else None


def _eager(situation: Situation, failure: Failure) -> Plan | None:
    if not re.search("attention|attn|sdpa|eager|flash|flex", failure.message, re.I):
        return None
    return replace(situation.plan, attention="eager")


EXACT: tuple[Any, ...] = (
    _dimensions, _features, _longer, _image_size, _not_both, _unwanted, _instead, _mask_shape, _lengths,
    _codebooks,
    _larger_image, _streams, _larger_batch, _tokens_wanted, _stated_shape, _shorter, _more_heads,
)  # fmt: skip
GUESSES: tuple[Any, ...] = (_none_in_line, _asked_for, _without_answers, _eager)
