"""A model of a few lines, and places in it where a decision can hang on a word."""

from __future__ import annotations

import textwrap

IMPORTS = """\
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
"""
MODELS = "transformers/models"
LIBRARY = {
    "transformers/__init__.py": "",
    "transformers/modeling_layers.py": "class GradientCheckpointingLayer: ...\n",
    "transformers/modeling_utils.py": "class PreTrainedModel: ...\n",
}
"""As much of the library as is needed where a model lies in it."""
RELATIVE = (
    "from ...modeling_layers import GradientCheckpointingLayer\nfrom ...modeling_utils import PreTrainedModel"
)
ABSOLUTE = (
    "from transformers import PreTrainedModel\n"
    "from transformers.modeling_layers import GradientCheckpointingLayer"
)
"""The imports of a model inside of the library, and outside."""
PLAIN = "nn.Module"
PROTECTED = "GradientCheckpointingLayer"

ATTENTION = """
class ToyAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.query = nn.Linear(config.size, config.size)

    def forward(self, states):
        return self.query(states)

"""
STACK = "self.layers = nn.ModuleList([ToyLayer(config) for _ in range(config.depth)])"
NUMBERED = "self.layers = nn.ModuleList([ToyLayer(config, index) for index in range(config.depth)])"
"""Layers that each have a number of their own, such as for a slot of a cache."""
LOOP = """
for layer in self.layers:
    hidden_states = layer(hidden_states)
"""
BODY = "return hidden_states + self.attention(hidden_states)"
FLAG = "self.gradient_checkpointing = False"
BRANCH = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states, mask)
    else:
        hidden_states = layer(hidden_states, mask)
"""


def block(
    body: str = BODY,
    *,
    name: str = "ToyLayer",
    base: str = PLAIN,
    takes: str = "hidden_states, mask=None",
    init: str = "",
    more: str = "",
) -> str:
    """Write a layer.

    Args:
        body: of its ``forward``.
        name: of the class.
        base: its bases.
        takes: the parameters of ``forward``.
        init: more statements of ``__init__``.
        more: more of the class, in front of ``forward``.
    """
    return "\n".join(
        [
            f"class {name}({base}):",
            "    def __init__(self, config, index=0):",
            "        super().__init__()",
            "        self.attention = ToyAttention(config)",
            _indented(init, 8),
            _indented(more, 4),
            f"    def forward(self, {takes}):",
            _indented(body, 8),
            "",
            "",
        ]
    )


def model(
    loop: str = LOOP,
    *,
    name: str = "ToyModel",
    base: str = "PreTrainedModel",
    takes: str = "hidden_states, mask=None",
    init: str = STACK,
    more: str = "",
    supports: str = "True",
) -> str:
    """Write a model that runs layers; the arguments are those of ``block``."""
    return "\n".join(
        [
            f"class {name}({base}):",
            f"    supports_gradient_checkpointing = {supports}",
            "    def __init__(self, config):",
            "        super().__init__(config)",
            _indented(init, 8),
            _indented(more, 4),
            f"    def forward(self, {takes}):",
            _indented(loop, 8),
            "        return hidden_states",
            "",
        ]
    )


def toy(*parts: str, imports: str = "") -> str:
    """Write a file of these parts, of a plain layer and a model without any."""
    return IMPORTS + imports + "\n" + ATTENTION + "\n".join(parts or (block(), model()))


def call(arguments: str, *, takes: str = "hidden_states, mask=None", given: str = "", **more: str) -> str:
    """Write a file whose model passes these arguments to a checkpointing layer.

    Args:
        arguments: of the call in the loop.
        takes: the parameters of the layer.
        given: the statements before the loop.
        more: what else is said of the model.
    """
    loop = f"{given.strip()}\nfor layer in self.layers:\n    hidden_states = layer({arguments})\n"
    return toy(block(base=PROTECTED, takes=takes), model(loop, **more))


def _indented(text: str, width: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip(), " " * width)
