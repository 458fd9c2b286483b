"""The models that are edited."""

from __future__ import annotations

HEADER = "from torch import nn\nfrom transformers import PreTrainedModel\n"
LAYER = """

class OtterLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.hidden_size, config.num_heads)

    def forward(self, hidden_states):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]
"""
MODEL = """

class OtterModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([OtterLayer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""
BAD = HEADER + LAYER + MODEL
GOOD = BAD.replace(
    "PreTrainedModel\n\n\nclass OtterLayer(nn.Module)",
    "PreTrainedModel\nfrom transformers.modeling_layers import GradientCheckpointingLayer\n\n\n"
    "class OtterLayer(GradientCheckpointingLayer)",
)
UNSAFE = BAD.replace("super().__init__()\n", "super().__init__()\n        self.norm = nn.BatchNorm1d(8)\n", 1)
BROKEN = BAD.replace("def forward(self, hidden_states):", "def forward(self, hidden_states:", 1)
BASE = HEADER + LAYER.replace("OtterLayer", "SealLayer")
HEIR = (
    f"{HEADER}from ..seal.modeling_seal import SealLayer\n\n\nclass OtterLayer(SealLayer):\n    pass\n{MODEL}"
)
"""Its layer inherits from the one in ``BASE``."""
