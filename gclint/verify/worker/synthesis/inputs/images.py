"""Images and videos: pixels, tiles, and patches with their positions; and prompts for segmentation."""

from __future__ import annotations

import re
from typing import Any

import torch

from gclint.verify.worker.synthesis.configurations.tree import along
from gclint.verify.worker.synthesis.inputs.placeholders import (
    POSITIONS,
    channel_count,
    get_vision,
    grid,
    in_blocks,
    is_packed,
    merged_side,
    patch_side,
)
from gclint.verify.worker.synthesis.inputs.situation import Providers, Situation, documented, entry, layout

ONE_IMAGE = 1
_CAMERAS = 2
"""How many images a robot gets at once."""
_POINTS = 3
_POOLED = 4
"""How many patches are pooled into one token."""


def side(situation: Situation) -> tuple[int, int]:
    """Return height and width of an image in pixels."""
    size = get_vision(situation, "image_size", "img_size", default=situation.plan.sizes.image)
    if isinstance(size, dict):
        size = (size.get("height", 32), size.get("width", 32))
    return int(along(size, 0)), int(along(size, -1))


def _pixel_values(situation: Situation) -> torch.Tensor:
    cut = patches(situation, "pixel_values")
    if cut is not None:
        return cut
    several = _images_per_item(situation)
    return situation.floats(
        "pixel_values", situation.batch, *several, channel_count(situation), *side(situation)
    )


def _images_per_item(situation: Situation) -> tuple[int, ...]:
    """Return how many images each item has, and how many tiles each of these, if a class takes several."""
    if "aspect_ratio_ids" in situation.parameters:
        return ONE_IMAGE, tile_count(situation)
    if "image_attention_mask" in situation.parameters and "perceiver_embeddings" in situation.parameters:
        return (ONE_IMAGE,)
    if _is_robot(situation):
        return (_CAMERAS,)
    # A docstring or the name of the class asks for them.
    pattern = r"of shape `?\(batch_size, (num_tiles|num_frames|num_cameras|num_images)[,)]"
    found = re.search(pattern, entry(situation, "pixel_values"))
    if found is None and "input_ids" in situation.parameters:
        both = layout(situation, "pixel_values") + layout(situation, "pixel_attention_mask")
        found = re.search(pattern, both)
    if found is None and not situation.is_for("ImagesAnd"):
        return ()
    return (situation.get(found[1] if found else "num_images", default=2),)


def _is_robot(situation: Situation) -> bool:
    """Return whether the class predicts the actions of a robot from the images of several cameras."""
    return any(name in situation.parameters for name in ("action_embeds", "state"))


def tile_count(situation: Situation) -> int:
    """Return into how many tiles an image is cut."""
    return int(get_vision(situation, "max_num_tiles", default=2))


def _pixel_values_videos(situation: Situation) -> torch.Tensor:
    cut = patches(situation, "pixel_values_videos")
    if cut is not None:
        return cut
    frames = situation.get("num_frames", "frames_per_clip", default=4)
    shape = (frames, channel_count(situation), *side(situation))
    return situation.floats("pixel_values_videos", situation.batch, *shape)


def patches(situation: Situation, name: str) -> torch.Tensor | None:
    """Return the patches of the images ``name``, or None if the class takes whole images."""
    _, height, width = grid(situation)
    number, length, channels = (
        situation.batch * height * width,
        patch_side(situation),
        channel_count(situation),
    )
    if in_blocks(situation):
        merged = length * merged_side(situation)
        return situation.floats(name, number, merged, merged, channels)
    if is_packed(situation):
        temporal = get_vision(situation, "temporal_patch_size", "patch_temporal", default=1)
        frames = _video_frames(situation) if "video" in name else 1
        return situation.floats(name, frames * number, channels * temporal * length**2)
    if "target_sizes" in situation.parameters:
        return situation.floats(name, 1, channels, length, length * number)
    if any(each in situation.parameters for each in POSITIONS):
        return situation.floats(name, situation.batch, height * width, channels * length**2)
    return None


def _video_frames(situation: Situation) -> int:
    """Return how many patches a video has along time.

    There are as few as possible: some models write time stamps between frames, so that each frame would need
    placeholders of its own.
    """
    return int(get_vision(situation, "temporal_merge_size", default=1))


def _grid_thw(situation: Situation) -> torch.Tensor:
    # If images are counted per sample, the last one of each is to be generated, and has no pixels.
    each = 2 if "images_per_sample" in situation.parameters else 1
    return torch.tensor([grid(situation)] * situation.batch * each)


def _positions(situation: Situation) -> torch.Tensor:
    _, height, width = grid(situation)
    one = torch.cartesian_prod(torch.arange(height), torch.arange(width)).flip(-1)
    return one.expand(situation.batch, -1, -1).contiguous()


def _flattened(situation: Situation) -> torch.Tensor:
    """Return patches, each preceded by its row and column, counted from 1."""
    places = torch.cartesian_prod(torch.arange(1, 5), torch.arange(1, 5)).expand(situation.batch, -1, -1)
    whole = channel_count(situation) * patch_side(situation) ** 2
    width = get_vision(situation, "patch_embed_hidden_size", default=whole)
    content = situation.floats("flattened_patches", situation.batch, 16, width)
    return torch.cat([places.float(), content], dim=-1)


def patch_mask(situation: Situation) -> torch.Tensor | None:
    """Return a mask of the patches that are not padding, if the class takes patches instead of images."""
    if not any(each in situation.parameters for each in POSITIONS):
        # For other classes, it masks pixels or tiles, and is seldom needed.
        given = "pixel_attention_mask" in situation.plan.also
        return documented(situation, "pixel_attention_mask") if given else None
    _, height, width = grid(situation)
    return situation.ones(situation.batch, height * width)


def _pixel_mask(situation: Situation) -> Any:
    if _is_robot(situation):
        return situation.ones(situation.batch, _CAMERAS, boolean=True)
    return patch_mask(situation)


def _merge_sizes(situation: Situation) -> torch.Tensor:
    return torch.full((situation.batch,), merged_side(situation))


def _patch_count(situation: Situation) -> int:
    size = get_vision(situation, "image_size", default=situation.plan.sizes.image)
    patch = patch_side(situation)
    return int(along(size, 0) // patch) * int(along(size, -1) // patch)


def _pooled_grids(situation: Situation) -> torch.Tensor:
    """Return the rows and columns of tokens of each image, and zeros for its crops, since it has none."""
    return torch.tensor([[1, _patch_count(situation) // _POOLED, 0, 0]] * situation.batch)


def _bool_masked_pos(situation: Situation) -> Any:
    height, width = side(situation)
    count = (height // patch_side(situation)) * (width // patch_side(situation))
    return situation.integers("bool_masked_pos", 0, 2, situation.batch, count).bool()


def _state(situation: Situation) -> torch.Tensor:
    width = int(situation.get("max_state_dim", default=situation.width()))
    return situation.floats("state", situation.batch, width)


def _places(situation: Situation, name: str, *shape: int) -> torch.Tensor:
    return situation.floats(name, situation.batch, 1, *shape).sigmoid() * min(side(situation))


def _boxes(situation: Situation) -> torch.Tensor | None:
    if "input_points" not in situation.parameters:
        # Without points, boxes are cropped from the features by a function of another library.
        return None
    corner = _places(situation, "input_boxes", 2) / 2
    return torch.cat([corner, corner + 4], dim=-1)


def _rough_masks(situation: Situation) -> Any:
    size = situation.get("mask_input_size", "image_embedding_size")
    if not isinstance(size, int):
        return None
    size *= 1 if situation.get("mask_input_size") else 4
    return situation.floats("input_masks", situation.batch, 1, size, size)


IMAGES: Providers = (
    (r"pixel_values|high_res_pixel_values|conditional_pixel_values|prompt_pixel_values", _pixel_values, True),
    (r"pixel_values_videos", _pixel_values_videos, True),
    (r"pixel_attention_mask", _pixel_mask, True),
    (r"image_sizes", lambda of: torch.tensor([side(of)] * of.batch), True),
    (r"(image_)?grid_thw", _grid_thw, True),
    (r"video_grid_thw", lambda of: torch.tensor([[_video_frames(of), *grid(of)[1:]]] * of.batch), True),
    (
        r"image_grid_hw|spatial_shapes|target_sizes(_videos)?",
        lambda of: torch.tensor([grid(of)[1:]] * of.batch),
        True,
    ),
    (r"(pixel|image|video)_position_ids", _positions, True),
    (r"flattened_patches", _flattened, True),
    (r"(image_|video_)?merge_sizes", _merge_sizes, True),
    (r"num_frames_per_video", lambda of: of.ones(of.batch), True),
    (r"images_per_sample", lambda of: torch.full((of.batch,), 2), True),
    # The indices of the patches that each token is made of, a row per token.
    (r"image_token_pooling", lambda of: torch.arange(of.batch * _patch_count(of)).reshape(-1, _POOLED), True),
    (r"image_grids", _pooled_grids, True),
    (r"aspect_ratio_ids", lambda of: of.ones(of.batch, ONE_IMAGE), True),
    (r"aspect_ratio_mask", lambda of: of.ones(of.batch, ONE_IMAGE, tile_count(of)), True),
    (r"bool_masked_pos", _bool_masked_pos, False),
    # The index of each patch of an image in a codebook.
    (r"mim_labels", lambda of: of.integers("mim_labels", 0, 8, *_bool_masked_pos(of).shape), False),
    (r"state", _state, False),
    (r"input_points", lambda of: _places(of, "input_points", _POINTS, 2), True),
    # A point of the object, one of the background, and one that is padding.
    (r"input_labels", lambda of: torch.tensor([1, 0, -1]).expand(of.batch, 1, _POINTS).clone(), True),
    (r"input_boxes", _boxes, True),
    (r"input_masks", _rough_masks, True),
)
