"""Cases of hints about placeholders among the tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gclint.verify.worker.synthesis.inputs.situation import Plan
from tests.verify.synthesis.recorded.case import Case, Floats, Integers, ToyConfig, at

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


CASES = {
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
