"""Which inputs to give, which to leave out, and how many tokens of which kind."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

from gclint.verify.worker.synthesis.hints.failure import ForwardError, is_tensor
from gclint.verify.worker.synthesis.inputs.placeholders import default_count, placeholder_tokens
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

_NOT_GIVEN = CACHE_ARGUMENTS | {
    "return_dict", "output_attentions", "output_hidden_states", "cache_position", "inputs_embeds",
    "decoder_inputs_embeds", "labels", "position_ids", "encoder_outputs", "return_loss",
}  # fmt: skip
"""Parameters that are not given for an error alone."""
_LABELS = {"labels", "start_positions", "end_positions"}


def unset_variable(situation: Situation, failure: ForwardError) -> Plan | None:
    """A variable that is set only if an input is given."""
    if not isinstance(failure.error, UnboundLocalError):
        return None
    variables, _ = failure.frames[0]
    names = {name for name in situation.parameters if name in variables and variables[name] is None}
    names -= situation.plan.also | _NOT_GIVEN
    return replace(situation.plan, also=situation.plan.also | names) if names else None


def embeddings(situation: Situation, failure: ForwardError) -> Plan | None:
    """A stack that does not embed tokens itself."""
    refused = r"no attribute 'embed_tokens'|`?input_ids`? is (not expected|expected to be `?None)"
    plan = situation.plan
    if re.search(refused, failure.message) is None or "inputs_embeds" not in situation.parameters:
        return None
    return replace(plan, without=plan.without | {"input_ids"}, also=plan.also | {"inputs_embeds"})


def not_both(situation: Situation, failure: ForwardError) -> Plan | None:
    """Inputs that exclude each other, of which the first is kept."""
    if not re.search(r"both|exactly one|either.* or|one of|at the same time", failure.message):
        return None
    given = [name for name in failure.inputs if re.search(rf"\b{name}\b", failure.message)]
    if len(given) == 1 and "both" in failure.message:
        given = [*given, *given]
    if len(given) < 2:
        return None
    return replace(
        situation.plan,
        without=situation.plan.without | set(given[1:]),
        also=situation.plan.also - set(given[1:]),
    )


def unwanted(situation: Situation, failure: ForwardError) -> Plan | None:
    """An input that is passed on to a part that does not take it."""
    found = re.search(r"unexpected keyword argument '(\w+)'", failure.message)
    if found is None or found[1] not in failure.inputs:
        return None
    return replace(situation.plan, without=situation.plan.without | {found[1]})


def instead(situation: Situation, failure: ForwardError) -> Plan | None:
    """An input that must be replaced by another one."""
    found = re.search(r"cannot pass `?(\w+)`?.{0,400}[Pp]ass `?(\w+)`? instead", failure.message, re.S)
    if found is None:
        return None
    plan = situation.plan
    return replace(plan, without=plan.without | {found[1]}, also=(plan.also | {found[2]}) - {found[1]})


def none_in_line(situation: Situation, failure: ForwardError) -> Plan | None:
    """An input that is None in the line that fails."""
    if "NoneType" not in failure.message and "None" not in failure.message:
        return None
    for variables, line in failure.frames:
        names = {
            name
            for name in situation.parameters
            if name in variables and variables[name] is None and re.search(rf"\b{name}\b", line)
        }
        names -= situation.plan.also | _NOT_GIVEN
        if names:
            return replace(situation.plan, also=situation.plan.also | names)
    return None


def asked_for(situation: Situation, failure: ForwardError) -> Plan | None:
    """An input that the message names."""
    if not re.search("specif|provide|requir|missing|must|expect|need|pass|set", failure.message):
        return None
    names = {name for name in situation.parameters if re.search(rf"\b{name}\b", failure.message)}
    names -= situation.plan.also | _NOT_GIVEN
    names -= set(failure.inputs)
    # A required input is given anyway, unless nothing is known about it.
    names = {name for name in names if situation.parameters[name].default is not inspect.Parameter.empty}
    return replace(situation.plan, also=situation.plan.also | names) if names else None


def without_labels(situation: Situation, failure: ForwardError) -> Plan | None:
    """A loss that fails, in a model that can run without one."""
    given = _LABELS & set(failure.inputs)
    return replace(situation.plan, without=situation.plan.without | given) if given else None


def without_sizes(situation: Situation, failure: ForwardError) -> Plan | None:
    """Optional sizes that the failing line uses, which not every tower can handle."""
    if not isinstance(failure.error, AttributeError) or "NoneType" in failure.message:
        return None
    given = set(failure.inputs)
    for _, line in failure.frames:
        for word in re.findall(r"\w+", line):
            if word in given and "_sizes" in word:
                return replace(situation.plan, without=situation.plan.without | {word})
    return None


def codebooks(situation: Situation, failure: ForwardError) -> Plan | None:
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


def streams(situation: Situation, failure: ForwardError) -> Plan | None:
    """Tokens of several streams, along a further dimension."""
    numbers = failure.mismatch(1)
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


def beside_one_another(situation: Situation, failure: ForwardError) -> Plan | None:
    """Tokens of several codebooks along a third dimension, by which the failing line indexes them."""
    if "too many indices for tensor of dimension 2" not in failure.message:
        return None
    for name, value in failure.inputs.items():
        is_token_batch = is_tensor(value) and value.dim() == 2 and not value.is_floating_point()
        if is_token_batch and re.search(rf"\b{name}\[:, :, \w+\]", failure.line):
            count = situation.get("num_codebooks", "n_codes_total", "num_channels", default=1)
            return situation.plan.with_shapes({name: (*value.shape, count)})
    return None


def in_place_of_values(situation: Situation, failure: ForwardError) -> Plan | None:
    """Tokens under a name that the rules take for that of audio."""
    if "got torch.FloatTensor" not in failure.message or "indices" not in failure.message:
        return None
    names = {name for name in failure.inputs if "values" in name}
    return replace(situation.plan, tokens=situation.plan.tokens | names)


def shorter(situation: Situation, failure: ForwardError) -> Plan | None:
    """A sequence that can have at most as many positions as there are codebooks."""
    count = situation.get("num_codebooks")
    last = failure.numbers(r"index (\d+) is out of range")
    if not isinstance(count, int) or "out of range" not in failure.message:
        return None
    length = min(count, max(1, last[0]) if last else count)
    return replace(situation.plan, length=length) if length < situation.length else None


def counted(situation: Situation, failure: ForwardError) -> Plan | None:
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


def written_into_places(situation: Situation, failure: ForwardError) -> Plan | None:
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


def _features(situation: Situation, failure: ForwardError, modality: str) -> int | None:
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


def _without_modality(situation: Situation, failure: ForwardError) -> Plan | None:
    """Return the plan without a modality that has no placeholder of its own."""
    word = next((each for each in ("video", "audio", "image") if each in failure.message.lower()), None)
    names = {name for name in failure.inputs if word and word in name}
    return replace(situation.plan, without=situation.plan.without | names) if names else None
