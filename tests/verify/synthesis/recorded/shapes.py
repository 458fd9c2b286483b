"""Cases of hints about the shapes of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gclint.verify.worker.synthesis.inputs.situation import Plan
from tests.verify.synthesis.recorded.case import Case, Floats, Integers, Listed, ToyConfig, at

_STATES = {"hidden_states": Floats(2, 12, 64)}
_FEATURES = {"input_features": Floats(2, 64, 32)}
_PIXELS = {"pixel_values": Floats(2, 3, 32, 32)}
_TEXT = {"input_ids": Integers(2, 12)}


def _reshaped(message: str, shape: tuple[int, ...], line: str = "self.narrow(hidden_states)") -> Case:
    return Case(
        message,
        {"shapes": {"hidden_states": shape}},
        frames=(at("F.linear(input, self.weight)", input=_STATES["hidden_states"]), at(line)),
        inputs=_STATES,
    )


def _convolved(
    inputs: Mapping[str, Any], changes: Mapping[str, Any], channels: tuple[int, int], layer: str
) -> Case:
    (value,) = inputs.values()
    return Case(
        f"Given groups=1, weight of size [64, {channels[0]}, 3], expected input{list(value.shape)} to have "
        f"{channels[0]} channels, but got {channels[1]} channels instead",
        changes,
        frames=(at(f"return F.{layer}(input, weight)", input=value),),
        inputs=inputs,
    )


CASES = {
    "dimensions": (
        Case(
            "not enough values to unpack (expected 4, got 3)",
            {"ranks": {"hidden_states": 4}},
            error=ValueError,
            frames=(at("batch, count, length, width = hidden_states.shape", **_STATES),),
            inputs=_STATES,
        ),
        # What was learnt of its shape does not hold any more.
        Case(
            "too many values to unpack (expected 2)",
            {"ranks": {"hidden_states": 2}, "shapes": {}},
            error=ValueError,
            frames=(at("length, width = hidden_states.size()", **_STATES),),
            inputs=_STATES,
            plan=Plan(shapes={"hidden_states": (2, 12, 64)}),
        ),
        # One more than is named before the last one.
        Case(
            "not enough values to unpack (expected 3, got 2)",
            {"ranks": {"hidden_states": 4}},
            error=ValueError,
            frames=(at("batch, count, length = hidden_states.shape[:-1]", **_STATES),),
            inputs=_STATES,
        ),
        # An outer module has put a dimension in front, or the first two together.
        Case(
            "not enough values to unpack (expected 5, got 4)",
            {"ranks": {"hidden_states": 4}},
            error=ValueError,
            frames=(
                at("a, b, c, d, e = hidden_states.shape", hidden_states=Floats(1, 2, 12, 64)),
                at("self.layer(hidden_states[None])"),
            ),
            inputs=_STATES,
        ),
        Case(
            "not enough values to unpack (expected 3, got 2)",
            {"ranks": {"hidden_states": 4}},
            error=ValueError,
            frames=(at("a, b, c = hidden_states.shape", hidden_states=Floats(24, 64)),),
            inputs=_STATES,
        ),
        # An inner module calls it something else.
        Case(
            "not enough values to unpack (expected 4, got 3)",
            {"ranks": {"input_features": 4}},
            error=ValueError,
            frames=(at("a, b, c, d = x.shape", x=Floats(2, 64, 32), y=Floats(2)),),
            inputs={**_TEXT, "mask": Integers(2, 64, 32), **_FEATURES},
        ),
        Case(
            "Dimension out of range (expected to be in range of [-3, 2], but got 3)",
            {"ranks": {"input_features": 4}},
            error=IndexError,
            frames=(at("input_features.transpose(1, 3)", **_FEATURES),),
            inputs=_FEATURES,
        ),
        Case(
            "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [32, 192]",
            {"ranks": {"pixel_values": 4}},
            frames=(at("return F.conv2d(input)", input=Floats(32, 192)),),
            inputs={"pixel_values": Floats(32, 192)},
        ),
    ),
    "width": (
        _reshaped(
            "Given normalized_shape=[24], expected input with shape [*, 24], but got input of size[24, 64]",
            (2, 12, 24),
        ),
        _reshaped("mat1 and mat2 shapes cannot be multiplied (24x64 and 24x64)", (2, 12, 24)),
        _reshaped(
            "The size of tensor a (64) must match the size of tensor b (24) at non-singleton dimension 2",
            (2, 12, 24),
        ),
        # The input may stand on either side.
        _reshaped(
            "The size of tensor a (24) must match the size of tensor b (64) at non-singleton dimension 2",
            (2, 12, 24),
        ),
        _reshaped(
            "Expected size for first two dimensions of batch2 tensor to be: [2, 64] but got: [2, 24].",
            (2, 12, 24),
        ),
        _reshaped("The patches have width 64 but the model expects 24", (2, 12, 24)),
        # The last two dimensions were the other way round.
        Case(
            "mat1 and mat2 shapes cannot be multiplied (128x32 and 64x64)",
            {"transposed": frozenset({"input_features"})},
            frames=(at("F.linear(input, self.weight)", input=Floats(2, 64, 32)),),
            inputs=_FEATURES,
        ),
        # They have been changed round once.
        Case(
            "mat1 and mat2 shapes cannot be multiplied (128x32 and 64x64)",
            {"shapes": {"input_features": (2, 64, 64)}},
            frames=(at("F.linear(input, self.weight)", input=Floats(2, 64, 32)),),
            inputs=_FEATURES,
            plan=Plan(transposed=frozenset({"input_features"})),
        ),
        # Of several of the same size it is the one that the line names.
        Case(
            "mat1 and mat2 shapes cannot be multiplied (24x64 and 24x64)",
            {"shapes": {"other_states": (2, 12, 24)}},
            frames=(
                at("F.linear(input, self.weight)", input=Floats(2, 12, 64)),
                at("self.narrow(other_states)"),
            ),
            inputs={**_STATES, "other_states": Floats(2, 12, 64)},
        ),
        # Frames of a video where an image was given.
        Case(
            "The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 1",
            {"ranks": {"pixel_values": 5}},
            frames=(at("patches + self.times"),),
            inputs=_PIXELS,
            config=ToyConfig(num_frames=4),
        ),
        _convolved(_FEATURES, {"transposed": frozenset({"input_features"})}, (32, 64), "conv1d"),
        _convolved(_FEATURES, {"shapes": {"input_features": (2, 3, 8, 8)}}, (3, 64), "conv2d"),
        _convolved(_PIXELS, {"shapes": {"pixel_values": (2, 1, 32, 32)}}, (1, 3), "conv2d"),
    ),
    "mask": (
        Case(
            "The shape of the mask [2, 3] at index 1 does not match the shape of the indexed tensor "
            "[2, 12, 64] at index 1",
            {"shapes": {"image_mask": (2, 12)}},
            error=IndexError,
            inputs={"states": Floats(2, 3), "image_mask": Integers(2, 3)},
        ),
    ),
    "longer_mask": (
        Case(
            "The size of tensor a (16) must match the size of tensor b (12) at non-singleton dimension 3",
            {"shapes": {"attention_mask": (2, 16)}, "also": frozenset({"attention_mask"})},
            inputs=_TEXT,
            not_given=("attention_mask",),
        ),
        Case(
            "The size of tensor a (16) must match the size of tensor b (14) at non-singleton dimension 3",
            {"shapes": {"attention_mask": (3, 16)}, "also": frozenset({"attention_mask"})},
            inputs={**_TEXT, "attention_mask": Integers(3, 14)},
        ),
    ),
    "lengths": (
        Case(
            "split_with_sizes expects split_sizes to sum exactly to 13 (input tensor's size at dimension 1), "
            "but got split_sizes=[64, 64]",
            {"given": {"feature_lens": (6, 7)}},
            inputs={"hidden_states": Floats(2, 13, 64), "feature_lens": Listed(64, 64)},
        ),
        # Tiles of images.
        Case(
            "split_with_sizes expects split_sizes to sum exactly to 2 (input tensor's size at dimension 0), "
            "but got split_sizes=[3, 3]",
            {"shapes": {"pixel_values": (2, 3, 3, 32, 32)}},
            inputs=_PIXELS,
        ),
    ),
    "larger_batch": (
        Case(
            "shape '[0, 4, 16, 64]' is invalid for input of size 2048",
            {"shapes": {"pixel_values": (8, 3, 32, 32)}},
            inputs=_PIXELS,
            config=ToyConfig(num_frames=4),
        ),
        Case(
            "shape '[0, 16, 64]' is invalid for input of size 1536",
            {"shapes": {"hidden_states": (32, 12, 64)}},
            inputs=_STATES,
        ),
    ),
    "stated": (
        Case(
            "Input must be a 5D tensor of shape (batch_size, 2, 3, height, width)",
            {"shapes": {"pixel_values": (2, 2, 3, 32, 32)}},
            error=ValueError,
            inputs={"labels": Integers(2), **_PIXELS},
            config=ToyConfig(image_size=32),
        ),
    ),
    "single_item": (
        Case("shape '[2, 12, 64]' is invalid for input of size 768", {"single": True}, inputs=_TEXT),
    ),
}
