"""Small complete models with places for a twist, and with one thing to repair each."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.contract.packages import CONFIGURATION

Slots = Mapping[str, str]
"""What stands at the places of a frame, by name; a name that ends in ``.py`` is that of another file."""

_SLOT = re.compile(r"<<(\w+)>>")
_LAYER_IMPORT = "from transformers.modeling_layers import GradientCheckpointingLayer"
_MODELING = """\
<<imports>>
import torch
from torch import nn
from transformers import DynamicCache, PreTrainedModel
<<layer_import>>

from .configuration_toy import ToyConfig
<<local_imports>>


<<top>>
class ToyAttention(nn.Module):
    def __init__(self, config, layer_idx=0):
        super().__init__()
        self.layer_idx = layer_idx
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)
        <<attention_init>>

    def forward(self, states, mask=None):
        <<attention_start>>
        scores = self.query(states) @ self.key(states).transpose(-1, -2)
        if mask is not None:
            scores = scores + mask
        return self.output(scores.softmax(-1) @ self.value(states))


<<above_layer>>
class ToyLayer(<<base>>):
    <<layer_body>>
    def __init__(self, config, layer_idx=0):
        super().__init__()
        self.layer_idx = layer_idx
        self.norm1 = nn.LayerNorm(config.hidden_size)
        self.attention = ToyAttention(config, layer_idx)
        self.mlp = nn.Linear(config.hidden_size, config.hidden_size)
        <<layer_init>>

    <<above_forward>>
    def forward(self, states, mask=None<<parameters>>):
        <<layer_start>>
        states = states + self.attention(self.norm1(states), mask)
        states = states + self.mlp(states).tanh()
        <<layer_end>>
        return <<returned>>

    <<layer_methods>>


<<below_layer>>
class ToyEncoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList([ToyLayer(config, index) for index in range(config.num_layers)])
        self.gradient_checkpointing = False
        <<encoder_init>>

    def forward(self, states, mask=None<<given>>):
        <<before_loop>>
        for <<target>> in <<stack>>:
            <<loop>>
        <<after_loop>>
        return states

    <<encoder_methods>>


class ToyModel(PreTrainedModel):
    config_class = ToyConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.encoder = ToyEncoder(config)
        self.head = nn.Linear(config.hidden_size, config.vocab_size)
        <<model_init>>
        self.post_init()

    def get_input_embeddings(self):
        return self.embeddings

    <<model_methods>>

    <<override>>

    def forward(self, input_ids, attention_mask=None<<given>>, **kwargs):
        <<model_start>>
        mask = attention_mask * 1.0
        states = self.embeddings(input_ids)
        <<run>>
        logits = self.head(states)
        return logits.tanh().pow(2).mean(), logits, <<cache>>


<<end>>
"""
_LAYER = {"base": "GradientCheckpointingLayer", "layer_import": _LAYER_IMPORT}
_PLAIN = {"base": "nn.Module"}
_CACHE = {
    "parameters": ", past_key_values=None",
    "given": ", past_key_values=None, use_cache=False",
    "handed": ", past_key_values, use_cache",
    "model_start": "if use_cache and past_key_values is None:\n    past_key_values = DynamicCache()",
    "cache": "past_key_values",
}
_CHECKPOINTS = "self.gradient_checkpointing and self.training"
_BRANCH = """\
if self.gradient_checkpointing and self.training:
    states = self._gradient_checkpointing_func(layer.__call__, states, mask)
else:
    states = layer(states, mask)"""
_OVERRIDE = """\
def _set_gradient_checkpointing(self, module, value=False):
    if isinstance(module, ToyEncoder):
        module.gradient_checkpointing = value"""
_DEFAULTS = {
    "target": "layer",
    "stack": "self.layers",
    "loop": "states = layer(<<arguments>>)",
    "arguments": "states, mask",
    "past": "past_key_values",
    "returned": "states",
    "run": "states = self.encoder(states, mask<<handed>>)",
    "cache": "None",
}


@dataclass(frozen=True)
class Frame:
    """A model with one thing to repair."""

    rules: tuple[str, ...]
    """Those that may repair it."""
    before: Slots
    after: Slots
    """What stands there when it is repaired, whether or not that does harm."""


FRAMES: Mapping[str, Frame] = {
    "plain block": Frame(("GC001",), _PLAIN, _LAYER),
    "legacy branch": Frame(("GC302",), {**_PLAIN, "loop": _BRANCH}, _LAYER),
    "plain block with cache": Frame(
        ("GC001",),
        {**_CACHE, **_PLAIN, "arguments": "states, mask, <<past>>"},
        {**_CACHE, **_LAYER, "arguments": "states, mask, past_key_values=<<past>>"},
    ),
    "cache by position": Frame(
        ("GC002",),
        {**_CACHE, **_LAYER, "arguments": "states, mask, <<past>>"},
        {**_CACHE, **_LAYER, "arguments": "states, mask, past_key_values=<<past>>"},
    ),
    "cache that no release disables": Frame(
        ("GC305",),
        {
            **_CACHE,
            **_LAYER,
            "parameters": ", past_key_value=None",
            "arguments": "states, mask, past_key_value=<<past>>",
        },
        {
            **_CACHE,
            **_LAYER,
            "parameters": ", past_key_value=None",
            "arguments": f"states, mask, past_key_value=None if {_CHECKPOINTS} else <<past>>",
        },
    ),
    "stream by keyword": Frame(
        ("GC003",),
        {**_LAYER, "arguments": "states=states, mask=mask"},
        {**_LAYER, "arguments": "states, mask=mask"},
    ),
    "old override": Frame(("GC301",), {**_LAYER, "override": _OVERRIDE}, _LAYER),
}


def files(frame: str, slots: Slots, *, is_repaired: bool = False) -> dict[str, str]:
    """Return the files of a model, or of what a fix would make of it that asks nothing."""
    of_frame = FRAMES[frame].after if is_repaired else FRAMES[frame].before
    filled = {**_DEFAULTS, **of_frame, **slots}
    # A twist of what the frame repairs says itself what becomes of it.
    if is_repaired:
        filled |= {
            name.removesuffix(" repaired"): text for name, text in slots.items() if " repaired" in name
        }
    others = {name: text for name, text in filled.items() if name.endswith(".py")}
    return {
        "__init__.py": "",
        "configuration_toy.py": CONFIGURATION,
        "modeling_toy.py": _tidy(_written(_MODELING, filled)),
        **others,
    }


def _written(template: str, slots: Slots) -> str:
    lines: list[str] = []
    for line in template.splitlines():
        alone = _SLOT.fullmatch(line.strip())
        text = slots.get(alone[1], "") if alone else line
        while (inline := _SLOT.search(text)) is not None:
            text = text[: inline.start()] + slots.get(inline[1], "") + text[inline.end() :]
        if alone is None:
            lines.append(text)
        elif text:
            lines += textwrap.indent(text, line[: len(line) - len(line.lstrip())]).split("\n")
    return "\n".join(lines)


def _tidy(text: str) -> str:
    """Return code without the empty lines that empty slots leave."""
    text = re.sub(r"\n{4,}", "\n\n\n", text)
    text = re.sub(r"\n{3,}(?=[ ])", "\n\n", text)
    return text.strip("\n") + "\n"


def placed(place: str, lines: Iterable[str], taken: str = "states, mask") -> dict[str, str]:
    """Return the slots with statements over ``states`` and ``mask`` that a block runs, at a place."""
    body = "\n".join(lines)
    inner = textwrap.indent(f"{body}\nreturn states", "    ")
    return {
        "block": {"layer_start": body},
        "part": {"attention_start": body},
        "method": {
            "layer_start": f"states = self.prepare({taken})",
            "layer_methods": f"def prepare(self, {taken}):\n{inner}",
        },
        "function": {
            "layer_start": f"states = prepare({taken})",
            "top": f"def prepare({taken}):\n{inner}\n\n",
        },
    }[place]
