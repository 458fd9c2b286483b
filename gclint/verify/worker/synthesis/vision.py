"""Images and videos, as pixels or as rows of patches."""

from __future__ import annotations

from typing import Any

import torch

from gclint.verify.worker.synthesis.plan import BATCH, Situation


def side(situation: Situation) -> tuple[int, int]:
    """Return height and width of an image in pixels."""
    size = situation.get("image_size", "img_size", default=situation.plan.sizes.image)
    if isinstance(size, dict):
        size = (size.get("height", 32), size.get("width", 32))
    if not isinstance(size, list | tuple):
        size = (size, size)
    return int(size[0]), int(size[-1])


def patch(situation: Situation) -> int:
    """Return the side of a patch in pixels."""
    size = situation.get("patch_size", default=8)
    return int(size[-1] if isinstance(size, list | tuple) else size)


def channels(situation: Situation) -> int:
    """Return how many channels an image has."""
    found = situation.get("num_channels", "in_channels", "in_chans", "num_input_channels", default=3)
    return int(found) if isinstance(found, int) else 3


def grid(situation: Situation) -> list[int]:
    """Return how many patches an image has in time, height and width."""
    merge = situation.get("spatial_merge_size", "merge_size", default=1)
    merge = merge if isinstance(merge, int) else merge[0]
    return [1, 2 * merge, 2 * merge]


def _patches(situation: Situation, name: str, frames: int = 1) -> torch.Tensor:
    temporal = situation.get("temporal_patch_size", default=1)
    rows = BATCH * frames * grid(situation)[1] * grid(situation)[2]
    return situation.floats(name, rows, channels(situation) * temporal * patch(situation) ** 2)


def _has_grid(situation: Situation) -> bool:
    return any(name in situation.parameters for name in ("image_grid_thw", "grid_thw", "video_grid_thw"))


def _pixel_values(situation: Situation) -> torch.Tensor:
    if _has_grid(situation):
        return _patches(situation, "pixel_values")
    return situation.floats("pixel_values", BATCH, channels(situation), *side(situation))


def _pixel_values_videos(situation: Situation) -> torch.Tensor:
    if _has_grid(situation):
        return _patches(situation, "pixel_values_videos", frames=2)
    frames = situation.get("num_frames", "frames_per_clip", default=4)
    return situation.floats("pixel_values_videos", BATCH, frames, channels(situation), *side(situation))


def _image_grid(situation: Situation) -> torch.Tensor:
    return torch.tensor([grid(situation)] * BATCH)


def _video_grid(situation: Situation) -> torch.Tensor:
    return torch.tensor([[2, *grid(situation)[1:]]] * BATCH)


def _image_sizes(situation: Situation) -> torch.Tensor:
    return torch.tensor([side(situation)] * BATCH)


def _bool_masked_pos(situation: Situation) -> Any:
    height, width = side(situation)
    count = (height // patch(situation)) * (width // patch(situation))
    return situation.integers("bool_masked_pos", 0, 2, BATCH, count).bool()


VISION = (
    (r"pixel_values|high_res_pixel_values|conditional_pixel_values|prompt_pixel_values", _pixel_values, True),
    (r"pixel_values_videos", _pixel_values_videos, True),
    (r"image_grid_thw|grid_thw", _image_grid, True),
    (r"video_grid_thw", _video_grid, True),
    (r"image_sizes", _image_sizes, True),
    (r"bool_masked_pos", _bool_masked_pos, False),
)
