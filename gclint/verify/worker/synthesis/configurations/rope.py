"""Rotary position embeddings: sections and factors that add up to half the width of a head."""

from __future__ import annotations

import re
from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import descendants, fields_of


def shrink_rope(part: Any, original: dict[str, Any]) -> None:
    """Fit the rotary sections and factors of ``part`` to its smaller heads."""
    fields = fields_of(part)
    rotary, whole = fields.get("qk_rope_head_dim"), fields.get("head_dim")
    if isinstance(rotary, int) and isinstance(whole, int) and isinstance(fields.get("rope_parameters"), dict):
        for rope in (fields["rope_parameters"], *fields["rope_parameters"].values()):
            if isinstance(rope, dict) and rope.get("partial_rotary_factor", 1.0) != 1.0:
                rope["partial_rotary_factor"] = rotary / whole
    before, after = head_width(original), head_width(fields)
    if not before or not after:
        return
    for name, value in list(fields.items()):
        if isinstance(name, str) and "rope" in name and isinstance(value, dict):
            fields[name] = _scale(value, before, after)


def fill_sections(config: Any, source: str) -> None:
    """Write rotary sections into ``config`` if only the ``source`` of the model has a default for them."""
    found = re.search(r"mrope_section\W+\[(\d+), *(\d+), *(\d+)\]", source)
    if found is None:
        return
    for part in descendants(config):
        rope, width = fields_of(part).get("rope_parameters"), head_width(fields_of(part))
        if isinstance(rope, dict) and "rope_type" in rope and "mrope_section" not in rope and width:
            sections = [int(each) for each in found.groups()]
            rotary = int(width * rope.get("partial_rotary_factor", 1.0))
            rope["mrope_section"] = _sections(sections, 2 * sum(sections), rotary)


def _scale(rope: dict[str, Any], before: int, after: int) -> dict[str, Any]:
    result = dict(rope)
    for name, value in rope.items():
        if isinstance(value, dict):
            result[name] = _scale(value, before, after)
        elif name.endswith("section") and isinstance(value, list | tuple):
            result[name] = _sections(value, before, after)
        elif name in ("short_factor", "long_factor") and isinstance(value, list | tuple):
            result[name] = list(value)[: max(1, len(value) * after // before)]
        elif name == "original_max_position_embeddings" and isinstance(value, int):
            result[name] = min(value, 64)
    return result


def _sections(sections: Any, before: int, after: int) -> list[int]:
    total = max(len(sections), sum(sections) * after // before)
    scaled = [max(1, section * after // before) for section in sections]
    while sum(scaled) != total:
        index = scaled.index(max(scaled)) if sum(scaled) > total else scaled.index(min(scaled))
        scaled[index] += 1 if sum(scaled) < total else -1
    return scaled


def head_width(fields: dict[str, Any]) -> int | None:
    """Return the width of the heads whose queries and keys are rotated; None if ``fields`` do not give it."""
    for name in ("head_dim", "attention_head_dim", "qk_rope_head_dim"):
        if isinstance(fields.get(name), int):
            return int(fields[name])
    for width in ("hidden_size", "d_model", "embed_dim", "n_embd", "hidden_dim"):
        for heads in ("num_attention_heads", "num_heads", "n_head", "n_heads"):
            if isinstance(fields.get(width), int) and isinstance(fields.get(heads), int):
                return int(fields[width]) // int(fields[heads])
    return None
