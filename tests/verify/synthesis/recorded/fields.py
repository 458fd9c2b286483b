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


CASES = {
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
