"""What the configuration lacks, told from an error."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from transformers import PretrainedConfig

from gclint.verify.worker.synthesis.failure import Failure
from gclint.verify.worker.synthesis.fields import Kind, kind_of
from gclint.verify.worker.synthesis.plan import Plan, Situation
from gclint.verify.worker.synthesis.tree import children, fields_of


def _another_part(situation: Situation, failure: Failure) -> Plan | None:
    """A field that only a sub-configuration has: the class wants that one."""
    missing = re.search(r"'(\w+)' object has no attribute '(\w+)'", failure.message)
    if missing is None or type(situation.config).__name__ != missing[1] or situation.plan.inside is not None:
        return None
    if not any("super().__init__" in line or "model_class(" in line for _, line in failure.frames):
        return None
    fitting = [
        name
        for name, child in children(situation.whole)
        if isinstance(child, PretrainedConfig) and hasattr(child, missing[2])
    ]
    task = situation.model_class.__name__.removeprefix(type(situation.whole).__name__.removesuffix("Config"))
    explicit = task.startswith(("Model", "For"))
    named = [
        name for name in fitting if name.removesuffix("_config") in situation.model_class.__name__.lower()
    ]
    other = "encoder" if "Decoder" in situation.model_class.__name__ else "decoder"
    fitting = named or [name for name in fitting if not name.startswith(other) and not explicit]
    return replace(situation.plan, inside=fitting[0]) if fitting else None


def _missing_field(situation: Situation, failure: Failure) -> Plan | None:
    """A field that the configuration class does not have."""
    missing = re.search(r"'(\w+Config)' object has no attribute '(\w+)'", failure.message)
    if missing is None:
        return None
    absent = 0 if kind_of(missing[2]) is Kind.TOKEN else False if missing[2].endswith("bias") else None
    if absent is not None:
        return replace(situation.plan, values={**situation.plan.values, (missing[1], missing[2]): absent})
    return _with_value(situation, missing[1], missing[2])


def _shared_keys(situation: Situation, failure: Failure) -> Plan | None:
    """A stack that goes on with the keys of another one, whose heads are of another width."""
    widths = failure.numbers(r"must match except in dimension 2. Expected size (\d+) but got size (\d+)")
    if widths is None or "key_states" not in failure.frames[0][1]:
        return None
    return replace(situation.plan, values={**situation.plan.values, ("=", "head_dim"): min(widths)})


def _empty_field(situation: Situation, failure: Failure) -> Plan | None:
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


def _attention_layers(situation: Situation, failure: Failure) -> Plan | None:
    """A hybrid whose default has no layer with attention."""
    types = situation.get("layer_types")
    if "can only be called on Attention layers" not in failure.message:
        return None
    if "attn_layer_indices" in fields_of(situation.config):
        count = situation.get("num_hidden_layers") + 2
        values = {("=", "attn_layer_indices"): [count - 2, count - 1], ("=", "num_hidden_layers"): count}
        return replace(situation.plan, values={**situation.plan.values, **values})
    if not isinstance(types, list):
        return None
    mixed = [*types[: len(types) // 2], *["full_attention"] * (len(types) - len(types) // 2)]
    values = {**situation.plan.values, ("=", "layer_types"): mixed}
    return replace(situation.plan, values=values)


def _sections(situation: Situation, failure: Failure) -> Plan | None:
    """Sections of rotary positions that the model file has a default for."""
    numbers = failure.numbers(r"split_sizes to sum exactly to (\d+)")
    rope = situation.get("rope_parameters", "rope_scaling")
    if (
        numbers is None
        or not isinstance(rope, dict)
        or not any("section" in word for word in failure.words())
    ):
        return None
    first = numbers[0] - 2 * (numbers[0] * 3 // 8)
    sections = [first, numbers[0] * 3 // 8, numbers[0] * 3 // 8]
    name = "rope_parameters" if situation.get("rope_parameters") else "rope_scaling"
    values = {**situation.plan.values, ("=", name): {**rope, "mrope_section": sections}}
    return replace(situation.plan, values=values)


def _encoder_only(situation: Situation, failure: Failure) -> Plan | None:
    """A class for encoders alone, whose configuration has a decoder by default."""
    if "encoder-only" not in failure.message:
        return None
    return replace(situation.plan, values={**situation.plan.values, ("=", "is_encoder_decoder"): False})


def _stages(situation: Situation, failure: Failure) -> Plan | None:
    """A head that reads several stages of its backbone."""
    found = re.search(r"(out_indices) to be a list of (\d+) integers", failure.message)
    if found is None:
        return None
    count = int(found[2])
    chosen = list(range(1, count + 1))
    values = {
        ("=", "num_hidden_layers"): count,
        ("=", "stage_names"): ["stem", *(f"stage{number}" for number in chosen)],
        ("=", "_out_indices"): chosen,
        ("=", "_out_features"): [f"stage{number}" for number in chosen],
    }
    return replace(situation.plan, values={**situation.plan.values, **values})


def _no_cache(situation: Situation, failure: Failure) -> Plan | None:
    """A stack that refuses a cache."""
    if "`use_cache` can only be set to `True`" not in failure.message:
        return None
    return replace(situation.plan, values={**situation.plan.values, ("=", "use_cache"): False})


def _all_empty(situation: Situation, failure: Failure) -> Plan | None:
    """Every field that is None and that the rules know a number for, where the error does not name one."""
    if "None" not in failure.message and not isinstance(failure.error, TypeError):
        return None
    values = dict(situation.plan.values)
    for part in situation.parts:
        annotations = getattr(type(part), "__annotations__", {})
        for name, value in fields_of(part).items():
            counted = kind_of(name) in _NUMBERS or "int" in str(annotations.get(name))
            if (
                value is None
                and isinstance(name, str)
                and counted
                and _listed(situation, name, _usual(name, situation)) is not None
            ):
                values.setdefault(("", name), _listed(situation, name, _usual(name, situation)))
    return replace(situation.plan, values=values)


def _lists(situation: Situation, failure: Failure) -> Plan | None:
    """A field that is a tuple where the model adds it to a list."""
    if 'can only concatenate list (not "tuple")' not in failure.message:
        return None
    values = dict(situation.plan.values)
    for word in failure.words():
        if isinstance(situation.get(word), tuple):
            values["=", word] = list(situation.get(word))
    return replace(situation.plan, values=values)


def _rope_by_type(situation: Situation, failure: Failure) -> Plan | None:
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
    values = {
        **situation.plan.values,
        (owner, "rope_parameters"): {kind: dict(single) for kind in set(types)},
    }
    return replace(situation.plan, values=values)


def _with_value(situation: Situation, owner: str, name: str) -> Plan | None:
    value = _usual(name, situation)
    if value is None or (owner, name) in situation.plan.values:
        return None
    value = _listed(situation, name, value)
    return replace(situation.plan, values={**situation.plan.values, (owner, name): value})


def _listed(situation: Situation, name: str, value: Any) -> Any:
    """Return two of ``value`` where its class says that the field ``name`` is a list."""
    for part in situation.parts:
        said = str(getattr(type(part), "__annotations__", {}).get(name, ""))
        if name in fields_of(part) and re.match(r"(list|tuple)\[(int|float)", said):
            return [fields_of(part).get(name.removesuffix("s"), value)] * 2
    return value


def _usual(name: str, situation: Situation) -> Any:
    """Return what the field ``name`` has in tiny models."""
    sizes = situation.plan.sizes
    if "theta" in name:
        return 10000.0
    if "dropout" in name:
        return 0.1
    if "clip" in name:
        return 8.0
    if "shared_experts" in name:
        return 1
    if "initializer" in name:
        return 0.1
    usual = {
        Kind.WIDTH: sizes.width,
        Kind.HEADS: sizes.heads,
        Kind.KEY_HEADS: sizes.heads,
        Kind.HEAD_WIDTH: situation.get("head_dim", default=sizes.width // sizes.heads),
        Kind.LAYERS: sizes.layers,
        Kind.VOCABULARY: sizes.vocabulary,
        Kind.POSITIONS: sizes.positions,
        Kind.EXPERTS: sizes.experts,
        Kind.CHOSEN: 2,
        Kind.IMAGE: sizes.image,
        Kind.PATCH: sizes.patch,
        Kind.MEL: sizes.mel,
        Kind.QUERIES: sizes.queries,
        Kind.WINDOW: 8,
        Kind.CHUNK: 8,
    }
    kind = kind_of(name)
    if kind in (Kind.TOKEN, Kind.DROP, Kind.SPREAD):
        return None
    if kind in (None, Kind.KEEP):
        return 4 if re.search("length|num|size|count|dim|budget|ratio|_n_|_top", name) else None
    return usual.get(kind)


_NUMBERS = {Kind.WIDTH, Kind.HEADS, Kind.KEY_HEADS, Kind.HEAD_WIDTH, Kind.LAYERS, Kind.EXPERTS, Kind.CHOSEN}
REPAIRS: tuple[Any, ...] = (
    _another_part, _attention_layers, _encoder_only, _stages, _sections, _no_cache, _lists, _rope_by_type,
    _shared_keys, _missing_field, _empty_field,
)  # fmt: skip
LAST: tuple[Any, ...] = (_all_empty,)
