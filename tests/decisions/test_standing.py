"""Which classes that a loop runs are blocks: by the model around, the base, and what is inside."""

from __future__ import annotations

from tests.decisions.outside import FILE, LAYER, Pair, decided, found, silent
from tests.decisions.toy import BRANCH, FLAG, STACK, block, model, toy

_SAFE = [found(LAYER, "safe")]


test_mixers = decided(
    Pair(
        "a mixer by the name of a part",
        toy(),
        ("self.attention = ToyAttention(config)", "self.attention = nn.Linear(4, 4)"),
        _SAFE,
        [silent(LAYER, "no mixer")],
        at="class ToyLayer",
    ),
    Pair(
        "a mixer of torch",
        toy(
            block("return self.mix(hidden_states)[0]", init="self.mix = nn.LSTM(4, 4)").replace(
                "ToyAtt", "ToyF"
            ),
            model(),
        ),
        ("nn.LSTM(", "nn.Bilinear("),
        _SAFE,
        [silent(LAYER, "no mixer")],
        at="class ToyLayer",
    ),
    Pair(
        "softmax over queries and keys",
        toy(
            block(
                "q, k = self.a(hidden_states), self.b(hidden_states)\nreturn torch.softmax(q @ k, -1)",
                init="self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)",
            ).replace("ToyAttention(config)", "None"),
            model(),
        ),
        ("torch.softmax(", "torch.sigmoid("),
        _SAFE,
        [silent(LAYER, "no mixer")],
        at="class ToyLayer",
    ),
    Pair(
        "softmax without keys",
        toy(
            block(
                "q, k = self.a(hidden_states), 1\nreturn torch.softmax(q, -1)",
                init="self.a = nn.Linear(4, 4)",
            ).replace("ToyAttention(config)", "None"),
            model(),
        ),
        ("q, k = ", "q, v = "),
        _SAFE,
        [silent(LAYER, "no mixer")],
        at="class ToyLayer",
    ),
    Pair(
        "the block is itself the mixer",
        toy(
            block(name="ToyAttentionLayer"), model(init=STACK.replace("ToyLayer", "ToyAttentionLayer"))
        ).replace("ToyAttentionLayer", "ToyRetentionLayer"),
        ("class ToyRetentionLayer", "class ToyLayerRetention"),
        [found(LAYER, "safe", of="ToyRetentionLayer")],
        [],
    ),
    Pair(
        "the name of the model does not make a mixer",
        toy(
            "class MambaPreTrainedModel(PreTrainedModel):\n    pass\n",
            block(name="MambaLayer").replace("ToyAttention(config)", "None"),
            model(init=STACK.replace("ToyLayer", "MambaLayer"), base="MambaPreTrainedModel"),
        ),
        ("class MambaPreTrainedModel", "class ToyPreTrainedModel"),
        [silent(LAYER, "no mixer")],
        [],
        at="class MambaLayer",
    ),
)


_ENCODER = model(name="ToyEncoder", base="nn.Module", supports="None").replace(
    "super().__init__(config)", "super().__init__()"
)
_AROUND = model("hidden_states = self.encoder(hidden_states)", init="self.encoder = ToyEncoder(config)")
_MODEL_BASE = """\
class PreTrainedModel(nn.Module):
    def gradient_checkpointing_enable(self):
        pass

"""
_GROUP = """\
class ToyStage(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.blocks = nn.ModuleList([ToyLayer(config)])

    def forward(self, hidden_states):
        for block in self.blocks:
            hidden_states = block(hidden_states)
        return hidden_states

"""
_STAGES = model(init="self.layers = nn.ModuleList([ToyStage(config)])")


test_standing = decided(
    Pair(
        "support is declared",
        toy(),
        ("checkpointing = True", "checkpointing = False"),
        _SAFE,
        [silent(LAYER, "no support")],
    ),
    Pair(
        "support is declared as True",
        toy(),
        ("checkpointing = True", "checkpointing = 1"),
        _SAFE,
        [silent(LAYER, "no support")],
    ),
    Pair(
        "support is inherited",
        toy(
            block(),
            "class ToyBase(PreTrainedModel):\n    supports_gradient_checkpointing = True\n",
            model(base="ToyBase").replace("    supports_gradient_checkpointing = True\n", ""),
        ),
        ("checkpointing = True", "checkpointing = False"),
        _SAFE,
        [silent(LAYER, "no support")],
    ),
    Pair(
        "it is a model",
        toy(),
        ("class ToyModel(PreTrainedModel)", "class ToyModel(nn.Module)"),
        _SAFE,
        [silent(LAYER, "no model")],
    ),
    Pair(
        "a model by a base class in the given files",
        toy(_MODEL_BASE, block(), model()).replace("from transformers import PreTrainedModel\n", ""),
        ("def gradient_checkpointing_enable(", "def save_pretrained("),
        _SAFE,
        [silent(LAYER, "no model")],
    ),
    Pair(
        "a model contains what runs it",
        toy(block(), _ENCODER, _AROUND),
        ("self.encoder = ToyEncoder(config)", "self.encoder = nn.Linear(4, 4)"),
        _SAFE,
        [silent(LAYER, "no model")],
    ),
    Pair(
        "a model in another file contains what runs it",
        {
            FILE: toy(block(), _ENCODER),
            "modeling_other.py": toy(_AROUND, imports="from modeling_toy import ToyEncoder\n"),
        },
        ("self.encoder = ToyEncoder(config)", "self.encoder = nn.Linear(4, 4)"),
        _SAFE,
        [silent(LAYER, "no model")],
    ),
    Pair(
        "support of a model in another file",
        {
            FILE: toy(block(), _ENCODER),
            "modeling_other.py": toy(_AROUND, imports="from modeling_toy import ToyEncoder\n"),
        },
        ("supports_gradient_checkpointing = True", "supports_gradient_checkpointing = False"),
        _SAFE,
        [silent(LAYER, "no support")],
    ),
    Pair(
        "it is a layer",
        toy(),
        ("class ToyLayer(nn.Module)", "class ToyLayer(GradientCheckpointingLayer)"),
        _SAFE,
        [silent(LAYER, "layer")],
    ),
    Pair(
        "it is a layer by its base",
        toy(block(name="ToyBase", base="GradientCheckpointingLayer"), block(), model()),
        ("class ToyLayer(nn.Module)", "class ToyLayer(ToyBase)"),
        _SAFE,
        [silent(LAYER, "layer")],
    ),
    Pair(
        "one of two bases is a layer",
        toy("class Mixin:\n    pass\n", block(base="Mixin, nn.Module"), model()),
        ("Mixin, nn.Module", "Mixin, GradientCheckpointingLayer"),
        _SAFE,
        [silent(LAYER, "layer")],
    ),
    Pair(
        "a base that is not known may be a layer",
        toy(block(base="nn.Module, Generic"), model(), imports="from typing import Generic\n"),
        ("from typing import", "from somewhere import"),
        _SAFE,
        [silent(LAYER, "unknown base")],
    ),
    Pair(
        "a model in a loop may be a block",
        toy(block(), model("hidden_states = self.layers[0](hidden_states)")).replace(
            "class ToyLayer(nn.Module)", "class ToyLayer(PreTrainedModel)"
        ),
        ("hidden_states = self.layers[0](", "for _ in mask:\n            hidden_states = self.layers[0]("),
        [silent(LAYER, "model outside of a loop")],
        [found(LAYER, "none", "model")],
        at="self.layers[0](",
    ),
    Pair(
        "a stage with layers of its own",
        toy(block(), _GROUP, _STAGES),
        ("class ToyLayer(nn.Module)", "class ToyLayer(GradientCheckpointingLayer)"),
        [found(LAYER, "safe", of="ToyStage")],
        [silent(LAYER, "stage")],
    ),
    Pair(
        "within a recomputed block",
        toy(block(), _GROUP, _STAGES),
        ("class ToyStage(nn.Module)", "class ToyStage(GradientCheckpointingLayer)"),
        [found(LAYER, "safe", of="ToyStage")],
        [silent(LAYER, "within a block")],
        at="block(",
    ),
    Pair(
        "a function makes what runs the layers, for the one model that calls it",
        toy(
            block(),
            _ENCODER,
            "def make(config):\n    return ToyEncoder(config)\n\n",
            model("hidden_states = self.encoder(hidden_states)", init="self.encoder = make(config)"),
        ),
        ("self.encoder = make(config)", "self.encoder = take(config)"),
        _SAFE,
        [],
    ),
    Pair(
        "a model that declares support twice, of which the second counts",
        toy(block(), model(supports="True\n    supports_gradient_checkpointing = False")),
        ("    supports_gradient_checkpointing = False", "    other = False"),
        [],
        _SAFE,
    ),
    Pair(
        "a model that may declare support, and its base that does",
        toy(
            block(),
            "class ToyBase(PreTrainedModel):\n    supports_gradient_checkpointing = True\n\n",
            model(base="ToyBase", supports="SUPPORTS"),
        ),
        ("= SUPPORTS", "= False"),
        _SAFE,
        [],
    ),
)


def _checkpointed(loop: str = BRANCH, init: str = "") -> str:
    return toy(block(), model(loop, init=f"{STACK}\n{FLAG}\n{init}"))


test_checkpointed_calls = decided(
    Pair(
        "a checkpointed call needs no loop",
        _checkpointed(
            BRANCH.replace("for layer in self.layers:", "layer = self.layers[0]\nif mask is not None:")
        ),
        ("_gradient_checkpointing_func(layer.__call__,", "wrapped(layer.__call__,"),
        _SAFE,
        [silent(LAYER, "no loop")],
    ),
    Pair(
        "a checkpointed call needs no mixer",
        _checkpointed().replace("ToyAttention(config)", "nn.Linear(4, 4)"),
        ("_gradient_checkpointing_func(layer.__call__,", "wrapped(layer.__call__,"),
        _SAFE,
        [silent(LAYER, "no mixer")],
        at="class ToyLayer",
    ),
    Pair(
        "torch's own function",
        toy(
            block(),
            model(
                BRANCH.replace("self._gradient_checkpointing_func(layer.__call__", "checkpoint(layer"),
                init=f"{STACK}\n{FLAG}",
            ).replace("ToyAttention(config)", "nn.Linear(4, 4)"),
            imports="from torch.utils.checkpoint import checkpoint\n",
        ).replace("ToyAttention(config)", "nn.Linear(4, 4)"),
        ("from torch.utils.checkpoint import", "from toy.checkpoint import"),
        _SAFE,
        [silent(LAYER, "no mixer")],
        at="class ToyLayer",
    ),
    Pair(
        "no call of its first argument",
        _checkpointed().replace("ToyAttention(config)", "nn.Linear(4, 4)"),
        ("func(layer.__call__,", "func(layer.train,"),
        _SAFE,
        [silent(LAYER, "no mixer")],
        at="class ToyLayer",
    ),
)
