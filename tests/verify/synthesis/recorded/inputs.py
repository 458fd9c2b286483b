"""Cases of hints about which inputs to give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


_OF_INPUTS = {
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


_BOOKS = ToyConfig(num_codebooks=4)
_TOKENS = {"input_ids": Integers(2, 12)}

_OF_TOKENS = {
    "codebooks": (
        Case(
            "shape '[2, 4, -1]' is invalid for input of size 20",
            {"shapes": {"decoder_input_ids": (8, 10)}},
            inputs={**_TOKENS, "decoder_input_ids": Integers(2, 10)},
            config=_BOOKS,
        ),
        Case(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans "
            "across two contiguous subspaces). Use .reshape(...) instead.",
            {"shapes": {}, "ranks": {"decoder_input_ids": 3}},
            inputs={**_TOKENS, "decoder_input_ids": Integers(8, 10)},
            config=_BOOKS,
            plan=Plan(shapes={"decoder_input_ids": (8, 10)}),
        ),
    ),
    "streams": (
        Case(
            "The size of tensor a (12) must match the size of tensor b (4) at non-singleton dimension 1",
            {"shapes": {"input_ids": (2, 12, 4)}},
            frames=(at("self.embed(input_ids + self.offsets)"),),
            inputs=_TOKENS,
        ),
    ),
    "beside_one_another": (
        Case(
            "too many indices for tensor of dimension 2",
            {"shapes": {"input_ids": (2, 12, 4)}},
            error=IndexError,
            frames=(at("self.embed(input_ids[:, :, book])"),),
            inputs={"attention_mask": Integers(2, 12), **_TOKENS},
            config=_BOOKS,
        ),
    ),
    "in_place_of_values": (
        Case(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; "
            "but got torch.FloatTensor instead (while checking arguments for embedding)",
            {"tokens": frozenset({"input_values"})},
            inputs={"input_values": Floats(2, 7760)},
        ),
    ),
    "shorter": (
        Case("index out of range in self", {"length": 4}, error=IndexError, inputs=_TOKENS, config=_BOOKS),
        # A list that is shorter than there are codebooks.
        Case("index 3 is out of range", {"length": 3}, error=IndexError, inputs=_TOKENS, config=_BOOKS),
    ),
}


_MARKED = ToyConfig(hidden_size=64, image_token_id=9, audio_token_id=10, image_size=32, patch_size=8)
_SEEN = {"input_ids": Integers(2, 28), "pixel_values": Floats(2, 3, 32, 32)}
_HEARD = {"input_ids": Integers(2, 16), "input_features": Floats(2, 64, 32)}
_UNMARKED = ToyConfig(hidden_size=64)


def _counted(message: str, counts: Mapping[str, int], inputs: Mapping[str, Any] = _SEEN) -> Case:
    return Case(message, {"counts": counts}, error=ValueError, inputs=inputs, config=_MARKED)


def _written(error: type[Exception], message: str, *shape: int) -> Case:
    return Case(
        message,
        {"counts": {"image": 4}},
        error=error,
        frames=(
            at("embeds[places] = values"),
            at("self.place(features)", image_features=Floats(*shape)),
        ),
        inputs=_SEEN,
        config=_MARKED,
    )


_OF_PLACEHOLDERS = {
    "counted": (
        _counted("Image features and image tokens do not match, tokens: 32, features: 8", {"image": 4}),
        _counted("Image features and image tokens do not match: tokens: 32, features 4", {"image": 2}),
        _counted("Number of image tokens 32 differs from that of features 64", {"image": 32}),
        _counted(
            "Speech features and audio tokens do not match, tokens: 8, features: 128", {"audio": 64}, _HEARD
        ),
        # The mask says of what it is; the modality is only named where there is none.
        _counted("Mismatch: final_mask wants 32 embeddings, but projector returned 8", {"image": 4}),
        _counted(
            "shape mismatch: value tensor of shape [26, 64] cannot be broadcast to indexing result of shape "
            "[8, 64]",
            {"image": 52},
        ),
        # Written flat.
        _counted(
            "shape mismatch: value tensor of shape [768] cannot be broadcast to indexing result of shape "
            "[256]",
            {"image": 48},
        ),
        # Where the numbers agree, those of features were not counted.
        Case(
            "Image features and image tokens do not match: tokens: 32, features: 32",
            {"counts": {"image": 4}},
            error=ValueError,
            frames=(at("self.check(image_features)", image_features=Floats(2, 4, 64)),),
            inputs=_SEEN,
            config=_MARKED,
            plan=Plan(counts={"image": 16}),
        ),
        # No placeholder: the modality is left out.
        Case(
            "Image features and image tokens do not match, tokens: 0, features: 8",
            {"without": frozenset({"image_sizes"})},
            error=ValueError,
            inputs={**_SEEN, "image_sizes": Integers(2, 2)},
            config=_UNMARKED,
        ),
    ),
    "written_into_places": (
        _written(IndexError, "index 8 is out of bounds for dimension 0 with size 8", 2, 4, 64),
        _written(RuntimeError, "Number of elements of source < number of ones in mask", 2, 4, 64),
        _written(IndexError, "index 8 is out of bounds for dimension 0 with size 8", 2 * 4 * 64),
    ),
}


CASES = {**_OF_INPUTS, **_OF_TOKENS, **_OF_PLACEHOLDERS}
