"""A model of one layer, for tests of what is made of it."""

from __future__ import annotations

from typing import Any

import torch
from transformers import PretrainedConfig, PreTrainedModel

from gclint.verify.worker.synthesis.attempts.search import tiny_models


class OneLayerConfig(PretrainedConfig):  # type: ignore[misc]
    model_type = "one_layer"

    def __init__(self, hidden_size: int = 768, **others: Any) -> None:
        self.hidden_size = hidden_size
        super().__init__(**others)


class OneLayerModel(PreTrainedModel):  # type: ignore[misc]
    config_class = OneLayerConfig
    main_input_name = "hidden_states"
    supports_gradient_checkpointing = True

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.layer = torch.nn.Linear(config.hidden_size, config.hidden_size)
        self.gate = torch.nn.Parameter(torch.zeros(config.hidden_size))
        self.forgotten = torch.nn.Parameter(torch.empty(config.hidden_size))
        self.unused = torch.nn.Linear(64, 64)
        self.trifle = torch.nn.Linear(4, 4)

    def forward(self, hidden_states: Any) -> Any:
        return self.gate * self.layer(hidden_states) + self.forgotten


def first(model_class: Any) -> Any:
    return next(iter(tiny_models(model_class)))
