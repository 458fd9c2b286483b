"""Cases of hints about the part of a configuration that is wanted, and about its values."""

from __future__ import annotations

from typing import Any

from gclint.verify.worker.synthesis.configurations.shrinking import Sizes
from tests.verify.synthesis.recorded.case import Case, Part, ToyConfig, ToyTextConfig, at


class Inner(Part):
    def __init__(self, config: Any) -> None:
        self.sizes = (config.river, config.otters, config.pups)


_BUILT = (at("raise AttributeError("), at("model_class(own)"))
_CODER = ToyConfig(
    encoder=ToyTextConfig(river=1, model_type="text"), decoder_config=ToyTextConfig(kernels=(3, 1))
)
_TWO = ToyConfig(first=ToyTextConfig(river=1), second=ToyTextConfig(river=2, otters=3, pups=4))
_STAGES = {
    ("=", "num_hidden_layers"): 4,
    ("=", "stage_names"): ["stem", "stage1", "stage2", "stage3", "stage4"],
    ("=", "_out_indices"): [1, 2, 3, 4],
    ("=", "_out_features"): ["stage1", "stage2", "stage3", "stage4"],
}
_NO_ATTENTION = (
    "`get_seq_length` can only be called on Attention layers, and the current Cache seem to only contain "
    "LinearAttention layers."
)

CASES = {
    "another_part": (
        Case(
            "'ToyConfig' object has no attribute 'kernels'",
            {"inside": "decoder_config"},
            error=AttributeError,
            frames=_BUILT,
            config=_CODER,
            name="ToyDecoder",
        ),
        # The part that has all that the failing constructor reads.
        Case(
            "'ToyConfig' object has no attribute 'river'",
            {"inside": "second"},
            error=AttributeError,
            frames=(at("super().__init__(config)", self=Inner(vars(_TWO)["second"])),),
            config=_TWO,
        ),
    ),
    "attention_layers": (
        Case(
            _NO_ATTENTION,
            {"values": {("=", "attn_layer_indices"): [2, 3], ("=", "num_hidden_layers"): 4}},
            error=ValueError,
            config=ToyConfig(attn_layer_indices=[], num_hidden_layers=2),
        ),
        Case(
            _NO_ATTENTION,
            {"values": {("=", "layer_types"): ["conv", "full_attention"]}},
            error=ValueError,
            config=ToyConfig(layer_types=["conv", "conv"]),
        ),
    ),
    "encoder_only": (
        Case(
            "This is an encoder-only model",
            {"values": {("=", "is_encoder_decoder"): False}},
            error=ValueError,
            config=ToyConfig(is_encoder_decoder=True),
        ),
    ),
    "backbone_stages": (
        Case(
            "ToyHead requires config.out_indices to be a list of 4 integers",
            {"values": _STAGES},
            error=ValueError,
            config=ToyConfig(_out_indices=[2]),
        ),
    ),
    "no_cache": (
        Case(
            "`use_cache` can only be set to `True` if ToyStack is used as a decoder",
            {"values": {("=", "use_cache"): False}},
            error=AssertionError,
            config=ToyConfig(use_cache=True),
        ),
    ),
    "lists_for_tuples": (
        Case(
            'can only concatenate list (not "tuple") to list',
            {"values": {("=", "hidden_sizes"): [32, 64]}},
            error=TypeError,
            frames=(at("self.widths = [config.embed_dim] + config.hidden_sizes"),),
            config=ToyConfig(embed_dim=16, hidden_sizes=(32, 64), depths=(1, 1)),
        ),
    ),
    "more_heads": tuple(
        Case(message, {"sizes": Sizes(heads=8)}, error=ValueError)
        for message in (
            "input_channels must be divisible by 8, got 68",
            "The hidden_size + number of attention heads must be divisible by 8 as the number of groups is 8",
        )
    ),
    "eager_attention": (
        *(
            Case(message, {"attention": "eager"}, error=ValueError)
            for message in (
                "ToyModel does not support an attention implementation through torch",
                "unknown attn_implementation",
                "attention_implementation has to be another one",
                "sdpa is not supported here",
                "no scaled_dot_product_attention with relative positions",
                "only eager is supported here",
                "Flash Attention is not supported here",
                "Flex is not supported here",
            )
        ),
        # What is only about a mask or a layer.
        Case("the attention mask should be of size (2, 12)", None, error=ValueError),
    ),
}
