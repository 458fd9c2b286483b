"""Configurations that suit a class: the right part, kinds and widths of layers, attention, switches."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import children, fields_of, is_configuration_class
from gclint.verify.worker.synthesis.hints.failure import ForwardError, constructor_of, is_module
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

_SEVERAL = 3
"""How many fields a configuration must lack before another one is considered."""
_SHARED_WIDTHS = {"hidden_size", "d_model", "embed_dim", "n_embd", "dim"}
"""Fields that too many layers depend on to be changed for one of them."""


def another_part(situation: Situation, failure: ForwardError) -> Plan | None:
    """A field that only a sub-configuration has, which is the one that the class takes."""
    missing = re.search(r"'(\w+)' object has no attribute '(\w+)'", failure.message)
    if missing is None or type(situation.config).__name__ != missing[1] or situation.plan.inside is not None:
        return None
    if not any("super().__init__" in line or "model_class(" in line for _, line in failure.frames):
        return None
    fitting = [
        name
        for name, child in children(situation.whole)
        if is_configuration_class(type(child)) and hasattr(child, missing[2])
    ]
    task = situation.model_class.__name__.removeprefix(type(situation.whole).__name__.removesuffix("Config"))
    explicit = task.startswith(("Model", "For"))
    named = [
        name for name in fitting if name.removesuffix("_config") in situation.model_class.__name__.lower()
    ]
    named = named or _fitting_by_source(situation, failure, fitting)
    other = "encoder" if "Decoder" in situation.model_class.__name__ else "decoder"
    fitting = named or [name for name in fitting if not name.startswith(other) and not explicit]
    return replace(situation.plan, inside=fitting[0]) if fitting else None


def _fitting_by_source(situation: Situation, failure: ForwardError, names: list[str]) -> list[str]:
    """Return the sub-configurations among ``names`` that have each field that the failing constructors read.

    A single field may be missing for another reason, so the configuration must lack several of them.
    """
    texts = (
        constructor_of(module)
        for variables, _ in failure.frames
        if is_module(module := variables.get("self"))
    )
    read = {name for text in texts for name in re.findall(r"\bconfig\.([a-z]\w*)", text)}
    if sum(not hasattr(situation.config, name) for name in read) < _SEVERAL:
        return []
    return [each for each in names if all(hasattr(getattr(situation.whole, each), name) for name in read)]


def attention_layers(situation: Situation, failure: ForwardError) -> Plan | None:
    """A hybrid model whose default configuration has no attention layer."""
    types = situation.get("layer_types")
    if "can only be called on Attention layers" not in failure.message:
        return None
    if "attn_layer_indices" in fields_of(situation.config):
        count = situation.get("num_hidden_layers") + 2
        values = {("=", "attn_layer_indices"): [count - 2, count - 1], ("=", "num_hidden_layers"): count}
        return situation.plan.with_values(values)
    if not isinstance(types, list):
        return None
    mixed = [*types[: len(types) // 2], *["full_attention"] * (len(types) - len(types) // 2)]
    return situation.plan.with_values({("=", "layer_types"): mixed})


def encoder_only(situation: Situation, failure: ForwardError) -> Plan | None:
    """A class for encoders alone, whose configuration has a decoder by default."""
    if "encoder-only" not in failure.message:
        return None
    return situation.plan.with_values({("=", "is_encoder_decoder"): False})


def backbone_stages(situation: Situation, failure: ForwardError) -> Plan | None:
    """A head that needs a given number of stages of its backbone."""
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
    return situation.plan.with_values(values)


def no_cache(situation: Situation, failure: ForwardError) -> Plan | None:
    """A stack that rejects a cache."""
    if "`use_cache` can only be set to `True`" not in failure.message:
        return None
    return situation.plan.with_values({("=", "use_cache"): False})


def lists_for_tuples(situation: Situation, failure: ForwardError) -> Plan | None:
    """A field that is a tuple where the model adds it to a list."""
    if 'can only concatenate list (not "tuple")' not in failure.message:
        return None
    tuples = [word for word in failure.words() if isinstance(situation.get(word), tuple)]
    return situation.plan.with_values({("=", word): list(situation.get(word)) for word in tuples})


def input_width(situation: Situation, failure: ForwardError) -> Plan | None:
    """A layer that is not as wide as its input, such as one that joins two parts of a model."""
    widths = failure.numbers(r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)")
    if widths is None:
        found = re.search(
            r"normalized_shape=\[(\d+)\], .{0,200} input of size\s*\[(?:\d+, )*(\d+)\]", failure.message
        )
        widths = (int(found[2]), int(found[1])) if found else None
    if widths is None:
        return None
    given, expected = widths
    for variables, line in failure.frames:
        module = variables.get("self")
        # The innermost call is written last.
        for attribute in re.findall(r"self\.(\w+)\(", line)[::-1] if is_module(module) else ():
            field = _field_of_width(situation, module, attribute, expected)
            if field is not None:
                plan = situation.plan.with_values({field: given})
                return plan if plan != situation.plan else None
    return None


def kinds(situation: Situation, failure: ForwardError) -> Plan | None:
    """A list of the kinds of layers that is None by default: two of each kind that its class names."""
    if "'NoneType' object is not subscriptable" not in failure.message:
        return None
    read = re.search(r"config\.(\w+)\[\w+\]", failure.line)
    if read is None:
        return None
    for part in situation.parts:
        name = str(getattr(type(part), "attribute_map", {}).get(read[1], read[1]))
        if fields_of(part).get(name, 0) is not None:
            continue
        allowed = re.search(r"not in \[((?:\s*\"\w+\",?)+)\]", inspect.getsource(type(part)))
        found = re.findall(r"\w+", allowed[1]) if allowed else []
        values = {
            (type(part).__name__, name): [each for each in found for _ in range(2)],
            (type(part).__name__, "num_hidden_layers"): 2 * len(found),
        }
        return situation.plan.with_values(values) if found else None
    return None


def _field_of_width(situation: Situation, module: Any, attribute: str, size: int) -> tuple[str, str] | None:
    """Return the configuration class and the field for the input width of a module's layer."""
    source = constructor_of(module)
    made = re.search(rf"self\.{attribute}\s*=\s*(?:\w+\.)*\w+\(\s*(?:\w+=)?((?:\w+\.)+\w+)\s*[,)]", source)
    if made is None:
        return None
    path = made[1]
    if path.startswith("self."):
        values = re.findall(rf"{re.escape(path)}\s*=\s*([\w.]+)\s*$", source, re.M)
        path = next((value for value in values if "config" in value.split(".")[:-1]), path)
    name = path.rsplit(".", 1)[-1]
    if name in _SHARED_WIDTHS or "config" not in path:
        return None
    annotation = re.search(r"config\s*:\s*(\w+)", source)
    owners = [type(each).__name__ for each in situation.parts if fields_of(each).get(name) == size]
    named = [each for each in owners if annotation and each == annotation[1]]
    return ((named or owners)[0], name) if owners else None


def enabled(situation: Situation, failure: ForwardError) -> Plan | None:
    """An attribute that the constructor only sets if a field of the configuration is true."""
    missing = re.search(r"'\w+' object has no attribute '(\w+)'", failure.message)
    module = getattr(failure.error, "obj", None)
    if missing is None or not is_module(module):
        return None
    source = constructor_of(module)
    for switch in re.finditer(r"^( +)if (?:self\.)?config\.(\w+):\n((?:\1 .*\n|\n)+)", source, re.M):
        owners = [type(part).__name__ for part in situation.parts if fields_of(part).get(switch[2]) is False]
        if f"self.{missing[1]} =" in switch[3] and owners:
            return situation.plan.with_values({(owners[0], switch[2]): True})
    return None
