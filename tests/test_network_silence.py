"""What is no unprotected block is not reported: other loops, other models, and what cannot be resolved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toy_models import IMPORTS, LAYERS, STACK, model, reported


def _with_layers(before: str, after: str) -> str:
    assert before in LAYERS
    return LAYERS.replace(before, after)


_SILENT = {
    "heads over a pyramid": IMPORTS
    + LAYERS
    + model(loop="features = []\nfor layer in self.layers:\n    features.append(layer(hidden_states))"),
    "heads over features": IMPORTS
    + LAYERS
    + model(loop="hidden_states = [layer(state) for layer, state in zip(self.layers, hidden_states)]"),
    "every other input": IMPORTS
    + LAYERS
    + model(loop="for layer, state in zip(self.layers, mask):\n    hidden_states = layer(state)"),
    "last output only": IMPORTS
    + LAYERS
    + model(loop="for layer in self.layers:\n    output = layer(hidden_states)\nhidden_states = output"),
    "convolutions": IMPORTS
    + LAYERS.replace("ToyAttention", "ToyConvolution")
    .replace("attention", "conv")
    .replace("Linear", "Conv1d")
    + model(),
    "unresolved base": IMPORTS
    + "from somewhere import UnknownLayer\n"
    + _with_layers("class ToyLayer(nn.Module)", "class ToyLayer(UnknownLayer)")
    + model(),
    "unresolved class": IMPORTS + "from somewhere import ToyLayer\n" + model(),
    "attention itself": IMPORTS + LAYERS + model(STACK.replace("ToyLayer", "ToyAttention")),
    "made by a function that is not known": IMPORTS
    + "from somewhere import register\n"
    + LAYERS
    + model(
        "if config.depth:\n    self.layers = None\n"
        '    register(self, "layers", nn.ModuleList([ToyLayer(config) for _ in range(config.depth)]))'
    ),
    "fills a cache whatever it is asked for": IMPORTS
    + "from transformers import DynamicCache\n"
    + _with_layers("mask=None", "past_key_values=None")
    + model(
        loop="""
cache = DynamicCache()
for layer in self.layers:
    hidden_states = layer(hidden_states, past_key_values=cache)
hidden_states = hidden_states + cache.layers[0].keys.mean()
"""
    ),
    "single layer": IMPORTS
    + LAYERS
    + model("self.layer = ToyLayer(config)", "hidden_states = self.layer(hidden_states)"),
    "never run": IMPORTS + LAYERS + model(loop="hidden_states = len(self.layers)"),
}


@pytest.mark.parametrize("reason", _SILENT)
def test_what_is_no_unprotected_block_is_not_reported(reason: str, tmp_path: Path) -> None:
    assert reported(tmp_path, {"modeling_toy.py": _SILENT[reason]}) == []


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("DynamicCache() if cache is None else cache", []),
        ("cache if cache is not None else (cache or DynamicCache())", []),
        ("DynamicCache() if use_cache else cache", ["ToyLayer"]),
        ("cache or (use_cache and DynamicCache())", ["ToyLayer"]),
        ("cache and DynamicCache()", ["ToyLayer"]),
    ],
)
def test_cache_is_needed_in_training_where_none_asks_whether_to_make_it(
    made: str, found: list[str], tmp_path: Path
) -> None:
    text = (
        IMPORTS
        + "from transformers import DynamicCache\n"
        + _with_layers("mask=None", "past_key_values=None")
        + model(
            loop=f"""
cache, use_cache = self.config.cache, self.config.use_cache
cache = {made}
for layer in self.layers:
    hidden_states = layer(hidden_states, past_key_values=cache)
"""
        )
    )
    assert reported(tmp_path, {"modeling_toy.py": text}) == found


@pytest.mark.parametrize("depth", range(4))
def test_bases_are_followed_to_any_depth(depth: int, tmp_path: Path) -> None:
    classes = [f"class Layer{i}(Layer{i + 1}):\n    pass\n" for i in range(depth)]
    stack = STACK.replace("ToyLayer", "Layer0")
    for base, expected in (("nn.Module", ["Layer0"]), ("GradientCheckpointingLayer", [])):
        last = LAYERS.replace("class ToyLayer(nn.Module)", f"class Layer{depth}({base})")
        last = last.replace("(ToyLayer)", "(nn.Module)")
        # In any order: a base may stand behind what inherits from it, as in modular files.
        text = IMPORTS + "\n".join(classes) + last + model(stack)
        assert reported(tmp_path / base, {"modular_toy.py": text}) == expected


def test_support_is_found_through_bases_and_siblings(tmp_path: Path) -> None:
    trunk = model(flag="True").replace("class ToyModel(PreTrainedModel)", "class ToyTrunk(nn.Module)")
    trunk = trunk.replace("    supports_gradient_checkpointing = True\n", "").replace(
        "__init__(config)", "__init__()"
    )
    outer = """
class ToyPreTrainedModel(PreTrainedModel):
    supports_gradient_checkpointing = {flag}


class ToyModel(ToyPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.trunk = ToyTrunk(config)

    def forward(self, hidden_states):
        return self.trunk(hidden_states)
"""
    for flag, expected in (("True", ["ToyLayer"]), ("False", [])):
        one_file = IMPORTS + LAYERS + trunk + outer.format(flag=flag)
        assert reported(tmp_path / flag, {"modeling_toy.py": one_file}) == expected
        imports = f"{IMPORTS}from .modeling_toy_trunk import ToyTrunk\n"
        files = {
            "toy/__init__.py": "",
            "toy/modeling_toy_trunk.py": IMPORTS + LAYERS + trunk,
            "toy/modeling_toy.py": f"{imports}{outer.format(flag=flag)}",
        }
        assert reported(tmp_path / f"{flag}, two files", files) == expected
