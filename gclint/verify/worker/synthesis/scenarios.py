"""Features that hide defects while they are off, each switched on by itself."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gclint.verify.worker.synthesis.inputs import make_inputs
from gclint.verify.worker.synthesis.plan import Plan, Situation
from gclint.verify.worker.synthesis.tree import fields_of

_CROSS = "encoder_hidden_states"


def further_plans(default: Situation) -> Iterator[tuple[str, Plan]]:
    """Yield the scenarios that apply to a class besides the ``default`` one, with what to do differently."""
    if _CROSS in default.parameters and _CROSS not in make_inputs(default):
        yield "cross-attention", _cross_attention(default)
    if fields_of(default.text).get("num_kv_shared_layers") == 0:
        yield "key-value sharing", _sharing(default)


def takes_part(default: Situation, scenario: str, model: Any) -> bool:
    """Tell whether what ``scenario`` switches on is there in ``model``, after a step."""
    if scenario != "cross-attention":
        return True
    return any(
        parameter.grad is not None
        and any(word in name for word in ("cross", "encoder_attn", "crossattention"))
        for name, parameter in model.named_parameters()
    ) or _is_stream(default)


def _is_stream(default: Situation) -> bool:
    """Tell whether a decoder by itself reads the encoder's output in each of its layers."""
    return default.is_for("Decoder")


def _cross_attention(default: Situation) -> Plan:
    values = dict(default.plan.values)
    for name in ("is_decoder", "add_cross_attention"):
        if hasattr(default.config, name):
            values[type(default.config).__name__, name] = True
    return replace(default.plan, also=default.plan.also | {_CROSS}, values=values)


def _sharing(default: Situation) -> Plan:
    """Let as many layers as there are now be followed by as many that take keys and values from them."""
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
    return replace(default.plan, values={**default.plan.values, **values})


def _continued(specification: Any, count: int) -> Any:
    """Return what says how layers differ, with ``count`` more layers that are like the first ones."""
    further = copy.copy(specification)
    overrides = dict(specification.per_layer_overrides)
    overrides |= {layer + count: fields for layer, fields in overrides.items()}
    further.per_layer_overrides = overrides
    return further
