"""Towers of which an outer model reads other layers than the last."""

from __future__ import annotations

import re
from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import children, descendants, fields_of

_ADDED = re.compile(r"deepstack_\w*(indexes|indices)")


def deepen_towers(config: Any, layers: int) -> None:
    """Add layers to vision towers that are read before their end, so that ``layers`` run before that."""
    for part in list(descendants(config)):
        read = fields_of(part).get("vision_feature_layer")
        if not isinstance(read, int) or read >= -1:
            continue
        for name, tower in children(part):
            count = fields_of(tower).get("num_hidden_layers")
            if "vision" in name and isinstance(count, int):
                fields_of(tower)["num_hidden_layers"] = max(count, layers - read - 1)


def drop_unread_layers(config: Any) -> None:
    """Let a tower return at most as many layers as the text model has, since each is added to one of them."""
    for part in list(descendants(config)):
        below = dict(children(part))
        counts = [
            fields_of(child).get("num_hidden_layers") for name, child in below.items() if "text" in name
        ]
        for tower in below.values():
            for name, value in list(fields_of(tower).items()):
                if _ADDED.fullmatch(str(name)) and counts and isinstance(counts[0], int):
                    fields_of(tower)[name] = value[: counts[0]]
