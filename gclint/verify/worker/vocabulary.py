"""The names that caches go by in models, for both sides and for the linter: this needs nothing but Python."""

from __future__ import annotations

USE_CACHE = "use_cache"
"""Asks for a cache; a flag, where all others hold one."""
PAST_KEY_VALUE = "past_key_value"
PAST_KEY_VALUES = "past_key_values"
LAYER_PAST = "layer_past"
OUTPUT_ROUTER_LOGITS = "output_router_logits"
"""Asks a mixture of experts for what its routers compute, and for the loss that balances the experts."""

PLAIN_CACHES = frozenset((PAST_KEY_VALUE, PAST_KEY_VALUES, LAYER_PAST, "cache_params", "past_buckets_states"))
"""What nothing but a cache is called."""
CACHES = PLAIN_CACHES | {"cache", "past", "state"}
"""What holds a cache, under names that other things have too."""
CACHE_ARGUMENTS = CACHES | {USE_CACHE}
"""What holds a cache or asks for one."""
