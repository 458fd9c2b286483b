"""Cases of hints about tokens of several codebooks or streams."""

from __future__ import annotations

from gclint.verify.worker.synthesis.inputs.situation import Plan
from tests.verify.synthesis.recorded.case import Case, Floats, Integers, ToyConfig, at

_BOOKS = ToyConfig(num_codebooks=4)
_TEXT = {"input_ids": Integers(2, 12)}

CASES = {
    "codebooks": (
        Case(
            "shape '[2, 4, -1]' is invalid for input of size 20",
            {"shapes": {"decoder_input_ids": (8, 10)}},
            inputs={**_TEXT, "decoder_input_ids": Integers(2, 10)},
            config=_BOOKS,
        ),
        Case(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans "
            "across two contiguous subspaces). Use .reshape(...) instead.",
            {"shapes": {}, "ranks": {"decoder_input_ids": 3}},
            inputs={**_TEXT, "decoder_input_ids": Integers(8, 10)},
            config=_BOOKS,
            plan=Plan(shapes={"decoder_input_ids": (8, 10)}),
        ),
    ),
    "streams": (
        Case(
            "The size of tensor a (12) must match the size of tensor b (4) at non-singleton dimension 1",
            {"shapes": {"input_ids": (2, 12, 4)}},
            frames=(at("self.embed(input_ids + self.offsets)"),),
            inputs=_TEXT,
        ),
    ),
    "beside_one_another": (
        Case(
            "too many indices for tensor of dimension 2",
            {"shapes": {"input_ids": (2, 12, 4)}},
            error=IndexError,
            frames=(at("self.embed(input_ids[:, :, book])"),),
            inputs={"attention_mask": Integers(2, 12), **_TEXT},
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
        Case("index out of range in self", {"length": 4}, error=IndexError, inputs=_TEXT, config=_BOOKS),
        # A list that is shorter than there are codebooks.
        Case("index 3 is out of range", {"length": 3}, error=IndexError, inputs=_TEXT, config=_BOOKS),
    ),
}
