"""Cases of hints about layers that a field makes too narrow, or of no kind."""

from __future__ import annotations

from typing import Any

from tests.verify.synthesis.recorded.case import Case, Floats, Part, ToyConfig, ToyTextConfig, at


def linear(width: int) -> Any:
    """Stand for a layer."""
    return width


class Joined(Part):
    def __init__(self, config: ToyConfig) -> None:
        self.join = linear(config.joined_size)
        self.width = config.normed_size
        self.norm = linear(self.width)
        self.stream = linear(config.hidden_size)


class KindsConfig(ToyConfig):
    """Names the kinds of its layers, and has none by default."""

    attribute_map = {"block_types": "layer_types"}  # noqa: RUF012

    def check(self) -> None:
        if any(each not in ["wide", "narrow"] for each in vars(self)["layer_types"]):
            raise ValueError


_WIDTHS = ToyConfig(hidden_size=64, joined_size=64, normed_size=64)
_MODULE = Joined(_WIDTHS)

CASES = {
    "input_width": (
        Case(
            "mat1 and mat2 shapes cannot be multiplied (2x256 and 64x64)",
            {"values": {("ToyConfig", "joined_size"): 256}},
            frames=(
                at("return F.linear(input, self.weight)", input=Floats(2, 256), self=Part()),
                # The innermost call is written last; a stream is no single layer's.
                at("return self.stream(self.join(features))", self=_MODULE),
            ),
            config=_WIDTHS,
        ),
        # Of several configurations with that field it is the one that the constructor names.
        Case(
            "mat1 and mat2 shapes cannot be multiplied (2x256 and 64x64)",
            {"values": {("ToyConfig", "joined_size"): 256}},
            frames=(at("return self.join(features)", self=_MODULE),),
            config=ToyTextConfig(joined_size=64, tower_config=_WIDTHS),
        ),
        # The width is kept under another name first.
        Case(
            "Given normalized_shape=[64], expected input with shape [*, 64], but got input of size[8, 32]",
            {"values": {("ToyConfig", "normed_size"): 32}},
            frames=(at("features = self.norm(features)", self=_MODULE),),
            config=_WIDTHS,
        ),
    ),
    "kinds": (
        Case(
            "'NoneType' object is not subscriptable",
            {
                "values": {
                    ("KindsConfig", "layer_types"): ["wide", "wide", "narrow", "narrow"],
                    ("KindsConfig", "num_hidden_layers"): 4,
                }
            },
            error=TypeError,
            frames=(at('self.times = 2 if config.block_types[index] == "wide" else 1'),),
            config=KindsConfig(layer_types=None, num_hidden_layers=2),
        ),
    ),
}
