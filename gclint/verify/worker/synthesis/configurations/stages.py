"""The named stages of a backbone, and those that it returns."""

from __future__ import annotations

from typing import Any

from gclint.verify.worker.synthesis.configurations.fields import Kind, kind_of
from gclint.verify.worker.synthesis.configurations.tree import fields_of


def fit_stages(part: Any, original: dict[str, Any]) -> None:
    """Name as many stages of the backbone ``part`` as it has layers now.

    It returns as many stages as before: the last ones.
    """
    fields = fields_of(part)
    names = fields.get("stage_names")
    if not isinstance(names, list) or not names:
        return
    before = len(names) - 1
    counts = [
        n for n, v in original.items() if kind_of(n) is Kind.LAYERS and v == before and isinstance(v, int)
    ]
    if not counts:
        return
    chosen = list(fields.get("_out_indices") or [before])
    after = max(fields[counts[0]], len(chosen))
    for name in counts:
        fields[name] = after
    fields["stage_names"] = [names[0], *(f"stage{number + 1}" for number in range(after))]
    fields["_out_indices"] = list(range(after + 1))[-len(chosen) :]
    fields["_out_features"] = [fields["stage_names"][number] for number in fields["_out_indices"]]
