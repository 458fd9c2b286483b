"""Cases of hints about which inputs to give."""

from __future__ import annotations

from gclint.verify.worker.synthesis.inputs.situation import Plan
from tests.verify.synthesis.recorded.case import Case, Floats, Integers, ToyConfig, at

_TEXT = {"input_ids": Integers(2, 12)}
_BOTH = {**_TEXT, "inputs_embeds": Floats(2, 12, 64)}
_EMBEDDED = {"without": frozenset({"input_ids"}), "also": frozenset({"inputs_embeds"})}
_FIRST = {"without": frozenset({"inputs_embeds"})}


def _asked(message: str) -> Case:
    return Case(
        message, {"also": frozenset({"boxes"})}, error=ValueError, inputs=_TEXT, not_given=("boxes", "labels")
    )


CASES = {
    "unset_variable": (
        Case(
            "cannot access local variable 'context' where it is not associated with a value",
            {"also": frozenset({"visual_states"})},
            error=UnboundLocalError,
            frames=(at("return text + context", input_ids=1, visual_states=None, labels=None, other=None),),
            inputs=_TEXT,
            not_given=("visual_states", "labels"),
        ),
    ),
    "embeddings": tuple(
        Case(message, _EMBEDDED, error=error, inputs=_TEXT, not_given=("inputs_embeds",))
        for message, error in (
            ("'ToyDecoder' object has no attribute 'embed_tokens'", AttributeError),
            ("`input_ids` is not expected here", ValueError),
            ("input_ids is expected to be `None`", ValueError),
        )
    ),
    "not_both": (
        *(
            Case(message, _FIRST, error=ValueError, inputs=_BOTH)
            for message in (
                "You cannot specify both input_ids and inputs_embeds",
                "You must specify exactly one of input_ids or inputs_embeds",
                "Please give either input_ids or inputs_embeds",
                "Give one of input_ids and inputs_embeds",
                "input_ids and inputs_embeds are provided at the same time",
            )
        ),
        # One that was asked for is taken back; only one of two that exclude each other is named.
        Case(
            "You cannot pass both `boxes` and what is worked out from them",
            {"without": frozenset({"boxes"}), "also": frozenset()},
            error=ValueError,
            inputs={**_TEXT, "boxes": Integers(2, 12, 4)},
            plan=Plan(also=frozenset({"boxes"})),
        ),
    ),
    "unwanted": (
        Case(
            "ToyDecoder.forward() got an unexpected keyword argument 'pixel_values'",
            {"without": frozenset({"pixel_values"})},
            error=TypeError,
            inputs={**_TEXT, "pixel_values": Floats(2, 3, 32, 32)},
        ),
    ),
    "instead": (
        Case(
            "This model cannot pass `bbox` on to its layers.\nPass `boxes` instead.",
            {"without": frozenset({"bbox"}), "also": frozenset({"boxes"})},
            error=ValueError,
            inputs={**_TEXT, "bbox": Integers(2, 12, 4)},
            not_given=("boxes",),
            plan=Plan(also=frozenset({"bbox"})),
        ),
    ),
    "none_in_line": (
        Case(
            "unsupported operand type(s) for -: 'int' and 'NoneType'",
            {"also": frozenset({"attention_mask"})},
            error=TypeError,
            frames=(at("weights = 1 - attention_mask", attention_mask=None, bbox=None, labels=None),),
            inputs=_TEXT,
            not_given=("attention_mask", "bbox", "labels"),
        ),
        # The line that names it lies further out; what no input is, or is a cache, does not count.
        Case(
            "cannot unpack non-iterable NoneType object",
            {"also": frozenset({"position_embeddings"})},
            error=TypeError,
            frames=(
                at("cos, sin = angles", angles=None),
                at("layer(past_key_values)", past_key_values=None),
                at("layer(states, position_embeddings)", position_embeddings=None),
            ),
            inputs=_TEXT,
            not_given=("position_embeddings", "past_key_values"),
        ),
        Case(
            "Expected a mask, but got None",
            {"also": frozenset({"attention_mask"})},
            error=ValueError,
            frames=(at("self.check(attention_mask)", attention_mask=None),),
            inputs=_TEXT,
            not_given=("attention_mask",),
        ),
    ),
    "asked_for": (
        *(
            _asked(message)
            for message in (
                "You have to specify boxes",
                "boxes should be provided",
                "boxes are required",
                "boxes are missing",
                "boxes must be given for cross-attention layers",
                "boxes were expected",
                "the first layer needs boxes",
                "pass boxes for training",
                "set `boxes` to avoid this",
            )
        ),
        # The first one of two that exclude each other; the cache and labels are not given for an error.
        Case(
            "You have to specify either other_ids or other_states",
            {"also": frozenset({"other_ids"})},
            error=ValueError,
            not_given=("other_states", "other_ids"),
        ),
        Case(
            "ToyModel.forward() missing 1 required positional argument: 'reference_points'",
            None,
            error=TypeError,
            inputs=_TEXT,
            required=("reference_points",),
        ),
    ),
    "without_labels": (
        Case(
            "Expected input batch_size (24) to match target batch_size (2).",
            {"without": frozenset({"labels"})},
            error=ValueError,
            frames=(at("return cross_entropy(scores, labels)"),),
            inputs={**_TEXT, "labels": Integers(2)},
        ),
        Case(
            "Expected input batch_size (24) to match target batch_size (2).",
            {"without": frozenset({"start_positions", "end_positions"})},
            error=ValueError,
            inputs={**_TEXT, "start_positions": Integers(2), "end_positions": Integers(2)},
        ),
    ),
    "without_sizes": (
        Case(
            "'Conv2d' object has no attribute 'patch_size'",
            {"without": frozenset({"image_sizes"})},
            error=AttributeError,
            frames=(at("raise AttributeError("), at("image_sizes // self.tower.patch_size")),
            inputs={"pixel_values": Floats(2, 3, 32, 32), "image_sizes": Integers(2, 2)},
            config=ToyConfig(patch_size=8),
        ),
    ),
}
