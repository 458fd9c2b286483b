"""Audio codecs, whose channels double with each downsampling step and halve with each upsampling step."""

from __future__ import annotations

from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import fields_of

_STEM = 8
_WIDEST = 128


def fit_codec(part: Any, original: dict[str, Any]) -> None:
    """Reduce the first channels of the codec ``part``, and all widths that follow from them.

    Args:
        part: the tiny configuration, changed in place.
        original: its fields before it was made tiny.
    """
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
        # The features of the samples and those of the spectrogram, concatenated.
        fields["quantization_dim"] = 2 * fields["hidden_size"]
    if original.get("hidden_size") == stem * 2 ** len(down):
        fields["hidden_size"] = _STEM * 2 ** len(down)


def _fit_quantiser(fields: dict[str, Any], original: dict[str, Any]) -> None:
    """Keep attention as wide as the last stage, if it was before."""
    first, factors = original.get("base_channels"), original.get("channel_multiplier")
    if not isinstance(first, int) or not isinstance(factors, list | tuple) or not factors:
        return
    if original.get("hidden_size") == first * factors[-1]:
        fields["hidden_size"] = fields["base_channels"] * fields["channel_multiplier"][-1]


def _fit_vocoder(fields: dict[str, Any], original: dict[str, Any]) -> None:
    """Choose the first channels so that two are left after all upsampling steps."""
    up, channels = original.get("upsample_rates"), original.get("upsample_initial_channel")
    if isinstance(up, list | tuple) and isinstance(channels, int):
        fields["upsample_initial_channel"] = 2 << len(up)
