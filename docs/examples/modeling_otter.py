"""A model with the three mistakes that gclint was written for: the README shows what is reported here."""

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer


class OtterConfig(PretrainedConfig):
    model_type = "otter"
    hidden_size = 16
    num_hidden_layers = 2


class OtterAttention(nn.Module):
    def __init__(self, config, index=None):
        super().__init__()
        self.index, self.qkv = index, nn.Linear(config.hidden_size, 3 * config.hidden_size)

    def forward(self, hidden_states, past_key_values=None):
        query, key, value = self.qkv(hidden_states).chunk(3, dim=-1)
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.index)
        return torch.softmax(query @ key.transpose(-1, -2), dim=-1) @ value


class OtterEncoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = OtterAttention(config)

    def forward(self, hidden_states):
        return hidden_states + self.attention(hidden_states)


class OtterDecoderLayer(GradientCheckpointingLayer):
    def __init__(self, config, index):
        super().__init__()
        self.attention = OtterAttention(config, index)
        self.mlp = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states, encoder_hidden_states, past_key_values=None):
        hidden_states = hidden_states + self.attention(hidden_states, past_key_values)
        return hidden_states + self.mlp(encoder_hidden_states)


class OtterModel(PreTrainedModel):
    config_class = OtterConfig
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.encoder = nn.ModuleList([OtterEncoderLayer(config) for _ in range(config.num_hidden_layers)])
        self.decoder = nn.ModuleList([OtterDecoderLayer(config, i) for i in range(config.num_hidden_layers)])
        self.post_init()

    def forward(self, encoder_hidden_states, hidden_states, past_key_values=None):
        for layer in self.encoder:
            encoder_hidden_states = layer(encoder_hidden_states)
        for layer in self.decoder[:1]:
            hidden_states = layer(hidden_states, encoder_hidden_states=encoder_hidden_states)
        for layer in self.decoder[1:]:
            hidden_states = layer(hidden_states, encoder_hidden_states, past_key_values)
        return hidden_states
