"""Inputs that describe another one, such as its lengths, grids and indices, and the state of a robot."""

from __future__ import annotations

from typing import Any

import torch

from gclint.verify.worker.synthesis.inputs.audio import FRAMES, input_values
from gclint.verify.worker.synthesis.inputs.documentation import documented
from gclint.verify.worker.synthesis.inputs.patches import patch_mask
from gclint.verify.worker.synthesis.inputs.placeholders import get_vision, patch_side
from gclint.verify.worker.synthesis.inputs.situation import Situation
from gclint.verify.worker.synthesis.inputs.tiles import CAMERAS, is_robot

_POOLED = 4
"""How many patches are pooled into one token."""


def _patch_count(situation: Situation) -> int:
    size = get_vision(situation, "image_size", default=situation.plan.sizes.image)
    height, width = (size[0], size[-1]) if isinstance(size, list | tuple) else (size, size)
    return int(height // patch_side(situation)) * int(width // patch_side(situation))


def _pooling(situation: Situation) -> torch.Tensor:
    """Return the indices of the patches that each token is made of, a row per token."""
    return torch.arange(situation.plan.batch * _patch_count(situation)).reshape(-1, _POOLED)


def _pooled_grids(situation: Situation) -> torch.Tensor:
    """Return the rows and columns of tokens of each image, and zeros for its crops, since it has none."""
    return torch.tensor([[1, _patch_count(situation) // _POOLED, 0, 0]] * situation.plan.batch)


def _sample_lengths(situation: Situation) -> torch.Tensor:
    return torch.full((situation.plan.batch,), FRAMES * int(situation.get("hop_length", default=1)))


def _frame_lengths(situation: Situation) -> torch.Tensor:
    return torch.full((situation.plan.batch,), FRAMES)


def _pixel_mask(situation: Situation) -> Any:
    if is_robot(situation):
        return torch.ones(situation.plan.batch, CAMERAS, dtype=torch.bool)
    return patch_mask(situation)


def _state(situation: Situation) -> torch.Tensor:
    return situation.floats(
        "state", situation.plan.batch, int(situation.get("max_state_dim", default=situation.width()))
    )


def _codes(situation: Situation) -> Any:
    count = situation.get("num_quantizers")
    if not isinstance(count, int):
        return documented(situation, "codes")
    return situation.integers(
        "codes",
        0,
        situation.get("codebook_size", default=8),
        situation.plan.batch,
        count,
        situation.plan.length,
    )


def _character_counts(situation: Situation) -> torch.Tensor:
    """Return how many characters each token has: one, since there are as many characters as tokens."""
    return torch.ones(situation.plan.batch, situation.plan.length, dtype=torch.long)


def _cutoffs(situation: Situation) -> torch.Tensor:
    """Return the number of samples in the only recording of each item."""
    return torch.full((situation.plan.batch, 1), input_values(situation).shape[-1])


def _decoder_values(situation: Situation) -> Any:
    return documented(situation, "decoder_input_values")


COMPANIONS = (
    (r"image_token_pooling", _pooling, True),
    (r"image_grids", _pooled_grids, True),
    (r"chunk_sample_lengths", _sample_lengths, True),
    (r"feature_lens", _frame_lengths, True),
    (r"pixel_attention_mask", _pixel_mask, True),
    (r"codes", _codes, False),
    (r"char_count_per_id", _character_counts, False),
    (r"input_values_cutoffs", _cutoffs, False),
    (r"decoder_input_values", _decoder_values, True),
    (r"state", _state, False),
)
