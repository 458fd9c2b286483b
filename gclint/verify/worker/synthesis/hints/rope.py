"""Rotary parameters that a model needs and its configuration lacks."""

from __future__ import annotations

import re

from gclint.verify.worker.synthesis.configurations.fields import Kind, kind_of
from gclint.verify.worker.synthesis.configurations.rope import head_width
from gclint.verify.worker.synthesis.configurations.tree import fields_of
from gclint.verify.worker.synthesis.hints.failure import Failure
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation


def scaling(situation: Situation, failure: Failure) -> Plan | None:
    """Rotary parameters that are None by default although they are needed, with sections for three axes."""
    field = re.search(r"rope_scaling|rope_parameters", failure.line)
    empty = re.search("'NoneType' object (is not subscriptable|has no attribute 'get')", failure.message)
    if field is None or empty is None:
        return None
    text = situation.text
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": _sections_of_axes(width // 2)}
    # Newer releases store under the newer name what is read under the older one.
    plan = situation.plan.with_values({("", "rope_scaling"): rope, ("", "rope_parameters"): rope})
    return plan if plan != situation.plan else None


def named_sections(situation: Situation, failure: Failure) -> Plan | None:
    """Rotary sections that have no default."""
    name = failure.error.args[0] if isinstance(failure.error, KeyError) and failure.error.args else None
    if not isinstance(name, str) or not name.endswith("section"):
        return None
    values = {}
    for part in situation.parts:
        rope = fields_of(part).get("rope_parameters") or fields_of(part).get("rope_scaling")
        width = head_width(fields_of(part))
        if isinstance(rope, dict) and name not in rope and width:
            field = "rope_parameters" if fields_of(part).get("rope_parameters") else "rope_scaling"
            values[type(part).__name__, field] = {**rope, name: _sections_of_axes(width // 2)}
    return situation.plan.with_values(values) if values else None


def _sections_of_axes(total: int) -> list[int]:
    """Return sections for time, height and width that add up to ``total``."""
    side = total * 3 // 8
    return [total - 2 * side, side, side]


def sections(situation: Situation, failure: Failure) -> Plan | None:
    """Rotary sections for which the model file has a default."""
    numbers = failure.numbers(r"split_sizes to sum exactly to (\d+)")
    rope = situation.get("rope_parameters", "rope_scaling")
    if (
        numbers is None
        or not isinstance(rope, dict)
        or not any("section" in word for word in failure.words())
    ):
        return None
    name = "rope_parameters" if situation.get("rope_parameters") else "rope_scaling"
    found = re.search(r"split_sizes=\[([^]]{0,400})\]", failure.message)
    sizes = found[1].split(", ") if found else []
    # Some models repeat sines and cosines once, and split them by the sections repeated once.
    is_doubled = len(sizes) == 6 and sizes[:3] == sizes[3:]
    divided = _sections_of_axes(numbers[0] // 2 if is_doubled else numbers[0])
    return situation.plan.with_values({("=", name): {**rope, "mrope_section": divided}})


def turned_width(situation: Situation, failure: Failure) -> Plan | None:
    """Heads that are not as wide as the rotary angles, which follow from the hidden size alone."""
    widths = failure.numbers(
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 3"
    )
    if widths is None or not re.search(r"\b(cos|sin)\b", failure.line):
        return None
    values = {
        (type(part).__name__, name): widths[1]
        for part in situation.parts
        for name, value in fields_of(part).items()
        if isinstance(name, str) and kind_of(name) is Kind.HEAD_WIDTH and value == widths[0]
    }
    return situation.plan.with_values(values) if values else None


def by_layer_type(situation: Situation, failure: Failure) -> Plan | None:
    """Rotary parameters that are needed for each type of layer."""
    kind = failure.error.args[0] if isinstance(failure.error, KeyError) else None
    owner, rope, types = None, None, []
    for part in situation.parts:
        if kind in (fields_of(part).get("layer_types") or ()):
            owner, types = type(part).__name__, fields_of(part)["layer_types"]
            rope = fields_of(part).get("rope_parameters")
    if owner is None or not isinstance(rope, dict) or kind in rope:
        return None
    single = rope if "rope_type" in rope else {"rope_type": "default", "rope_theta": 10000.0}
    return situation.plan.with_values(
        {(owner, "rope_parameters"): {each: dict(single) for each in set(types)}}
    )
