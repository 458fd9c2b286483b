"""Audio as samples or as a spectrogram, the masks that are as long as that, and time series."""

from __future__ import annotations

import inspect
import math
import re
import sys
from typing import Any

import torch

from gclint.verify.worker.synthesis.inputs.situation import Providers, Situation, documented

_FRAMES = 64
"""How many frames a spectrogram has, unless a class needs another number."""
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


def _input_values(situation: Situation) -> torch.Tensor:
    """Return samples, or a spectrogram for a class that uses this name for one."""
    bands = situation.get("num_mel_bins")
    if bands is not None and situation.get("conv_stride") is None:
        length = situation.get("max_length", default=64)
        return situation.floats("input_values", situation.batch, length, bands)
    strides = situation.get("conv_stride", "upsampling_ratios", "downsampling_ratios", default=(320,))
    hop = math.prod(strides) if isinstance(strides, list | tuple) else 320
    return situation.floats("input_values", situation.batch, max(hop, 16) * 24 + 80)


def _input_features(situation: Situation) -> torch.Tensor:
    bands = situation.get(
        "num_mel_bins",
        "feature_projection_input_dim",
        "input_feat_per_channel",
        "feature_size",
        "input_feat_size",
        default=32,
    )
    if "feature_lens" in situation.parameters:
        # All recordings of a batch, concatenated.
        return situation.floats("input_features", bands, situation.batch * _FRAMES)
    if "chunk_sample_lengths" in situation.parameters:
        return situation.floats("input_features", situation.batch, bands, _FRAMES)
    positions = situation.get("max_source_positions")
    source = inspect.getsource(sys.modules[situation.model_class.__module__])
    if positions is not None or re.search(r"num_mel_bins, \w+ = input_features\.shape", source):
        return situation.floats("input_features", situation.batch, bands, 2 * (positions or 32))
    return situation.floats("input_features", situation.batch, _FRAMES, bands)


def _audio_mel(situation: Situation) -> torch.Tensor:
    bands = situation.get("input_feat_size", default=32)
    return situation.floats("audio_mel", situation.batch, _FRAMES, bands)


def _mel_spectrogram(situation: Situation) -> torch.Tensor:
    bands = situation.get("mel_dim", "num_mel_bins", default=32)
    return situation.floats("mel_spectrogram", situation.batch, bands, 16)


def _codes(situation: Situation) -> Any:
    count = situation.get("num_quantizers")
    if not isinstance(count, int):
        return documented(situation, "codes")
    size = situation.get("codebook_size", default=8)
    return situation.integers("codes", 0, size, situation.batch, count, situation.length)


def _past_length(situation: Situation) -> int:
    lags: list[int] = situation.get("lags_sequence", default=[0])
    return int(situation.get("context_length", default=8)) + max(lags)


def _future_length(situation: Situation) -> int:
    return int(situation.get("prediction_length", default=4))


def _series(situation: Situation, name: str, length: int) -> torch.Tensor:
    size = situation.get("input_size", "num_input_channels", default=1)
    channels = [size] if size > 1 or situation.get("num_input_channels") else []
    return situation.floats(name, situation.batch, length, *channels)


def _past_values(situation: Situation) -> torch.Tensor:
    return _series(situation, "past_values", _past_length(situation))


def _time_features(situation: Situation, name: str, length: int) -> torch.Tensor:
    return situation.floats(name, situation.batch, length, int(situation.get("num_time_features", default=1)))


def fit_masks(situation: Situation, inputs: dict[str, Any]) -> None:
    """Make each mask among ``inputs`` as long as the audio or the video that it masks."""
    for name in set(inputs) - set(situation.plan.shapes):
        if name == "attention_mask" and "input_features" in inputs and _OF_TEXT.isdisjoint(inputs):
            content = inputs["input_features"]
            inputs[name] = situation.ones(len(content), length_of(situation, content), boolean=True)
        for pattern, masked in _MASKED if isinstance(inputs[name], torch.Tensor) else ():
            content = next((inputs[each] for each in masked if each in inputs), None)
            if re.fullmatch(pattern, name) and content is not None:
                length = length_of(situation, content)
                inputs[name] = torch.ones(len(content), length, dtype=inputs[name].dtype)


def length_of(situation: Situation, content: torch.Tensor) -> int:
    """Return how many frames or samples audio has."""
    if content.dim() != 3:
        return int(content.shape[-1] if content.dim() < 3 else content.shape[1])
    bands = situation.get("num_mel_bins", "feature_size", "input_feat_size", default=1)
    is_last = content.shape[1] == bands or content.shape[2] % bands
    return int(content.shape[2] if is_last else content.shape[1])


AUDIO: Providers = (
    (r"input_values|audio_values", _input_values, True),
    (r"input_features", _input_features, True),
    (r"audio_mel", _audio_mel, True),
    # True marks padding.
    (r"audio_mel_mask", lambda of: torch.zeros(of.batch, _FRAMES, dtype=torch.bool), True),
    (
        r"input_features_mask|feature_attention_mask|input_values_mask",
        lambda of: of.ones(of.batch, 1, boolean=True),
        True,
    ),
    (r"mel_spectrogram", _mel_spectrogram, False),
    (
        r"chunk_sample_lengths",
        lambda of: torch.full((of.batch,), _FRAMES * int(of.get("hop_length", default=1))),
        True,
    ),
    (r"feature_lens", lambda of: torch.full((of.batch,), _FRAMES), True),
    # The number of samples in the only recording of each item.
    (r"input_values_cutoffs", lambda of: torch.full((of.batch, 1), _input_values(of).shape[-1]), False),
    (r"codes", _codes, False),
    (r"decoder_input_values", lambda of: documented(of, "decoder_input_values"), True),
    (r"past_values", _past_values, True),
    (r"future_values", lambda of: _series(of, "future_values", _future_length(of)), True),
    (r"past_observed_mask", lambda of: torch.ones_like(_past_values(of)), False),
    (r"past_time_features", lambda of: _time_features(of, "past_time_features", _past_length(of)), True),
    (
        r"future_time_features",
        lambda of: _time_features(of, "future_time_features", _future_length(of)),
        True,
    ),
)
