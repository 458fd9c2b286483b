"""Cases of hints about fields that are not there, or empty."""

from __future__ import annotations

from typing import Any

from tests.verify.synthesis.recorded.case import Case, Part, ToyConfig, ToyTextConfig, at


class OtherConfig(ToyConfig):
    """One of the same file as what reads a field that only it has."""

    def __init__(self, activation: str = "silu", river: int = 3, **fields: Any) -> None:
        super().__init__(activation=activation, river=river, **fields)


_READER = Part()
_READER.__class__ = type("Reader", (Part,), {"__module__": __name__})
_LOST = Part()
_LOST.__class__ = type("Lost", (Part,), {"__module__": "a.module.that.nobody.has.loaded"})


def _missing(name: str, value: Any) -> Case:
    return Case(
        f"'ToyConfig' object has no attribute '{name}'",
        {"values": {("ToyConfig", name): value}},
        error=AttributeError,
        frames=(at("raise AttributeError("), at(f"config.{name}", self=_READER)),
    )


def _empty(
    message: str, name: str, value: Any, line: str = "", error: Any = TypeError, **fields: Any
) -> Case:
    return Case(
        message,
        {"values": {("", name): value}},
        error=error,
        frames=(at(line),),
        config=ToyConfig(**{name: None, **fields}),
    )


_OF_FIELDS = {
    "missing": (
        _missing("pad_token_id", 0),
        _missing("qkv_bias", False),
        _missing("intermediate_size", 64),
        _missing("rope_theta", 10000.0),
        _missing("attention_dropout", 0.1),
        _missing("logit_scale_init_value", 2.0),
        # The default of a class that has it, where the rules know nothing of the name or it is a word.
        _missing("river", 3),
        _missing("activation", "silu"),
        Case(
            "'ToyConfig' object has no attribute 'depth_of_the_sea'",
            None,
            error=AttributeError,
            frames=(at("config.depth_of_the_sea", self=_LOST),),
        ),
    ),
    "empty": (
        *(
            _empty(message, "prediction_length", 4, error=ValueError)
            for message in (
                "The `prediction_length` config needs to be specified.",
                "prediction_length is not defined",
                "prediction_length was never set",
                "prediction_length may not be None",
                "invalid argument prediction_length",
            )
        ),
        _empty(
            "unsupported operand type(s) for +: 'NoneType' and 'int'",
            "context_length",
            128,
            "config.context_length + config.prediction_length",
            prediction_length=4,
        ),
        # The line calls it by its last words only.
        _empty(
            "empty() takes 1 positional argument but 3 were given",
            "n_routed_experts",
            4,
            "torch.empty(self.routed_experts, 64)",
            other=None,
        ),
        # A token is that of padding.
        _empty("mask_token_id has to be set", "mask_token_id", 5, error=ValueError, pad_token_id=5),
    ),
    "all_empty": (
        Case(
            "topk(): argument 'k' (position 1) must be int, not NoneType",
            # What is not a number of something stays empty.
            {"values": {("", "num_experts_per_tok"): 2, ("", "moe_intermediate_size"): 64}},
            error=TypeError,
            frames=(at("scores.topk(self.k)"),),
            config=ToyConfig(
                num_experts_per_tok=None,
                hidden_size=64,
                label_names=None,
                text_config=ToyTextConfig(moe_intermediate_size=None),
            ),
        ),
        # What a call lacks, no field says.
        *(
            Case(
                f"ToyModel.forward() missing 1 required {kind} argument: 'reference_points'",
                None,
                error=TypeError,
                config=ToyConfig(num_experts=None),
            )
            for kind in ("positional", "keyword-only")
        ),
        Case(
            "'>' not supported with None",
            {"values": {("", "num_experts"): 4}},
            error=ValueError,
            config=ToyConfig(num_experts=None),
        ),
    ),
}


_HEADS = {"hidden_size": 64, "num_attention_heads": 4}
_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
_SECTIONS = {**_ROPE, "mrope_section": [2, 3, 3]}

_OF_ROPE = {
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


CASES = {**_OF_FIELDS, **_OF_ROPE}
