"""The names of caches in models, for both sides and for the linter; this needs only Python."""

from __future__ import annotations

USE_CACHE = "use_cache"
"""The flag that requests a cache; all other names are those of caches."""
PAST_KEY_VALUE = "past_key_value"
PAST_KEY_VALUES = "past_key_values"
LAYER_PAST = "layer_past"
OUTPUT_ROUTER_LOGITS = "output_router_logits"
"""Requests the logits of the routers of a mixture of experts, and the loss that balances the experts."""

PLAIN_CACHES = frozenset((PAST_KEY_VALUE, PAST_KEY_VALUES, LAYER_PAST, "cache_params", "past_buckets_states"))
"""Names that only caches have."""
CACHES = PLAIN_CACHES | {"cache", "past", "state"}
"""Names of caches, including those that other things have as well."""
CACHE_ARGUMENTS = CACHES | {USE_CACHE}
"""Names of caches, and of the flag that requests one."""
