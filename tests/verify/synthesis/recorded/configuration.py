"""Cases of hints about the part of a configuration that is wanted, and about its values."""

from __future__ import annotations

from typing import Any

from gclint.verify.worker.synthesis.configurations.shrinking import Sizes
from tests.verify.synthesis.recorded.case import Case, Floats, Part, ToyConfig, ToyTextConfig, at


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

_OF_CONFIGURATION = {
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


def linear(width: int) -> Any:
    """Stand for a layer."""
    return width


class Joined(Part):
    def __init__(self, config: ToyConfig) -> None:
        self.join = linear(config.joined_size)
        self.width = config.normed_size
        self.norm = linear(self.width)
        self.stream = linear(config.hidden_size)


class KindsConfig(ToyConfig):
    """Names the kinds of its layers, and has none by default."""

    attribute_map = {"block_types": "layer_types"}  # noqa: RUF012

    def check(self) -> None:
        if any(each not in ["wide", "narrow"] for each in vars(self)["layer_types"]):
            raise ValueError


_WIDTHS = ToyConfig(hidden_size=64, joined_size=64, normed_size=64)
_MODULE = Joined(_WIDTHS)

_OF_LAYERS = {
    "input_width": (
        Case(
            "mat1 and mat2 shapes cannot be multiplied (2x256 and 64x64)",
            {"values": {("ToyConfig", "joined_size"): 256}},
            frames=(
                at("return F.linear(input, self.weight)", input=Floats(2, 256), self=Part()),
                # The innermost call is written last; a stream is no single layer's.
                at("return self.stream(self.join(features))", self=_MODULE),
            ),
            config=_WIDTHS,
        ),
        # Of several configurations with that field it is the one that the constructor names.
        Case(
            "mat1 and mat2 shapes cannot be multiplied (2x256 and 64x64)",
            {"values": {("ToyConfig", "joined_size"): 256}},
            frames=(at("return self.join(features)", self=_MODULE),),
            config=ToyTextConfig(joined_size=64, tower_config=_WIDTHS),
        ),
        # The width is kept under another name first.
        Case(
            "Given normalized_shape=[64], expected input with shape [*, 64], but got input of size[8, 32]",
            {"values": {("ToyConfig", "normed_size"): 32}},
            frames=(at("features = self.norm(features)", self=_MODULE),),
            config=_WIDTHS,
        ),
    ),
    "kinds": (
        Case(
            "'NoneType' object is not subscriptable",
            {
                "values": {
                    ("KindsConfig", "layer_types"): ["wide", "wide", "narrow", "narrow"],
                    ("KindsConfig", "num_hidden_layers"): 4,
                }
            },
            error=TypeError,
            frames=(at('self.times = 2 if config.block_types[index] == "wide" else 1'),),
            config=KindsConfig(layer_types=None, num_hidden_layers=2),
        ),
    ),
}


class Gated(Part):
    def __init__(self, config: Any) -> None:
        if config.use_bias:
            self.bias = 1
        if config.use_gate:
            self.gate = 2

            self.gate_norm = 3


_OF_SWITCHES = {
    "enabled": tuple(
        Case(
            f"'Gated' object has no attribute '{name}'",
            {"values": {("ToyConfig", "use_gate"): True}},
            error=AttributeError,
            obj=Gated(ToyConfig(use_bias=False, use_gate=False)),
            config=ToyConfig(use_bias=False, use_gate=False),
        )
        for name in ("gate", "gate_norm")
    ),
}


CASES = {**_OF_CONFIGURATION, **_OF_LAYERS, **_OF_SWITCHES}
