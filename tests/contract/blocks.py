"""The blocks of generated models, as text."""

from __future__ import annotations

from tests.contract.arguments import arguments, names_of, signature
from tests.contract.grammar import Shape

ATTENTION = """
class ToyAttention(nn.Module):
    def __init__(self, config, layer_idx=0):
        super().__init__()
        self.layer_idx = layer_idx
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size){state}

    def forward(self, states, mask=None, memory=None, bias=None, rotary=None, cache=None):
        source = states if memory is None else memory
        query, key, value = self.query(states), self.key(source), self.value(source){effect}
        if rotary is not None:
            cos, sin = rotary
            query = query * cos + query.roll(1, -1) * sin
            key = key * cos + key.roll(1, -1) * sin
        if cache is not None:
            key, value = cache.update(key[:, None], value[:, None], self.layer_idx)
            key, value = key[:, 0], value[:, 0]
        scores = query @ key.transpose(-1, -2)
        if bias is not None:
            scores = scores + bias
        if mask is not None:
            scores = scores + mask
        weights = scores.softmax(-1)
        return self.output(weights @ value), weights
"""
_INIT = {
    "batch norm": "self.statistics = nn.BatchNorm1d(config.hidden_size)",
    "self assignment": "self.calls = 0",
    "appends": "self.seen = []",
    "counter buffer": 'self.register_buffer("steps", torch.zeros(()))',
    "frozen part": "self.frozen = nn.Linear(config.hidden_size, config.hidden_size).requires_grad_(False)",
}
_EFFECT = {
    "batch norm": "{h} = self.statistics({h}.transpose(1, 2)).transpose(1, 2)",
    "self assignment": "self.calls = self.calls + 1",
    "appends": "self.seen.append({h}.shape[0])",
    "counter buffer": "self.steps.add_(1)",
    "in place": "{h} *= 1.5",
    "random": "{h} = {h} + 0.1 * torch.rand_like({h})",
    "python random": "{h} = {h} * (1 + random.random())",
    "frozen part": "{h} = {h} + self.frozen({h})",
    "grad switch": "{h} = {h} * (1.5 if torch.is_grad_enabled() else 2.0)",
}
_RETURNED = {
    "tensor": "{h}",
    "tuple": "({h},)",
    "tuple with weights": "({h}, weights)",
    "unpacked": "{h}, weights",
    "list": "[{h}, weights]",
    "dict": '{{"hidden_states": {h}, "weights": weights}}',
    "output": "BaseModelOutput(last_hidden_state={h})",
    "tuple or tensor": "({h}, weights) if weights.shape[0] == 1 else {h}",
}


def attention(shape: Shape) -> str:
    """Return the class that mixes positions."""
    has_state = shape.state == "part's state"
    state = "\n        self.last = 0" if has_state else ""
    effect = "\n        self.last = self.last + 1" if has_state else ""
    return ATTENTION.format(state=state, effect=effect)


def block(shape: Shape, name: str = "ToyLayer") -> str:
    """Return the class of the blocks, with a base of its own if it has one in the same file."""
    base = {
        "local base": f"{name}Base",
        "base in other file": "ToyBaseLayer",
        "mixin": f"{name}Mixin, nn.Module",
        "gcl": "GradientCheckpointingLayer",
        "gcl base in other file": "ToyBaseLayer",
    }.get(shape.block, "nn.Module")
    before = {
        "local base": _base(f"{name}Base", "nn.Module"),
        "mixin": f"\nclass {name}Mixin:\n    def describe(self):\n        return type(self).__name__\n\n",
    }.get(shape.block, "")
    lines = [f"class {name}({base}):"]
    lines += ["    def __init__(self, config, layer_idx=0):", *_init(shape, base), ""]
    lines += [f"    def forward({signature(shape)}):", *_forward(shape)]
    return before + "\n" + "\n".join(lines) + "\n"


def base_block(shape: Shape) -> str:
    """Return the base of the blocks that stands in another file."""
    return _base("ToyBaseLayer", "GradientCheckpointingLayer" if shape.is_layer else "nn.Module")


def _base(name: str, base: str) -> str:
    return (
        f"\nclass {name}({base}):\n"
        "    def __init__(self, config):\n"
        "        super().__init__()\n"
        "        self.norm1 = nn.LayerNorm(config.hidden_size)\n\n"
    )


def _init(shape: Shape, base: str) -> list[str]:
    inherits = base.endswith("Base") or base == "ToyBaseLayer"
    lines = ["super().__init__(config)"] if inherits else ["super().__init__()"]
    lines += [] if inherits else ["self.norm1 = nn.LayerNorm(config.hidden_size)"]
    lines += ["self.attention = ToyAttention(config, layer_idx)"]
    lines += ["self.cross = ToyAttention(config, layer_idx)"] * (shape.encoder != "none")
    lines += ["self.mlp = nn.Linear(config.hidden_size, config.hidden_size)"]
    lines += ["self.dropout = nn.Dropout(config.dropout)"] * (shape.state == "dropout")
    lines += [_INIT[shape.state]] if shape.state in _INIT else []
    return [" " * 8 + line for line in lines]


def _forward(shape: Shape) -> list[str]:
    stream = names_of(shape).stream
    taken = {each.parameter for each in arguments(shape)}
    lines = [_EFFECT[shape.state].format(h=stream)] if shape.state in _EFFECT else []
    if "position_bias" in taken:
        lines += ["if isinstance(position_bias, (tuple, list)):", "    position_bias = position_bias[0]"]
        lines += ["if isinstance(position_bias, dict):", '    position_bias = position_bias["bias"]']
    if shape.extra == "shared dict":
        lines += [f'{stream} = {stream} + memo.get("last", 0)']
    given = [
        "attention_mask" if "attention_mask" in taken else "None",
        "None",
        "position_bias" if "position_bias" in taken else "None",
        "position_embeddings" if "position_embeddings" in taken else "None",
        shape.cache if shape.cache != "none" else "None",
    ]
    while given and given[-1] == "None":
        given.pop()
    lines += [f"mixed, weights = self.attention({', '.join([f'self.norm1({stream})', *given])})"]
    lines += ["mixed = self.dropout(mixed)"] * (shape.state == "dropout")
    lines += [f"{stream} = {stream} + mixed"]
    if shape.encoder != "none":
        if shape.encoder == "list":
            lines += ["encoder_hidden_states = encoder_hidden_states[0]"]
        lines += [
            "if encoder_hidden_states is not None:",
            f"    {stream} = {stream} + self.cross({stream}, None, encoder_hidden_states)[0]",
        ]
    lines += [f"{stream} = {stream} + embedding_output"] * ("embedding_output" in taken)
    lines += [f"{stream} = {stream} + self.mlp({stream}).tanh()"]
    lines += [f'memo["last"] = {stream}'] * (shape.extra == "shared dict")
    return [" " * 8 + line for line in [*lines, f"return {_returned(shape, stream)}"]]


def _returned(shape: Shape, stream: str) -> str:
    if shape.is_carried:
        return f"{stream}, position_bias"
    if shape.extra == "flag" and shape.returns == "tuple with weights":
        return f"({stream}, weights) if output_attentions else ({stream},)"
    return _RETURNED[shape.returns].format(h=stream)
