"""A modeling file as people outside the library write it, with one defect that has a safe fix."""

from __future__ import annotations

BROKEN = '''\
"""A model that says it can be checkpointed, and whose layers are not."""

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel


class SampleConfig(PretrainedConfig):
    model_type = "sample"

    def __init__(self, hidden_size=16, num_hidden_layers=2, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers


class SampleAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states, attention_mask=None):
        scores = self.query(hidden_states) @ self.key(hidden_states).transpose(-1, -2)
        if attention_mask is not None:
            scores = scores + attention_mask
        return torch.softmax(scores, dim=-1) @ self.value(hidden_states)


class SampleLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = SampleAttention(config)
        self.mlp = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states, attention_mask=None):
        hidden_states = hidden_states + self.attention(hidden_states, attention_mask)
        return hidden_states + self.mlp(hidden_states)


class SampleModel(PreTrainedModel):
    config_class = SampleConfig
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([SampleLayer(config) for _ in range(config.num_hidden_layers)])
        self.post_init()

    def forward(self, hidden_states, attention_mask=None):
        for layer in self.layers:
            hidden_states = layer(hidden_states, attention_mask)
        return hidden_states
'''

REPAIRED = BROKEN.replace(
    "from transformers import PretrainedConfig, PreTrainedModel\n",
    "from transformers import PretrainedConfig, PreTrainedModel\n"
    "from transformers.modeling_layers import GradientCheckpointingLayer\n",
).replace("class SampleLayer(nn.Module)", "class SampleLayer(GradientCheckpointingLayer)")

DEFECT = "modeling_sample.py:31:1: warning: GC001"
"""Where it is reported if the file has that name."""
