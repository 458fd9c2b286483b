"""Codecs of audio: channels that double with each step down in time and halve with each step up."""

from __future__ import annotations

from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import fields_of

_STEM = 8
_WIDEST = 128


def fit_codec(part: Any, original: dict[str, Any]) -> None:
    """Let the first of the channels of ``part`` be few, and those after all steps what they were made of."""
    fields = fields_of(part)
    _fit_vocoder(fields, original)
    _fit_quantiser(fields, original)
    down, stem = original.get("downsampling_ratios"), original.get("encoder_hidden_size")
    if isinstance(down, list | tuple) and isinstance(original.get("num_filters"), int):
        fields["num_filters"] = max(2, _WIDEST >> len(down))
    if not isinstance(down, list | tuple) or not isinstance(stem, int):
        return
    fields["encoder_hidden_size"] = _STEM
    width = original.get("hidden_size")
    if isinstance(width, int) and original.get("quantization_dim") == 2 * width:
        # What the samples and what the spectrogram became, one beside the other.
        fields["quantization_dim"] = 2 * fields["hidden_size"]
    if original.get("hidden_size") == stem * 2 ** len(down):
        fields["hidden_size"] = _STEM * 2 ** len(down)


def _fit_quantiser(fields: dict[str, Any], original: dict[str, Any]) -> None:
    """Let attention be as wide as the stage that it works on, where it was."""
    first, factors = original.get("base_channels"), original.get("channel_multiplier")
    if not isinstance(first, int) or not isinstance(factors, list | tuple) or not factors:
        return
    if original.get("hidden_size") == first * factors[-1]:
        fields["hidden_size"] = fields["base_channels"] * fields["channel_multiplier"][-1]


def _fit_vocoder(fields: dict[str, Any], original: dict[str, Any]) -> None:
    """Let two channels be left after all of the steps up."""
    up, channels = original.get("upsample_rates"), original.get("upsample_initial_channel")
    if isinstance(up, list | tuple) and isinstance(channels, int):
        fields["upsample_initial_channel"] = 2 << len(up)
