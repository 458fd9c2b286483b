"""Layers that are too narrow or too wide for their input, and lists of the kinds of layers."""

from __future__ import annotations

import inspect
import re
from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import fields_of
from gclint.verify.worker.synthesis.hints.failure import Failure, constructor_of, is_module
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

_SHARED_WIDTHS = {"hidden_size", "d_model", "embed_dim", "n_embd", "dim"}
"""Fields that too many layers depend on to be changed for one of them."""


def input_width(situation: Situation, failure: Failure) -> Plan | None:
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


def kinds(situation: Situation, failure: Failure) -> Plan | None:
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
