"""How images and videos are cut into patches, and the tokens that stand for them and for audio in a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gclint.verify.worker.synthesis.configurations.tree import along, children, find
from gclint.verify.worker.synthesis.inputs.situation import Situation, layout

if TYPE_CHECKING:
    import torch


_GRIDS = ("image_grid_thw", "grid_thw", "video_grid_thw", "image_grid_hw")
POSITIONS = ("pixel_position_ids", "image_position_ids", "spatial_shapes")
_MERGE = (
    "spatial_merge_size",
    "merge_size",
    "merge_kernel_size",
    "pooling_kernel_size",
    "downsample_factor",
)
_IMAGE = (
    "image_token_id", "image_token_index", "media_token_id", "media_token_index", "image_patch_token_id",
    "img_token_id",
)  # fmt: skip
_VIDEO = ("video_token_id", "video_token_index")
_AUDIO = ("audio_token_id", "audio_token_index", "speech_token_id", "speech_token_index")
_MODALITIES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("image", _IMAGE, ("pixel_values", "flattened_patches", "pixel_values_images", "image_pixel_values")),
    ("video", _VIDEO, ("pixel_values_videos",)),
    ("audio", _AUDIO, ("input_features", "input_values", "audio_input_features", "audio_values")),
)
"""Modalities, with the fields of their placeholders, and the inputs with their content."""


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
    side = 2 * merged_side(situation)
    return [1, side, side]


def merged_side(situation: Situation) -> int:
    """Return how many patches are merged into one along each side."""
    merge: int = along(get_vision(situation, *_MERGE, default=1), -1)
    return merge


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
    return int(along(get_vision(situation, "patch_size", default=8), -1))


def channel_count(situation: Situation) -> int:
    """Return how many channels an image has."""
    found = get_vision(situation, "num_channels", "in_channels", "in_chans", "num_input_channels", default=3)
    return int(found) if isinstance(found, int) else 3


def with_placeholders(situation: Situation, ids: torch.Tensor) -> torch.Tensor:
    """Return ``ids`` with the placeholders of each modality of the class inserted after the first token."""
    import torch

    pieces = []
    for modality, token in placeholder_tokens(situation).items():
        start, end = (situation.get(*_marks(modality, mark)) for mark in ("start", "end"))
        run = [token] * situation.plan.counts.get(modality, default_count(situation, modality))
        pieces += ([start] if isinstance(start, int) else []) + run + ([end] if isinstance(end, int) else [])
    if not pieces:
        return ids
    front = ids.new_tensor(pieces).expand(ids.shape[0], -1)
    return torch.cat([ids[:, :1], front, ids[:, 1:]], dim=1)


def placeholder_tokens(situation: Situation) -> dict[str, int]:
    """Return the id of the placeholder of each modality whose content is among the inputs."""
    found = {}
    inputs = set(situation.parameters) - situation.plan.without
    for modality, names, contents in _MODALITIES:
        token = situation.get(*names)
        if not inputs.isdisjoint(contents) and isinstance(token, int):
            found[modality] = token
    video = situation.get(*_VIDEO)
    is_for_videos = "pixel_values" in inputs and "pixel_values_videos" not in situation.parameters
    if not found and isinstance(video, int) and is_for_videos:
        # A class for videos alone may call them ``pixel_values``.
        found["video"] = video
    return found


def modality_of_tokens(situation: Situation, ids: torch.Tensor) -> torch.Tensor:
    """Return a number for each token of ``ids``: 0 for text, 1 for images, 2 for videos, 3 for audio."""
    kinds = ids.new_zeros(ids.shape)
    numbers = {modality: number for number, (modality, _, _) in enumerate(_MODALITIES, 1)}
    for modality, token in placeholder_tokens(situation).items():
        kinds[ids == token] = numbers[modality]
    return kinds


def default_count(situation: Situation, modality: str) -> int:
    """Return a first guess of how many placeholders an image, a video or a recording needs."""
    if modality != "audio" and is_cut(situation):
        _, height, width = grid(situation)
        merge = 1 if in_blocks(situation) else merged_side(situation)
        return max(1, height * width // merge**2)
    if isinstance(situation.get("num_query_tokens"), int) and modality != "audio":
        return int(situation.get("num_query_tokens"))
    patch = along(situation.get("patch_size", default=8), 0)
    side = along(situation.get("image_size", default=situation.plan.sizes.image), 0)
    merge = situation.get("spatial_merge_size", default=1)
    count = max(1, (side // patch) ** 2 // merge**2)
    if "image_token_pooling" in situation.parameters:
        return int(count) // 4
    return count * (1 if modality == "image" else 2) if modality != "audio" else 4


def _marks(modality: str, mark: str) -> list[str]:
    stems: dict[str, Any] = {"image": ("vision", "image"), "video": ("vision", "video"), "audio": ("audio",)}
    return [f"{stem}_{mark}_token_id" for stem in stems[modality]]
