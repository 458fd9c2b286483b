"""How images and videos are cut into patches, and into how many."""

from __future__ import annotations

from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import children, find
from gclint.verify.worker.synthesis.inputs.documentation import layout
from gclint.verify.worker.synthesis.inputs.situation import Situation

_GRIDS = ("image_grid_thw", "grid_thw", "video_grid_thw", "image_grid_hw")
POSITIONS = ("pixel_position_ids", "image_position_ids", "spatial_shapes")
MERGES = ("spatial_merge_size", "merge_size", "merge_kernel_size", "pooling_kernel_size", "downsample_factor")


def vision(situation: Situation) -> Any:
    """Return the sub-configuration for images, or the whole configuration if there is none."""
    level = [situation.config]
    while level:
        below = [pair for each in level for pair in children(each)]
        for word in ("vision", "visual", "vit", "image", "video"):
            for name, child in below:
                if word in name:
                    return child
        level = [child for _, child in below]
    return situation.config


def get_vision(situation: Situation, *names: str, default: Any = None) -> Any:
    """Return the first of these fields in the sub-configuration for images, or else in the whole one."""
    found = find(vision(situation), *names)
    return situation.get(*names, default=default) if found is None else found


def grid(situation: Situation) -> list[int]:
    """Return how many patches an image has in time, height and width."""
    if "target_sizes" in situation.parameters:
        # These are merged two by two, several times over.
        return [1, 8, 8]
    if in_blocks(situation):
        return [1, 2, 2]
    merge = get_vision(situation, *MERGES, default=1)
    merge = merge if isinstance(merge, int) else merge[-1]
    return [1, 2 * merge, 2 * merge]


def is_packed(situation: Situation) -> bool:
    """Return whether the patches of all images are the rows of one matrix."""
    if any(name in situation.parameters for name in _GRIDS):
        return True
    return "pixel_values" in situation.parameters and "shape `(num_patches, 3 *" in layout(
        situation, "pixel_values"
    )


def in_blocks(situation: Situation) -> bool:
    """Return whether each row of the input is a block of the patches to merge, with the channels last."""
    return "pixel_values" in situation.parameters and "(num_image_tokens, patch_size *" in layout(
        situation, "pixel_values"
    )


def is_cut(situation: Situation) -> bool:
    """Return whether the class takes patches instead of images."""
    return is_packed(situation) or any(name in situation.parameters for name in (*POSITIONS, "target_sizes"))


def patch_side(situation: Situation) -> int:
    """Return the side of a patch in pixels."""
    size = get_vision(situation, "patch_size", default=8)
    return int(size[-1] if isinstance(size, list | tuple) else size)


def channel_count(situation: Situation) -> int:
    """Return how many channels an image has."""
    found = get_vision(situation, "num_channels", "in_channels", "in_chans", "num_input_channels", default=3)
    return int(found) if isinstance(found, int) else 3
