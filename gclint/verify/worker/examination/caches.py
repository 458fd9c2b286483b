"""Caches as a caller makes and passes them."""

from __future__ import annotations

from typing import Any

from transformers import DynamicCache, EncoderDecoderCache


def new_cache(config: Any) -> Any:
    """Return an empty cache for a model with this configuration."""
    if config.is_encoder_decoder or getattr(config, "add_cross_attention", False):
        return EncoderDecoderCache(DynamicCache(), DynamicCache())
    return DynamicCache()
