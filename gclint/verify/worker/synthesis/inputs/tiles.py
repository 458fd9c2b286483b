"""Images in tiles, several images per item, and masks of which token attends to which image or tile."""

from __future__ import annotations

import re

import torch

from gclint.verify.worker.synthesis.inputs.documentation import entry, layout
from gclint.verify.worker.synthesis.inputs.placeholders import channel_count, get_vision
from gclint.verify.worker.synthesis.inputs.situation import Situation
from gclint.verify.worker.synthesis.inputs.text import input_ids

_IMAGES = 1
CAMERAS = 2
"""How many images a robot gets at once."""


def tiles(situation: Situation, side: tuple[int, int]) -> torch.Tensor | None:
    """Return images in tiles, or None if the class takes whole images."""
    if "aspect_ratio_ids" in situation.parameters:
        return situation.floats(
            "pixel_values", situation.plan.batch, _IMAGES, _tiles(situation), channel_count(situation), *side
        )
    if "image_attention_mask" in situation.parameters and "perceiver_embeddings" in situation.parameters:
        return situation.floats(
            "pixel_values", situation.plan.batch, _IMAGES, channel_count(situation), *side
        )
    return None


def several(situation: Situation, side: tuple[int, int]) -> torch.Tensor | None:
    """Return several images per item if a docstring or the name of the class asks for them, else None."""
    if is_robot(situation):
        return situation.floats(
            "pixel_values", situation.plan.batch, CAMERAS, channel_count(situation), *side
        )
    pattern = r"of shape `?\(batch_size, (num_tiles|num_frames|num_cameras|num_images)[,)]"
    found = re.search(pattern, entry(situation, "pixel_values"))
    if found is None and "input_ids" in situation.parameters:
        found = re.search(
            pattern, layout(situation, "pixel_values") + layout(situation, "pixel_attention_mask")
        )
    if found is None and not situation.is_for("ImagesAnd"):
        return None
    count = situation.get(found[1] if found else "num_images", default=2)
    return situation.floats("pixel_values", situation.plan.batch, count, channel_count(situation), *side)


def is_robot(situation: Situation) -> bool:
    """Return whether the class predicts the actions of a robot from the images of several cameras."""
    return any(name in situation.parameters for name in ("action_embeds", "state"))


def _tiles(situation: Situation) -> int:
    return int(get_vision(situation, "max_num_tiles", default=2))


def _ratios(situation: Situation) -> torch.Tensor:
    return torch.ones(situation.plan.batch, _IMAGES, dtype=torch.long)


def _ratio_mask(situation: Situation) -> torch.Tensor:
    return torch.ones(situation.plan.batch, _IMAGES, _tiles(situation), dtype=torch.long)


def _tile_mask(situation: Situation) -> torch.Tensor | None:
    if "aspect_ratio_ids" not in situation.parameters:
        return None
    return torch.ones(
        situation.plan.batch, input_ids(situation).shape[1], _IMAGES, _tiles(situation), dtype=torch.long
    )


def _image_mask(situation: Situation) -> torch.Tensor | None:
    if "perceiver_embeddings" not in situation.parameters:
        return None
    return torch.ones(situation.plan.batch, input_ids(situation).shape[1], _IMAGES, dtype=torch.long)


def _query_positions(situation: Situation) -> torch.Tensor:
    """Mark as many positions of a text as an image has queries."""
    positions = torch.zeros(situation.plan.batch, input_ids(situation).shape[1], dtype=torch.long)
    positions[:, 1 : 1 + situation.get("latent_query_num", default=4)] = 1
    return positions


def _regions(situation: Situation) -> torch.Tensor:
    choices = input_ids(situation).shape[1:-1]
    width = situation.get("visual_embedding_dim", default=situation.width())
    return situation.floats("visual_embeds", situation.plan.batch, *choices, 4, width)


def _region_mask(situation: Situation) -> torch.Tensor:
    return torch.ones(_regions(situation).shape[:-1], dtype=torch.long)


TILES = (
    (r"visual_embeds", _regions, True),
    (r"visual_attention_mask", _region_mask, True),
    (r"aspect_ratio_ids", _ratios, True),
    (r"aspect_ratio_mask", _ratio_mask, True),
    (r"cross_attention_mask", _tile_mask, True),
    (r"image_attention_mask", _image_mask, True),
    (r"image_embeds_position_mask", _query_positions, True),
)
