"""Audio as samples or as a spectrogram, and time series."""

from __future__ import annotations

import inspect
import math
import re
import sys
from typing import Any

import torch

from gclint.verify.worker.synthesis.inputs.situation import Situation

FRAMES = 64
"""How many frames a spectrogram has, unless a class needs another number."""


def input_values(situation: Situation) -> torch.Tensor:
    """Return samples, or a spectrogram for a class that uses this name for one."""
    bands = situation.get("num_mel_bins")
    if bands is not None and situation.get("conv_stride") is None:
        return situation.floats(
            "input_values", situation.plan.batch, situation.get("max_length", default=64), bands
        )
    strides = situation.get("conv_stride", "upsampling_ratios", "downsampling_ratios", default=(320,))
    hop = math.prod(strides) if isinstance(strides, list | tuple) else 320
    return situation.floats("input_values", situation.plan.batch, max(hop, 16) * 24 + 80)


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
        return situation.floats("input_features", bands, situation.plan.batch * FRAMES)
    if "chunk_sample_lengths" in situation.parameters:
        return situation.floats("input_features", situation.plan.batch, bands, FRAMES)
    positions = situation.get("max_source_positions")
    source = inspect.getsource(sys.modules[situation.model_class.__module__])
    if positions is not None or re.search(r"num_mel_bins, \w+ = input_features\.shape", source):
        positions = positions or 32
        return situation.floats("input_features", situation.plan.batch, bands, 2 * positions)
    return situation.floats("input_features", situation.plan.batch, FRAMES, bands)


def _audio_mel(situation: Situation) -> torch.Tensor:
    return situation.floats(
        "audio_mel", situation.plan.batch, FRAMES, situation.get("input_feat_size", default=32)
    )


def _audio_mel_mask(situation: Situation) -> torch.Tensor:
    # True marks padding.
    return torch.zeros(situation.plan.batch, FRAMES, dtype=torch.bool)


def _mel_spectrogram(situation: Situation) -> torch.Tensor:
    return situation.floats(
        "mel_spectrogram", situation.plan.batch, situation.get("mel_dim", "num_mel_bins", default=32), 16
    )


def _past_length(situation: Situation) -> int:
    lags: list[int] = situation.get("lags_sequence", default=[0])
    return int(situation.get("context_length", default=8)) + max(lags)


def _series(situation: Situation, name: str, length: int) -> torch.Tensor:
    size = situation.get("input_size", "num_input_channels", default=1)
    return situation.floats(
        name,
        situation.plan.batch,
        length,
        *([size] if size > 1 or situation.get("num_input_channels") else []),
    )


def _past_values(situation: Situation) -> torch.Tensor:
    return _series(situation, "past_values", _past_length(situation))


def _future_values(situation: Situation) -> torch.Tensor:
    return _series(situation, "future_values", int(situation.get("prediction_length", default=4)))


def _past_observed_mask(situation: Situation) -> torch.Tensor:
    return torch.ones_like(_past_values(situation))


def _time_features(name: str) -> Any:
    def provide(situation: Situation) -> torch.Tensor:
        count = int(situation.get("num_time_features", default=1))
        length = (
            _past_length(situation)
            if name.startswith("past")
            else int(situation.get("prediction_length", default=4))
        )
        return situation.floats(name, situation.plan.batch, length, count)

    return provide


AUDIO = (
    (r"input_values|audio_values", input_values, True),
    (r"input_features", _input_features, True),
    (r"audio_mel", _audio_mel, True),
    (r"audio_mel_mask", _audio_mel_mask, True),
    (r"mel_spectrogram", _mel_spectrogram, False),
    (r"past_values", _past_values, True),
    (r"future_values", _future_values, True),
    (r"past_observed_mask", _past_observed_mask, False),
    (r"past_time_features", _time_features("past_time_features"), True),
    (r"future_time_features", _time_features("future_time_features"), True),
)
