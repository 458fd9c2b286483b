"""The modalities of a batch besides text, and batches without some of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gclint.verify.worker.synthesis.configurations.known import function_for_inputs
from gclint.verify.worker.synthesis.inputs.forward import make_inputs
from gclint.verify.worker.synthesis.inputs.situation import Situation

_MODALITIES = {
    # Videos come first, since their inputs are named after pixels and grids as well.
    "video": re.compile(r"video|second_per_grid"),
    "audio": re.compile(r"audio|speech|input_features|input_values|feature_lens|feature_attention|mel_spec"),
    "image": re.compile(
        r"pixel|image|visual|vision|patches|grid_(thw|hw)|aspect_ratio|spatial_shapes|target_sizes"
        r"|cross_attention_mask"
    ),
}
"""Modalities, with the names of the inputs that contain or describe them."""


@dataclass(frozen=True)
class Variants:
    """The batches that can be made from the usual one of a class by leaving out modalities."""

    situation: Situation

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        """The names of the usual inputs of each modality that the class does not require."""
        if function_for_inputs(self.situation.model_class) is not None:
            return {}
        given = make_inputs(self.situation)
        found: dict[str, set[str]] = {}
        for name in given if "input_ids" in given else ():
            modality = next((each for each, pattern in _MODALITIES.items() if pattern.search(name)), None)
            if modality is not None:
                found.setdefault(modality, set()).add(name)
        parameters = self.situation.parameters
        return {
            modality: frozenset(names)
            for modality, names in found.items()
            if all(parameters[name].default is not parameters[name].empty for name in names)
        }

    @property
    def modalities(self) -> frozenset[str]:
        """Those of ``image``, ``video`` and ``audio`` that can be left out of the usual batch."""
        return frozenset(self._names)

    def inputs(self, kept: Collection[str]) -> dict[str, Any]:
        """Return a batch of text and of the modalities in ``kept``; the class may fail on it."""
        dropped = frozenset().union(*(names for each, names in self._names.items() if each not in kept))
        plan = replace(self.situation.plan, without=self.situation.plan.without | dropped)
        return make_inputs(replace(self.situation, plan=plan))
