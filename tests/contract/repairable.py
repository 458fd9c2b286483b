"""Which generated models are repairable by construction: any linter should be able to."""

from __future__ import annotations

from collections.abc import Mapping

from tests.contract.grammar import FEATURES, Shape

_LIBRARY_FUNCTIONS = ("func call", "func forward", "func bare", "func partial", "custom forward", "helper")
_UNDERSTOOD = frozenset(("none", *_LIBRARY_FUNCTIONS, "custom forward tuple", "torch", "torch non-reentrant"))
_PLAIN_RETURNS = frozenset(("tensor", "tuple", "tuple with weights", "unpacked"))
_NEUTRALISED = {
    "4.57.6": frozenset(("none", "past_key_value", "past_key_values", "layer_past")),
    "5.23.0": frozenset(("none", "past_key_values", "layer_past")),
}
_REPAIRABLE: Mapping[str, frozenset[str]] = {
    "switch": frozenset(("library",)),
    "stack": frozenset(FEATURES["stack"]) - {"stages", "sequential", "two stacks and one branch", "shared"},
    "loop": frozenset(FEATURES["loop"]) - {"while"},
    "checkpoint": _UNDERSTOOD,
    "branch": frozenset(("if", "negated", "computed", "conditional expression", "getattr", "grad enabled")),
    "sides": frozenset(("same", "no cache")),
    "order": frozenset(("activations first",)),
    "encoder": frozenset(FEATURES["encoder"]) - {"list"},
    "bias": frozenset(
        (
            "none",
            "before loop by keyword",
            "before loop by position",
            "weight by keyword",
            "per layer",
            "is None",
            "residual by keyword",
        )
    ),
    "rotary": frozenset(("none", "tuple", "tuple by position")),
    "extra": frozenset(FEATURES["extra"]) - {"shared dict"},
    "returns": _PLAIN_RETURNS,
    "cache_call": frozenset(("keyword", "position")),
    "state": frozenset(("none", "dropout", "frozen part")),
    "block": frozenset(("module", "local base", "other file", "base in other file", "mixin", "gcl")),
    "runner": frozenset(("none",)),
}
"""What a model may be for anybody to see how it is repaired: the library's switch, a branch whose
sides agree, no state, nothing nested. Features that are missing here may have any value."""


def is_repairable(shape: Shape, release: str) -> bool:
    """Tell whether a model is repairable by construction, and there is something to repair."""
    if shape.cache not in _NEUTRALISED[release]:
        return False
    if any(getattr(shape, name) not in values for name, values in _REPAIRABLE.items()):
        return False
    if shape.is_layer:
        keyword_activation = shape.call == "keyword" or shape.encoder.endswith("keyword")
        return keyword_activation or (shape.cache != "none" and shape.cache_call == "position")
    return True
