"""Prompts for segmentation: points, boxes and rough masks, from which a mask is predicted."""

from __future__ import annotations

from typing import Any

import torch

from gclint.verify.worker.synthesis.inputs.situation import Situation
from gclint.verify.worker.synthesis.inputs.vision import side

_POINTS = 3


def _places(situation: Situation, name: str, *shape: int) -> torch.Tensor:
    height, width = side(situation)
    return situation.floats(name, *shape).sigmoid() * min(height, width)


def _points(situation: Situation) -> torch.Tensor:
    return _places(situation, "input_points", situation.plan.batch, 1, _POINTS, 2)


def _point_labels(situation: Situation) -> torch.Tensor:
    # A point of the object, one of the background, and one that is padding.
    return torch.tensor([1, 0, -1]).expand(situation.plan.batch, 1, _POINTS).clone()


def _boxes(situation: Situation) -> torch.Tensor | None:
    if "input_points" not in situation.parameters:
        # Without points, boxes are cropped from the features by a function of another library.
        return None
    corner = _places(situation, "input_boxes", situation.plan.batch, 1, 2) / 2
    return torch.cat([corner, corner + 4], dim=-1)


def _rough_masks(situation: Situation) -> Any:
    size = situation.get("mask_input_size", "image_embedding_size")
    if not isinstance(size, int):
        return None
    size *= 1 if situation.get("mask_input_size") else 4
    return situation.floats("input_masks", situation.plan.batch, 1, size, size)


POINTS = (
    (r"input_points", _points, True),
    (r"input_labels", _point_labels, True),
    (r"input_boxes", _boxes, True),
    (r"input_masks", _rough_masks, True),
)
