"""What a modality needs, told from an error: placeholders among the tokens, a batch that suits its tower."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.failure import Failure
from gclint.verify.worker.synthesis.inputs import make_inputs
from gclint.verify.worker.synthesis.placeholders import default_count, placeholder_tokens
from gclint.verify.worker.synthesis.plan import BATCH, Plan, Situation


def _placeholders(situation: Situation, failure: Failure) -> Plan | None:
    """As many placeholders as there are features."""
    numbers = failure.numbers(r"tokens:? *(\d+).*features:? *(\d+)")
    pattern = (
        r"value tensor of shape \[(\d+), \d+\] cannot be broadcast to indexing result of shape \[(\d+), "
    )
    written = failure.numbers(pattern)
    numbers = written[::-1] if written else numbers
    if numbers is None or not numbers[1]:
        return None
    if not numbers[0]:
        return _without_modality(situation, failure)
    message = failure.message.lower()
    for modality in placeholder_tokens(situation):
        if modality in message or (modality == "audio" and "speech" in message):
            given = situation.plan.counts.get(modality, default_count(situation, modality))
            # Where the numbers agree, the features are counted one by one.
            width = situation.text.hidden_size if numbers[0] == numbers[1] else 1
            count = max(1, given * numbers[1] // numbers[0] // width)
            return replace(situation.plan, counts={**situation.plan.counts, modality: count})
    if re.search("image|video|audio|speech", message):
        return None
    counts = {
        each: default_count(situation, each) for each in placeholder_tokens(situation)
    } | situation.plan.counts
    return replace(situation.plan, counts={each: n * numbers[1] // numbers[0] for each, n in counts.items()})


def _without_modality(situation: Situation, failure: Failure) -> Plan | None:
    """A modality that has no placeholder of its own."""
    word = next((each for each in ("video", "audio", "image") if each in failure.message.lower()), None)
    names = {name for name in make_inputs(situation) if word and word in name}
    return replace(situation.plan, without=situation.plan.without | names) if names else None


def _left_out(situation: Situation, failure: Failure) -> Plan | None:
    """An optional input that the failing line works on, and that not every tower can do something with."""
    if not isinstance(failure.error, AttributeError) or "NoneType" in failure.message:
        return None
    given = set(make_inputs(situation))
    for _, line in failure.frames:
        for word in re.findall(r"\w+", line):
            if word in given and "_sizes" in word:
                return replace(situation.plan, without=situation.plan.without | {word})
    return None


def _single(situation: Situation, failure: Failure) -> Plan | None:
    """A batch of one, where the model gives every item of it the memory of one."""
    found = re.search(r"shape '\[(\d+(?:, \d+)*)\]' is invalid for input of size (\d+)", failure.message)
    shape = [int(each) for each in found[1].split(", ")] if found else []
    if found is None or shape[0] != BATCH or math.prod(shape) != BATCH * int(found[2]):
        return None
    return None if situation.plan.single else replace(situation.plan, single=True)


def _embedded(situation: Situation, failure: Failure) -> Plan | None:
    """A stack that embeds no tokens by itself."""
    refused = r"no attribute 'embed_tokens'|`?input_ids`? is (not expected|expected to be `?None)"
    plan = situation.plan
    if re.search(refused, failure.message) is None or "inputs_embeds" not in situation.parameters:
        return None
    return replace(plan, without=plan.without | {"input_ids"}, also=plan.also | {"inputs_embeds"})


def _rotary_scaling(situation: Situation, failure: Failure) -> Plan | None:
    """Rotary parameters that are None by default and needed nevertheless, with sections for three axes."""
    if (
        "'NoneType' object is not subscriptable" not in failure.message
        or "rope_scaling" not in failure.frames[0][1]
    ):
        return None
    text = situation.text
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    side = width // 2 * 3 // 8
    rope = {"rope_type": "default", "mrope_section": [width // 2 - 2 * side, side, side]}
    values = {**situation.plan.values, ("", "rope_scaling"): rope}
    return replace(situation.plan, values=values) if values != situation.plan.values else None


EXACT: tuple[Any, ...] = (_placeholders, _embedded, _rotary_scaling)
GUESSES: tuple[Any, ...] = (_single, _left_out)
