"""As many placeholders among the tokens as a modality has features."""

from __future__ import annotations

import re
from dataclasses import replace

from gclint.verify.worker.synthesis.hints.failure import Failure
from gclint.verify.worker.synthesis.inputs.forward import make_inputs
from gclint.verify.worker.synthesis.inputs.placeholders import default_count, placeholder_tokens
from gclint.verify.worker.synthesis.inputs.plan import Plan
from gclint.verify.worker.synthesis.inputs.situation import Situation


def counted(situation: Situation, failure: Failure) -> Plan | None:
    """Another number of placeholders than of features."""
    numbers = failure.numbers(r"tokens:? *(\d+)\b.{0,200}features:? *(\d+)")
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
    """Return the plan that leaves out a modality that has no placeholder of its own."""
    word = next((each for each in ("video", "audio", "image") if each in failure.message.lower()), None)
    names = {name for name in make_inputs(situation) if word and word in name}
    return replace(situation.plan, without=situation.plan.without | names) if names else None
