import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer


class Layer(GradientCheckpointingLayer):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, hidden_states):
        return hidden_states + self.linear(hidden_states)


class Model(PreTrainedModel):
    config_class = PretrainedConfig
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = torch.nn.Embedding(256, 4)
        self.layers = torch.nn.ModuleList([Layer() for _ in range(2)])
        self.head = torch.nn.Linear(4, 1)

    def forward(self, input_ids):
        hidden_states = self.embeddings(input_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states=hidden_states)  # the mistake: by keyword
        return self.head(hidden_states)


if __name__ == "__main__":
    model = Model(PretrainedConfig()).train()
    for settings in (None, {"use_reentrant": False}, {"use_reentrant": True}):
        if settings is not None:
            model.gradient_checkpointing_enable(settings)
        model.zero_grad()
        model(torch.tensor([0, 1])).sum().backward()
        trained = sum(parameter.grad is not None for parameter in model.parameters())
        print(f"{settings}: {trained} of {len(list(model.parameters()))} parameters get a gradient")
