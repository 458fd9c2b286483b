"""Placeholder tokens, of which a modality needs as many as it has features."""

from __future__ import annotations

import re
from dataclasses import replace

from gclint.verify.worker.synthesis.hints.failure import Failure, is_tensor
from gclint.verify.worker.synthesis.inputs.placeholders import default_count, placeholder_tokens
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation


def counted(situation: Situation, failure: Failure) -> Plan | None:
    """A number of placeholders that differs from the number of features, both of which the message states."""
    numbers = failure.numbers(r"tokens:? *(\d+)\b.{0,200}features:? *(\d+)")
    pattern = (
        r"value tensor of shape \[(\d+)(?:, \d+)?\] cannot be broadcast to indexing result of shape \[(\d+)\b"
    )
    written = failure.numbers(pattern)
    placed = failure.numbers(r"wants (\d+) embeddings, but \w+ returned (\d+)")
    numbers = written[::-1] if written else numbers or placed
    if numbers is None or not numbers[1]:
        return None
    if not numbers[0]:
        return _without_modality(situation, failure)
    modality = _first_modality(failure.message)
    if modality is None:
        counts = {
            each: default_count(situation, each) for each in placeholder_tokens(situation)
        } | situation.plan.counts
        return replace(
            situation.plan, counts={each: n * numbers[1] // numbers[0] for each, n in counts.items()}
        )
    if modality not in placeholder_tokens(situation):
        return None
    given = situation.plan.counts.get(modality, default_count(situation, modality))
    # If the two numbers agree, the second is not that of the features.
    wanted = numbers[1] if numbers[0] != numbers[1] else _features(situation, failure, modality)
    if wanted is None:
        return None
    count = max(1, given * wanted // numbers[0])
    return replace(situation.plan, counts={**situation.plan.counts, modality: count})


def written_into_places(situation: Situation, failure: Failure) -> Plan | None:
    """More or fewer placeholders than features, which fail to be written to the positions of these."""
    scattered = "Number of elements of source < number of ones in mask" in failure.message
    if not isinstance(failure.error, IndexError) and not scattered:
        return None
    for modality in placeholder_tokens(situation):
        found = _features(situation, failure, modality)
        if found is not None:
            # The features are those of the whole batch.
            count = max(1, found // situation.batch)
            return replace(situation.plan, counts={**situation.plan.counts, modality: count})
    return None


def _first_modality(message: str) -> str | None:
    """Return the modality that ``message`` is about: the first one if it names several."""
    found = re.search("image|video|audio|speech", message.lower())
    return {"speech": "audio"}.get(found[0], found[0]) if found else None


def _features(situation: Situation, failure: Failure, modality: str) -> int | None:
    """Return how many features a modality has: vectors as wide as the hidden states of the text.

    They may be flattened into one dimension.
    """
    width = situation.text.hidden_size
    for variables, _ in failure.frames:
        for name, value in variables.items():
            if (
                re.fullmatch(rf"{modality}_(features|hidden_states|embeds|embeddings)", name)
                and is_tensor(value)
                and (value.shape[-1] == width if value.dim() > 1 else value.numel() % width == 0)
            ):
                return int(value.numel() // width)
    return None


def _without_modality(situation: Situation, failure: Failure) -> Plan | None:
    """Return the plan without a modality that has no placeholder of its own."""
    word = next((each for each in ("video", "audio", "image") if each in failure.message.lower()), None)
    names = {name for name in failure.inputs if word and word in name}
    return replace(situation.plan, without=situation.plan.without | names) if names else None
