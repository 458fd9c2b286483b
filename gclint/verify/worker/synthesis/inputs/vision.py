"""Images and videos, as pixels or as rows of patches."""

from __future__ import annotations

from typing import Any

import torch

from gclint.verify.worker.synthesis.inputs.patches import patches
from gclint.verify.worker.synthesis.inputs.placeholders import channel_count, get_vision, patch_side
from gclint.verify.worker.synthesis.inputs.situation import Situation
from gclint.verify.worker.synthesis.inputs.tiles import several, tiles


def side(situation: Situation) -> tuple[int, int]:
    """Return height and width of an image in pixels."""
    size = get_vision(situation, "image_size", "img_size", default=situation.plan.sizes.image)
    if isinstance(size, dict):
        size = (size.get("height", 32), size.get("width", 32))
    if not isinstance(size, list | tuple):
        size = (size, size)
    return int(size[0]), int(size[-1])


def _pixel_values(situation: Situation) -> torch.Tensor:
    cut = patches(situation, "pixel_values")
    cut = tiles(situation, side(situation)) if cut is None else cut
    cut = several(situation, side(situation)) if cut is None else cut
    return (
        situation.floats("pixel_values", situation.plan.batch, channel_count(situation), *side(situation))
        if cut is None
        else cut
    )


def _pixel_values_videos(situation: Situation) -> torch.Tensor:
    cut = patches(situation, "pixel_values_videos")
    if cut is not None:
        return cut
    frames = situation.get("num_frames", "frames_per_clip", default=4)
    return situation.floats(
        "pixel_values_videos", situation.plan.batch, frames, channel_count(situation), *side(situation)
    )


def _image_sizes(situation: Situation) -> torch.Tensor:
    return torch.tensor([side(situation)] * situation.plan.batch)


def _bool_masked_pos(situation: Situation) -> Any:
    height, width = side(situation)
    count = (height // patch_side(situation)) * (width // patch_side(situation))
    return situation.integers("bool_masked_pos", 0, 2, situation.plan.batch, count).bool()


def _codes_of_patches(situation: Situation) -> torch.Tensor:
    """Return the index of each patch of an image in a codebook."""
    return situation.integers("mim_labels", 0, 8, *_bool_masked_pos(situation).shape)


VISION = (
    (r"pixel_values|high_res_pixel_values|conditional_pixel_values|prompt_pixel_values", _pixel_values, True),
    (r"pixel_values_videos", _pixel_values_videos, True),
    (r"image_sizes", _image_sizes, True),
    (r"bool_masked_pos", _bool_masked_pos, False),
    (r"mim_labels", _codes_of_patches, False),
)
