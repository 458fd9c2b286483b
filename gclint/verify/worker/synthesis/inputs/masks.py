"""Masks that are as long as what they mask."""

from __future__ import annotations

import re
from typing import Any

import torch

from gclint.verify.worker.synthesis.inputs.situation import Situation

_MASKED = (
    (
        r"(input_)?features?_(attention_)?mask|audio_attention_mask",
        ("input_features", "audio_input_features"),
    ),
    (r"input_values_mask|padding_mask", ("input_values", "audio_values")),
    (r"audio_mel_mask", ("audio_mel",)),
    (r"padding_mask_videos", ("pixel_values_videos",)),
)
_OF_TEXT = {"input_ids", "inputs_embeds", "decoder_input_ids"}


def fit_masks(situation: Situation, inputs: dict[str, Any]) -> None:
    """Make each mask among ``inputs`` as long as the audio or the video that it masks."""
    for name in set(inputs) - set(situation.plan.shapes):
        if name == "attention_mask" and "input_features" in inputs and _OF_TEXT.isdisjoint(inputs):
            content = inputs["input_features"]
            inputs[name] = torch.ones(len(content), length_of(situation, content), dtype=torch.bool)
        for pattern, masked in _MASKED if isinstance(inputs[name], torch.Tensor) else ():
            content = next((inputs[each] for each in masked if each in inputs), None)
            if re.fullmatch(pattern, name) and content is not None:
                inputs[name] = torch.ones(
                    len(content), length_of(situation, content), dtype=inputs[name].dtype
                )


def length_of(situation: Situation, content: torch.Tensor) -> int:
    """Return how many frames or samples audio has."""
    if content.dim() != 3:
        return int(content.shape[-1] if content.dim() < 3 else content.shape[1])
    bands = situation.get("num_mel_bins", "feature_size", "input_feat_size", default=1)
    return int(
        content.shape[2] if content.shape[1] == bands or content.shape[2] % bands else content.shape[1]
    )


def _ones(situation: Situation) -> torch.Tensor:
    return torch.ones(situation.plan.batch, 1, dtype=torch.bool)


MASKS = ((r"input_features_mask|feature_attention_mask|input_values_mask", _ones, True),)
