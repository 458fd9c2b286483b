"""Cases of hints about audio."""

from __future__ import annotations

from tests.verify.synthesis.recorded.case import Case, Floats, Integers, at

_SAMPLES = Floats(2, 7760)

CASES = {
    "whole_multiple": (
        Case(
            "`input_values` length 7760 is not a multiple of 512",
            {"shapes": {"input_values": (2, 8192)}},
            error=ValueError,
            inputs={"input_values": _SAMPLES},
        ),
    ),
    "one_channel": (
        Case(
            "Given groups=1, weight of size [64, 1, 320], expected input[1, 2, 7760] to have 1 channels, "
            "but got 2 channels instead",
            {"ranks": {"input_values": 3}},
            inputs={"attention_mask": Integers(2, 12), "input_values": _SAMPLES},
        ),
        # What was padded at its start is longer than the input.
        Case(
            "Given groups=1, weight of size [64, 1, 320], expected input[1, 2, 7763] to have 1 channels, "
            "but got 2 channels instead",
            {"ranks": {"input_values": 3}},
            inputs={"attention_mask": Integers(2, 12), "input_values": _SAMPLES},
        ),
        Case(
            "too many indices for tensor of dimension 2",
            {"ranks": {"input_values": 3}},
            error=IndexError,
            frames=(at("input_values[:, 0, :length]"),),
            inputs={"attention_mask": Integers(2, 12), "input_values": _SAMPLES},
        ),
    ),
    "channels_last": (
        Case(
            "The size of tensor a (256) must match the size of tensor b (32) at non-singleton dimension 1",
            {"transposed": frozenset({"input_features"})},
            frames=(at("padding.mean(1, keepdim=True).mT + self.shift", padding=Floats(2, 2, 256)),),
            inputs={"input_features": Floats(2, 32, 256)},
        ),
    ),
    "one_token_each": (
        Case(
            "The size of tensor a (12) must match the size of tensor b (24) at non-singleton dimension 1",
            {"length": 24},
            frames=(at("self.layer(text + audio)"),),
            inputs={"input_ids": Integers(2, 12), "input_values": _SAMPLES},
        ),
        # Several streams of tokens, each of which has an offset of its own.
        Case(
            "The size of tensor a (12) must match the size of tensor b (4) at non-singleton dimension 1",
            None,
            frames=(at("self.embed_audio(input_ids + self.offsets)"),),
            inputs={"input_ids": Integers(2, 12)},
        ),
    ),
    "as_long_as_samples": (
        Case(
            "Sizes of tensors must match except in dimension 1. Expected size 24 but got size 256 "
            "for tensor number 1 in the list.",
            {"shapes": {"input_features": (2, 32, 24)}},
            frames=(at("torch.cat([codes, input_features], dim=1)"),),
            inputs={"input_values": _SAMPLES, "input_features": Floats(2, 32, 256)},
        ),
        Case(
            "Sizes of tensors must match except in dimension 1. Expected size 256 but got size 24 "
            "for tensor number 1 in the list.",
            {"shapes": {"input_features": (2, 32, 24)}},
            frames=(at("torch.cat([input_features, codes], dim=1)"),),
            inputs={"input_values": _SAMPLES, "input_features": Floats(2, 32, 256)},
        ),
    ),
    "stated_length": (
        Case(
            "The tower expects the mel input features to be of length 3000, but found 256. Make sure to "
            "pad the input mel features to 3000.",
            {"shapes": {"input_features": (2, 32, 3000)}},
            error=ValueError,
            inputs={"attention_mask": Integers(2, 256), "input_features": Floats(2, 32, 256)},
        ),
        Case(
            "The number of frames has to be a multiple of the chunk size (40), but got 256",
            {"shapes": {"input_features": (2, 32, 40)}},
            error=ValueError,
            inputs={"input_features": Floats(2, 32, 256)},
        ),
    ),
}
