"""Cases of hints about images."""

from __future__ import annotations

from gclint.verify.worker.synthesis.configurations.shrinking import Sizes
from gclint.verify.worker.synthesis.inputs.situation import Plan
from tests.verify.synthesis.recorded.case import Case, Floats, Integers, ToyConfig, at

_LARGER = {"sizes": Sizes(image=64)}
_STAGES = ToyConfig(stage_names=["stem", "stage1", "stage2"], _out_indices=[2], _out_features=["stage2"])
_ALL_STAGES = {("=", "_out_indices"): [1, 2], ("=", "_out_features"): ["stage1", "stage2"]}
_PIXELS = {"pixel_values": Floats(2, 3, 32, 32)}

_OF_IMAGES = {
    "fewer_tokens": (
        Case(
            "shape '[2, 64, 16]' is invalid for input of size 512",
            {"values": {("=", "num_image_tokens"): 4}},
            frames=(at("patches.reshape(2, width, self.config.num_image_tokens)"),),
            config=ToyConfig(num_image_tokens=16),
        ),
    ),
    "larger_for_padding": (
        Case(
            "Argument #4: Padding size should be less than the corresponding input dimension, "
            "but got: padding (2, 2) at dimension 3 of input [2, 64, 2, 2]",
            # What was learnt of the small images is forgotten.
            {**_LARGER, "shapes": {"hidden_states": (2, 4)}},
            plan=Plan(shapes={"pixel_values": (2, 3, 32, 32), "hidden_states": (2, 4)}),
        ),
    ),
    "larger_for_windows": tuple(
        Case(message, {**_LARGER, "shapes": {}}, config=ToyConfig(window_size=8))
        for message in (
            "The size of tensor a (16) must match the size of tensor b (64) at non-singleton dimension 3",
            "output with shape [2, 4, 1, 1] doesn't match the broadcast shape [2, 4, 64, 64]",
            "Expected size for first two dimensions of batch2 tensor to be: [8, 64] but got: [8, 16].",
        )
    ),
    "larger_patches": (
        Case(
            "Sizes of tensors must match except in dimension 1. Expected size 16 but got size 8 "
            "for tensor number 1 in the list.",
            {"sizes": Sizes(patch=16)},
            config=ToyConfig(patch_size=8),
        ),
    ),
    "patch_grid": (
        Case(
            "Expected `image_tokens` to have shape `(batch_size, 1024)`, but got shape `torch.Size([2, 4])`.",
            {"values": {("=", "num_patches"): 2}},
            error=ValueError,
            config=ToyConfig(num_patches=32),
        ),
    ),
    "all_stages": (
        Case(
            "Given groups=1, weight of size [64, 128, 1, 1], expected input[2, 64, 4, 4] to have 128 "
            "channels, but got 64 channels instead",
            {"values": _ALL_STAGES},
            config=_STAGES,
        ),
    ),
    "every_stage": (
        Case("list index out of range", {"values": _ALL_STAGES}, error=IndexError, config=_STAGES),
    ),
    "stated_size": (
        Case(
            "Input image size (32*32) doesn't match model (48*40).",
            {"shapes": {"pixel_values": (2, 3, 48, 40), "bool_masked_pos": (2, 1, 48, 40)}},
            error=ValueError,
            inputs={**_PIXELS, "bool_masked_pos": Floats(2, 1, 32, 32), "input_features": Floats(2, 3, 8, 8)},
        ),
        # Two images put together are twice as high as one.
        Case(
            "Input image size (64*32) doesn't match model (128*32)",
            {"shapes": {"pixel_values": (2, 3, 64, 32)}},
            error=ValueError,
            inputs=_PIXELS,
        ),
        Case(
            "Input audio size (64*32) doesn't match model (128*16).",
            {"shapes": {"audio_values": (2, 1, 128, 16)}},
            error=ValueError,
            inputs={"audio_values": Floats(2, 1, 64, 32), **_PIXELS},
        ),
    ),
    "larger_for_pyramid": tuple(
        Case(message, _LARGER, inputs=_PIXELS)
        for message in (
            "Given input size: (64x1x1). Calculated output size: (64x0x0). Output size is too small",
            "Given input with spatial size (1, 1), kernel_size=(2, 2), dilation=(1, 1), padding=(0, 0), "
            "calculated shape of the array of sliding blocks as (0, 0), but its components must be at least "
            "one.",
            "Calculated padded input size per channel: (1 x 1). Kernel size: (2 x 2). "
            "Kernel size can't be greater than actual input size",
            "cannot reshape tensor of 0 elements into shape [2, -1, 0, 3] because the unspecified "
            "dimension size -1 can be any value and is ambiguous",
        )
    ),
    "larger_for_crops": (
        Case(
            "index 36 is out of bounds for dimension 1 with size 16",
            {**_LARGER, "shapes": {}},
            frames=(at("windows.gather(1, indices)"),),
            inputs=_PIXELS,
            main_input="pixel_values",
        ),
    ),
}


_SAMPLES = Floats(2, 7760)

_OF_AUDIO = {
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


CASES = {**_OF_IMAGES, **_OF_AUDIO}
