"""Finds the optional features of a class, which hide defects while they are disabled."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import fields_of
from gclint.verify.worker.synthesis.inputs.forward import make_inputs
from gclint.verify.worker.synthesis.inputs.plan import Plan
from gclint.verify.worker.synthesis.inputs.situation import Situation

_CROSS = "encoder_hidden_states"


def further_plans(default: Situation) -> Iterator[tuple[str, Plan]]:
    """Yield the optional features of a class by name, each with the plan that enables it."""
    if _CROSS in default.parameters and _CROSS not in make_inputs(default):
        yield "cross-attention", _cross_attention(default)
    if fields_of(default.text).get("num_kv_shared_layers") == 0:
        yield "key-value sharing", _sharing(default)


def takes_part(default: Situation, feature: str, model: Any) -> bool:
    """Return whether ``feature`` took part in the step that ``model`` has run."""
    if feature != "cross-attention":
        return True
    return any(
        parameter.grad is not None
        and any(word in name for word in ("cross", "encoder_attn", "crossattention"))
        for name, parameter in model.named_parameters()
    ) or _reads_encoder(default)


def _reads_encoder(default: Situation) -> bool:
    """Return whether a decoder, used alone, reads the encoder's output in each of its layers."""
    return default.is_for("Decoder")


def _cross_attention(default: Situation) -> Plan:
    owner, names = type(default.config).__name__, ("is_decoder", "add_cross_attention")
    plan = default.plan.with_values({(owner, name): True for name in names if hasattr(default.config, name)})
    return replace(plan, also=plan.also | {_CROSS})


def _sharing(default: Situation) -> Plan:
    """Double the layers, so that the second half takes keys and values from the first."""
    fields = fields_of(default.text)
    count = fields["num_hidden_layers"]
    owner = type(default.text).__name__
    values: dict[tuple[str, str], Any] = {
        (owner, name): value * 2
        for name, value in fields.items()
        if isinstance(value, list) and len(value) == count and not name.startswith("_")
    }
    specification = fields.get("_heterogeneity_spec")
    if specification is not None:
        values[owner, "_heterogeneity_spec"] = _continued(specification, count)
    values[owner, "num_hidden_layers"] = 2 * count
    values[owner, "num_kv_shared_layers"] = count
    return default.plan.with_values(values)


def _continued(specification: Any, count: int) -> Any:
    """Return a field with an entry per layer, extended by ``count`` layers like the first ones."""
    further = copy.copy(specification)
    overrides = dict(specification.per_layer_overrides)
    overrides |= {layer + count: fields for layer, fields in overrides.items()}
    further.per_layer_overrides = overrides
    return further
