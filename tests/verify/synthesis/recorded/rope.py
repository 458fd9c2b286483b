"""Cases of hints about rotary positions."""

from __future__ import annotations

from tests.verify.synthesis.recorded.case import Case, ToyConfig, at

_HEADS = {"hidden_size": 64, "num_attention_heads": 4}
_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
_SECTIONS = {**_ROPE, "mrope_section": [2, 3, 3]}

CASES = {
    "scaling": tuple(
        Case(
            message,
            {"values": {("", "rope_scaling"): _SECTIONS, ("", "rope_parameters"): _SECTIONS}},
            error=error,
            frames=(at(line),),
            config=ToyConfig(**_HEADS),
        )
        for message, error, line in (
            (
                "'NoneType' object is not subscriptable",
                TypeError,
                'self.sections = config.rope_parameters["mrope_section"]',
            ),
            (
                "'NoneType' object has no attribute 'get'",
                AttributeError,
                'self.sections = config.rope_scaling.get("mrope_section")',
            ),
        )
    ),
    "named_sections": (
        Case(
            "axes_section",
            {"values": {("ToyConfig", "rope_parameters"): {**_ROPE, "axes_section": [2, 3, 3]}}},
            error=KeyError,
            config=ToyConfig(**_HEADS, rope_parameters=_ROPE),
        ),
        Case(
            "mrope_section",
            {"values": {("ToyConfig", "rope_scaling"): _SECTIONS}},
            error=KeyError,
            config=ToyConfig(**_HEADS, rope_scaling=_ROPE),
        ),
    ),
    "sections": (
        Case(
            "split_with_sizes expects split_sizes to sum exactly to 8 (input tensor's size at dimension -1), "
            "but got split_sizes=[16, 24, 24]",
            {"values": {("=", "rope_parameters"): _SECTIONS}},
            frames=(at("angles.split(sections, dim=-1)"), at("turned(states, mrope_section)")),
            config=ToyConfig(**_HEADS, rope_parameters=_ROPE),
        ),
        # Split with the sections twice.
        Case(
            "split_with_sizes expects split_sizes to sum exactly to 16 (input tensor's size at dimension -1)"
            ", but got split_sizes=[16, 24, 24, 16, 24, 24]",
            {"values": {("=", "rope_scaling"): _SECTIONS}},
            frames=(at("angles.split(mrope_section * 2, dim=-1)"),),
            config=ToyConfig(**_HEADS, rope_scaling=_ROPE),
        ),
    ),
    "turned_width": tuple(
        Case(
            "The size of tensor a (32) must match the size of tensor b (16) at non-singleton dimension 3",
            {"values": {("ToyConfig", "kv_channels"): 16}},
            frames=(at(line),),
            config=ToyConfig(kv_channels=32),
        )
        for line in ("return query * cos", "turned = halves(query) * sin")
    ),
    "by_layer_type": (
        Case(
            "full_attention",
            {
                "values": {
                    ("ToyConfig", "rope_parameters"): {"full_attention": _ROPE, "sliding_attention": _ROPE}
                }
            },
            error=KeyError,
            config=ToyConfig(
                layer_types=["full_attention", "sliding_attention"], rope_parameters=_ROPE, **_HEADS
            ),
        ),
        # One of the types is there, under its name.
        Case(
            "full_attention",
            {"values": {("ToyConfig", "rope_parameters"): {"full_attention": _ROPE}}},
            error=KeyError,
            config=ToyConfig(layer_types=["full_attention"], rope_parameters={"other": {}}),
        ),
    ),
}
