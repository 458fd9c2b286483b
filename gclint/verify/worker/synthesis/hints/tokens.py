"""Tokens of models with several codebooks or streams of tokens."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.hints.failure import Failure, is_tensor
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation


def codebooks(situation: Situation, failure: Failure) -> Plan | None:
    """Tokens of several codebooks, as further rows of the batch."""
    if "view size is not compatible" in failure.message:
        names = {"decoder_input_ids", "input_ids"} & set(situation.plan.shapes)
        shapes = {name: shape for name, shape in situation.plan.shapes.items() if name not in names}
        return replace(
            situation.plan, shapes=shapes, ranks={**situation.plan.ranks, **dict.fromkeys(names, 3)}
        )
    found = re.search(r"shape '\[([^]']{0,200})\]' is invalid for input of size (\d+)", failure.message)
    count = situation.get("num_codebooks", "num_channels", "n_codes_given")
    if found is None or not isinstance(count, int) or str(count) not in found[1].split(", "):
        return None
    for name in ("decoder_input_ids", "input_ids"):
        value = failure.inputs.get(name)
        if value is not None and value.numel() == int(found[2]):
            shape = (value.shape[0] * count, *value.shape[1:])
            return situation.plan.with_shapes({name: shape})
    return None


def streams(situation: Situation, failure: Failure) -> Plan | None:
    """Tokens of several streams, along a further dimension."""
    numbers = failure.numbers(
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 1"
    )
    if (
        numbers is None
        or numbers[0] != situation.length
        or "input_ids" not in "".join(line for _, line in failure.frames[:2])
    ):
        return None
    value = failure.inputs.get("input_ids")
    if value is None or value.dim() != 2:
        return None
    return situation.plan.with_shapes({"input_ids": (*value.shape, numbers[1])})


def beside_one_another(situation: Situation, failure: Failure) -> Plan | None:
    """Tokens of several codebooks along a third dimension, by which the failing line indexes them."""
    if "too many indices for tensor of dimension 2" not in failure.message:
        return None
    for name, value in failure.inputs.items():
        if _is_token_batch(value) and re.search(rf"\b{name}\[:, :, \w+\]", failure.line):
            count = situation.get("num_codebooks", "n_codes_total", "num_channels", default=1)
            return situation.plan.with_shapes({name: (*value.shape, count)})
    return None


def _is_token_batch(value: Any) -> bool:
    return is_tensor(value) and value.dim() == 2 and not value.is_floating_point()


def in_place_of_values(situation: Situation, failure: Failure) -> Plan | None:
    """Tokens under a name that the rules take for that of audio."""
    if "got torch.FloatTensor" not in failure.message or "indices" not in failure.message:
        return None
    names = {name for name in failure.inputs if "values" in name}
    return replace(situation.plan, tokens=situation.plan.tokens | names)


def shorter(situation: Situation, failure: Failure) -> Plan | None:
    """A sequence that can have at most as many positions as there are codebooks."""
    count = situation.get("num_codebooks")
    last = failure.numbers(r"index (\d+) is out of range")
    if not isinstance(count, int) or "out of range" not in failure.message:
        return None
    length = min(count, max(1, last[0]) if last else count)
    return replace(situation.plan, length=length) if length < situation.length else None
