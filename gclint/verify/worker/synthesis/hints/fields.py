"""Fields and rotary parameters that are missing or None, and their values in tiny models."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.configurations.fields import Unit, kind_of
from gclint.verify.worker.synthesis.configurations.tree import fields_of
from gclint.verify.worker.synthesis.hints.failure import ForwardError
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

_NUMBERS = {Unit.WIDTH, Unit.HEADS, Unit.KEY_HEADS, Unit.HEAD_WIDTH, Unit.LAYERS, Unit.EXPERTS, Unit.CHOSEN}


def missing(situation: Situation, failure: ForwardError) -> Plan | None:
    """A field that the configuration class does not have."""
    missing = re.search(r"'(\w+Config)' object has no attribute '(\w+)'", failure.message)
    if missing is None:
        return None
    absent = 0 if kind_of(missing[2]) is Unit.TOKEN else False if missing[2].endswith("bias") else None
    if absent is not None:
        return situation.plan.with_values({(missing[1], missing[2]): absent})
    return _with_value(situation, missing[1], missing[2])


def empty(situation: Situation, failure: ForwardError) -> Plan | None:
    """A field that is None where a number is needed."""
    if not isinstance(failure.error, TypeError) and not re.search(
        "None|specif|defin|set|argument", failure.message
    ):
        return None
    empty = {
        name
        for part in situation.parts
        for name, value in fields_of(part).items()
        if value is None and isinstance(name, str) and not name.startswith("_")
    }
    words = list(failure.words())
    empty -= {name for _, name in situation.plan.values}
    asked = next(
        (name for name in sorted(empty) if kind_of(name) is Unit.TOKEN and name in failure.message), None
    )
    if asked is not None:
        return situation.plan.with_values({("", asked): situation.get("pad_token_id", default=0)})
    for word in words:
        for name in empty if isinstance(failure.error, TypeError) else ():
            if name == word or (name.endswith("_" + word) and len(word) > 5):
                plan = _with_value(situation, "", name)
                if plan is not None:
                    return plan
        if word in empty:
            plan = _with_value(situation, "", word)
            if plan is not None:
                return plan
    return None


def all_empty(situation: Situation, failure: ForwardError) -> Plan | None:
    """All fields that are None and have a usual number, if the error names none of them."""
    if "None" not in failure.message and not isinstance(failure.error, TypeError):
        return None
    if re.search(r"required (positional|keyword-only) argument", failure.message):
        return None
    values = dict(situation.plan.values)
    for part in situation.parts:
        annotations = getattr(type(part), "__annotations__", {})
        for name, value in fields_of(part).items():
            is_number = kind_of(name) in _NUMBERS or "int" in str(annotations.get(name))
            if value is None and isinstance(name, str) and is_number:
                usual = _listed(situation, name, _usual(name, situation))
                if usual is not None:
                    values.setdefault(("", name), usual)
    return replace(situation.plan, values=values)


def _with_value(situation: Situation, owner: str, name: str) -> Plan | None:
    value = _usual(name, situation)
    if value is None or (owner, name) in situation.plan.values:
        return None
    value = _listed(situation, name, value)
    return situation.plan.with_values({(owner, name): value})


def _listed(situation: Situation, name: str, value: Any) -> Any:
    """Return two of ``value`` if a configuration class declares the field ``name`` as a list."""
    for part in situation.parts:
        declared = str(getattr(type(part), "__annotations__", {}).get(name, ""))
        if name in fields_of(part) and re.match(r"(list|tuple)\[(int|float)", declared):
            return [fields_of(part).get(name.removesuffix("s"), value)] * 2
    return value


def _usual(name: str, situation: Situation) -> Any:
    """Return the value of the field ``name`` in tiny models, or None if it has no usual one."""
    sizes = situation.plan.sizes
    if "theta" in name:
        return 10000.0
    if "dropout" in name or name.endswith("pdrop"):
        return 0.1
    if "logit_scale" in name:
        return 2.0
    if "clip" in name:
        return 8.0
    if "shared_experts" in name:
        return 1
    if "initializer" in name:
        return 0.1
    usual = {
        Unit.WIDTH: sizes.width,
        Unit.HEADS: sizes.heads,
        Unit.KEY_HEADS: sizes.heads,
        Unit.HEAD_WIDTH: situation.get("head_dim", default=sizes.width // sizes.heads),
        Unit.LAYERS: sizes.layers,
        Unit.VOCABULARY: sizes.vocabulary,
        Unit.POSITIONS: sizes.positions,
        Unit.EXPERTS: sizes.experts,
        Unit.CHOSEN: 2,
        Unit.IMAGE: sizes.image,
        Unit.PATCH: sizes.patch,
        Unit.MEL: sizes.mel,
        Unit.QUERIES: sizes.queries,
        Unit.WINDOW: 8,
        Unit.CHUNK: 8,
    }
    kind = kind_of(name)
    if kind in (Unit.TOKEN, Unit.DROP, Unit.SPREAD):
        return None
    if kind in (None, Unit.KEEP):
        return 4 if re.search("length|num|size|count|dim|budget|ratio|_n_|_top", name) else None
    return usual.get(kind)


def scaling(situation: Situation, failure: ForwardError) -> Plan | None:
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


def _sections_of_axes(total: int) -> list[int]:
    """Return sections for time, height and width that add up to ``total``."""
    side = total * 3 // 8
    return [total - 2 * side, side, side]


def sections(situation: Situation, failure: ForwardError) -> Plan | None:
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


def turned_width(situation: Situation, failure: ForwardError) -> Plan | None:
    """Heads that are not as wide as the rotary angles, which follow from the hidden size alone."""
    widths = failure.mismatch(3)
    if widths is None or not re.search(r"\b(cos|sin)\b", failure.line):
        return None
    values = {
        (type(part).__name__, name): widths[1]
        for part in situation.parts
        for name, value in fields_of(part).items()
        if isinstance(name, str) and kind_of(name) is Unit.HEAD_WIDTH and value == widths[0]
    }
    return situation.plan.with_values(values) if values else None


def by_layer_type(situation: Situation, failure: ForwardError) -> Plan | None:
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
