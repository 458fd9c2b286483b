"""The next call of a model that has returned a cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from gclint.verify.worker.examination.tensors import is_cache_name

_TOKENS = ("decoder_input_ids", "input_ids")
"""Inputs that grow by a token in each call; the first one that exists counts."""
_PER_TOKEN = ("mask", "position", "token_type", "labels")
"""Parts of the names of inputs that have a value for each token; without them there is a default."""


def continued(inputs: Mapping[str, Any], outputs: Any) -> dict[str, Any] | None:
    """Return the inputs of the call for one more token; None if there is no cache to continue.

    Args:
        inputs: those of the call before.
        outputs: what that returned.
    """
    caches = {name: each for name, each in dict(_items(outputs)).items() if is_cache_name(name)}
    grown = next((name for name in _TOKENS if isinstance(inputs.get(name), Tensor)), None)
    if grown is None or not any(each is not None for each in caches.values()):
        return None
    kept = {
        name: each
        for name, each in inputs.items()
        if not any(part in name for part in _PER_TOKEN) or "encoder" in name.replace("decoder", "")
    }
    return {**kept, grown: inputs[grown][:, -1:], **caches}


def _items(outputs: Any) -> Any:
    return outputs.items() if isinstance(outputs, Mapping) else ()
