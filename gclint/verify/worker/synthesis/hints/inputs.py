"""Which inputs to give, and which to leave out."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

from gclint.verify.worker.synthesis.hints.failure import Failure
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation
from gclint.verify.worker.vocabulary import CACHE_ARGUMENTS

_NOT_GIVEN = CACHE_ARGUMENTS | {
    "return_dict", "output_attentions", "output_hidden_states", "cache_position", "inputs_embeds",
    "decoder_inputs_embeds", "labels", "position_ids", "encoder_outputs", "return_loss",
}  # fmt: skip
"""Parameters that are not given for an error alone."""
_LABELS = {"labels", "start_positions", "end_positions"}


def unset_variable(situation: Situation, failure: Failure) -> Plan | None:
    """A variable that is set only if an input is given."""
    if not isinstance(failure.error, UnboundLocalError):
        return None
    variables, _ = failure.frames[0]
    names = {name for name in situation.parameters if name in variables and variables[name] is None}
    names -= situation.plan.also | _NOT_GIVEN
    return replace(situation.plan, also=situation.plan.also | names) if names else None


def embeddings(situation: Situation, failure: Failure) -> Plan | None:
    """A stack that does not embed tokens itself."""
    refused = r"no attribute 'embed_tokens'|`?input_ids`? is (not expected|expected to be `?None)"
    plan = situation.plan
    if re.search(refused, failure.message) is None or "inputs_embeds" not in situation.parameters:
        return None
    return replace(plan, without=plan.without | {"input_ids"}, also=plan.also | {"inputs_embeds"})


def not_both(situation: Situation, failure: Failure) -> Plan | None:
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


def unwanted(situation: Situation, failure: Failure) -> Plan | None:
    """An input that is passed on to a part that does not take it."""
    found = re.search(r"unexpected keyword argument '(\w+)'", failure.message)
    if found is None or found[1] not in failure.inputs:
        return None
    return replace(situation.plan, without=situation.plan.without | {found[1]})


def instead(situation: Situation, failure: Failure) -> Plan | None:
    """An input that must be replaced by another one."""
    found = re.search(r"cannot pass `?(\w+)`?.{0,400}[Pp]ass `?(\w+)`? instead", failure.message, re.S)
    if found is None:
        return None
    plan = situation.plan
    return replace(plan, without=plan.without | {found[1]}, also=(plan.also | {found[2]}) - {found[1]})


def none_in_line(situation: Situation, failure: Failure) -> Plan | None:
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


def asked_for(situation: Situation, failure: Failure) -> Plan | None:
    """An input that the message names."""
    if not re.search("specif|provide|requir|missing|must|expect|need|pass|set", failure.message):
        return None
    names = {name for name in situation.parameters if re.search(rf"\b{name}\b", failure.message)}
    names -= situation.plan.also | _NOT_GIVEN
    names -= set(failure.inputs)
    # A required input is given anyway, unless nothing is known about it.
    names = {name for name in names if situation.parameters[name].default is not inspect.Parameter.empty}
    if len(names) == 2 and re.search(r"\beither\b.* or ", failure.message):
        # The two exclude each other.
        names = {min(names, key=failure.message.index)}
    return replace(situation.plan, also=situation.plan.also | names) if names else None


def without_labels(situation: Situation, failure: Failure) -> Plan | None:
    """A loss that fails, in a model that can run without one."""
    given = _LABELS & set(failure.inputs)
    return replace(situation.plan, without=situation.plan.without | given) if given else None


def without_sizes(situation: Situation, failure: Failure) -> Plan | None:
    """Optional sizes that the failing line uses, which not every tower can handle."""
    if not isinstance(failure.error, AttributeError) or "NoneType" in failure.message:
        return None
    given = set(failure.inputs)
    for _, line in failure.frames:
        for word in re.findall(r"\w+", line):
            if word in given and "_sizes" in word:
                return replace(situation.plan, without=situation.plan.without | {word})
    return None
