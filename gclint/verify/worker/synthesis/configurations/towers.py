"""Towers of which an outer model does not read the last layer."""

from __future__ import annotations

from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import children, descendants, fields_of


def deepen_towers(config: Any, layers: int) -> None:
    """Give the vision tower of each model that reads it some layers before its end so many more layers."""
    for part in list(descendants(config)):
        read = fields_of(part).get("vision_feature_layer")
        if not isinstance(read, int) or read >= -1:
            continue
        for name, tower in children(part):
            count = fields_of(tower).get("num_hidden_layers")
            if "vision" in name and isinstance(count, int):
                fields_of(tower)["num_hidden_layers"] = max(count, layers - read - 1)
