"""Images and videos that a processor has cut into patches, with the positions of the patches."""

from __future__ import annotations

import torch

from gclint.verify.worker.synthesis.inputs.documentation import documented
from gclint.verify.worker.synthesis.inputs.placeholders import (
    MERGES,
    POSITIONS,
    channel_count,
    get_vision,
    grid,
    in_blocks,
    is_packed,
    patch_side,
)
from gclint.verify.worker.synthesis.inputs.situation import Situation


def patches(situation: Situation, name: str) -> torch.Tensor | None:
    """Return the patches of the images ``name``, or None if the class takes whole images."""
    _, height, width = grid(situation)
    side, channels = patch_side(situation), channel_count(situation)
    if in_blocks(situation):
        merge = get_vision(situation, *MERGES, default=1)
        return situation.floats(
            name, situation.plan.batch * height * width, side * merge, side * merge, channels
        )
    if is_packed(situation):
        temporal = get_vision(situation, "temporal_patch_size", "patch_temporal", default=1)
        frames = _video_frames(situation) if "video" in name else 1
        return situation.floats(
            name, situation.plan.batch * frames * height * width, channels * temporal * side**2
        )
    if "target_sizes" in situation.parameters:
        return situation.floats(name, 1, channels, side, side * situation.plan.batch * height * width)
    if any(each in situation.parameters for each in POSITIONS):
        return situation.floats(name, situation.plan.batch, height * width, channels * side**2)
    return None


def _grid_thw(situation: Situation) -> torch.Tensor:
    # If images are counted per sample, the last one of each is to be generated, and has no pixels.
    each = 2 if "images_per_sample" in situation.parameters else 1
    return torch.tensor([grid(situation)] * situation.plan.batch * each)


def _images_per_sample(situation: Situation) -> torch.Tensor:
    return torch.full((situation.plan.batch,), 2)


def _video_frames(situation: Situation) -> int:
    """Return how many patches a video has along time.

    There are as few as possible: some models write time stamps between frames, so that each frame would need
    placeholders of its own.
    """
    return int(get_vision(situation, "temporal_merge_size", default=1))


def _video_grid_thw(situation: Situation) -> torch.Tensor:
    return torch.tensor([[_video_frames(situation), *grid(situation)[1:]]] * situation.plan.batch)


def _grid_hw(situation: Situation) -> torch.Tensor:
    return torch.tensor([grid(situation)[1:]] * situation.plan.batch)


def _positions(situation: Situation) -> torch.Tensor:
    _, height, width = grid(situation)
    one = torch.cartesian_prod(torch.arange(height), torch.arange(width)).flip(-1)
    return one.expand(situation.plan.batch, -1, -1).contiguous()


def _flattened(situation: Situation) -> torch.Tensor:
    """Return patches, each preceded by its row and column, counted from 1."""
    places = torch.cartesian_prod(torch.arange(1, 5), torch.arange(1, 5)).expand(situation.plan.batch, -1, -1)
    width = get_vision(
        situation, "patch_embed_hidden_size", default=channel_count(situation) * patch_side(situation) ** 2
    )
    return torch.cat(
        [places.float(), situation.floats("flattened_patches", situation.plan.batch, 16, width)], dim=-1
    )


def patch_mask(situation: Situation) -> torch.Tensor | None:
    """Return a mask of the patches that are not padding, if the class takes patches instead of images."""
    if not any(each in situation.parameters for each in POSITIONS):
        # For other classes, it masks pixels or tiles, and is seldom needed.
        given = "pixel_attention_mask" in situation.plan.also
        return documented(situation, "pixel_attention_mask") if given else None
    _, height, width = grid(situation)
    return torch.ones(situation.plan.batch, height * width, dtype=torch.long)


def _merge_sizes(situation: Situation) -> torch.Tensor:
    merge = get_vision(situation, *MERGES, default=1)
    return torch.full((situation.plan.batch,), merge if isinstance(merge, int) else merge[-1])


def _frame_counts(situation: Situation) -> torch.Tensor:
    return torch.ones(situation.plan.batch, dtype=torch.long)


PATCHES = (
    (r"(image_)?grid_thw", _grid_thw, True),
    (r"video_grid_thw", _video_grid_thw, True),
    (r"image_grid_hw|spatial_shapes|target_sizes(_videos)?", _grid_hw, True),
    (r"(pixel|image|video)_position_ids", _positions, True),
    (r"flattened_patches", _flattened, True),
    (r"(image_|video_)?merge_sizes", _merge_sizes, True),
    (r"num_frames_per_video", _frame_counts, True),
    (r"images_per_sample", _images_per_sample, True),
)
