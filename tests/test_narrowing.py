"""Of several classes in a stack, a call runs only those that the tests around it let through."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Finding
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings

_MODEL = """\
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer


class LocalLayer(GradientCheckpointingLayer):
    def __init__(self, config):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(config.width, 2)

    def forward(self, hidden_states, attention_mask=None):
        return hidden_states + self.self_attn(hidden_states, hidden_states, hidden_states)[0]


class CachedLayer(GradientCheckpointingLayer):
    def __init__(self, config):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(config.width, 2)

    def forward(self, hidden_states, past_key_values=None, attention_mask=None):
        if past_key_values is not None:
            past_key_values.update(hidden_states, hidden_states, 0)
        return hidden_states + self.self_attn(hidden_states, hidden_states, hidden_states)[0]


{more}class MixedModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([CachedLayer(config) if i % 2 else LocalLayer(config) for i in range(4)])
{made}
    def forward(self, hidden_states, attention_mask=None, past_key_values=None):
        for layer in self.layers:
{body}
        return hidden_states
"""
_SHORT = "hidden_states = layer(hidden_states, attention_mask)"
_LONG = "hidden_states = layer(hidden_states, past_key_values=past_key_values)"
_BOTH = "class BothLayer(LocalLayer, CachedLayer):\n    pass\n\n\n"
_CHOICES = {
    "a branch": (
        f"if isinstance(layer, LocalLayer):\n    {_SHORT}\nelse:\n    {_LONG}",
        f"if isinstance(layer, CachedLayer):\n    {_SHORT}\nelse:\n    {_LONG}",
    ),
    "the other side": (
        f"if isinstance(layer, CachedLayer):\n    {_LONG}\nelse:\n    {_SHORT}",
        f"if isinstance(layer, LocalLayer):\n    {_LONG}\nelse:\n    {_SHORT}",
    ),
    "not": (
        f"if not isinstance(layer, CachedLayer):\n    {_SHORT}\nelse:\n    {_LONG}",
        f"if not isinstance(layer, LocalLayer):\n    {_SHORT}\nelse:\n    {_LONG}",
    ),
    "and": (
        f"if self.training and isinstance(layer, LocalLayer):\n    {_SHORT}\nelse:\n    {_LONG}",
        f"if self.training or isinstance(layer, LocalLayer):\n    {_SHORT}\nelse:\n    {_LONG}",
    ),
    "or": (
        f"if isinstance(layer, CachedLayer) or self.training:\n    {_LONG}\nelse:\n    {_SHORT}",
        f"if isinstance(layer, CachedLayer) and self.training:\n    {_LONG}\nelse:\n    {_SHORT}",
    ),
    "the end of a turn": (
        f"if isinstance(layer, CachedLayer):\n    {_LONG}\n    continue\n{_SHORT}",
        f"if isinstance(layer, CachedLayer):\n    {_LONG}\n{_SHORT}",
    ),
    "one of several": (
        f"if isinstance(layer, (LocalLayer, MixedModel)):\n    {_SHORT}",
        f"if isinstance(layer, (LocalLayer, CachedLayer)):\n    {_SHORT}",
    ),
    "the class itself": (
        f"if type(layer) is LocalLayer:\n    {_SHORT}\nelse:\n    {_LONG}",
        f"if type(layer) is not LocalLayer:\n    {_SHORT}\nelse:\n    {_LONG}",
    ),
    "an expression": (
        "hidden_states = layer(hidden_states, attention_mask) if isinstance(layer, LocalLayer)"
        " else layer(hidden_states, past_key_values=past_key_values)",
        "hidden_states = layer(hidden_states, attention_mask) if isinstance(layer, CachedLayer)"
        " else layer(hidden_states, past_key_values=past_key_values)",
    ),
    "another layer by then": (
        f"if isinstance(layer, LocalLayer):\n    found = layer\n    {_SHORT}",
        f"if isinstance(layer, LocalLayer):\n    layer = self.layers[1]\n    {_SHORT}",
    ),
    "the next of several ends": (
        f"if self.training:\n    continue\nelif isinstance(layer, CachedLayer):\n    {_LONG}\n    continue\n"
        f"{_SHORT}",
        f"if self.training:\n    continue\nelif isinstance(layer, CachedLayer):\n    {_LONG}\n{_SHORT}",
    ),
    "the end of the other side": (
        f"if isinstance(layer, LocalLayer):\n    pass\nelse:\n    {_LONG}\n    continue\n{_SHORT}",
        f"if isinstance(layer, LocalLayer):\n    pass\nelse:\n    {_LONG}\n{_SHORT}",
    ),
    "its class": (
        f"if layer.__class__ is LocalLayer:\n    {_SHORT}",
        f"if layer.config is LocalLayer:\n    {_SHORT}",
    ),
    "another layer in the next turn": (
        f"if isinstance(layer, LocalLayer):\n    for other in self.layers:\n        {_SHORT}",
        f"if isinstance(layer, LocalLayer):\n    for _ in range(2):\n        {_SHORT}\n"
        "        layer = self.layers[1]",
    ),
    "another variable of the same name": (
        "if isinstance(layer, LocalLayer):\n    x = [layer(hidden_states, attention_mask) for _ in (1,)]",
        "if isinstance(layer, LocalLayer):\n"
        "    x = [layer(hidden_states, attention_mask) for layer in self.layers]",
    ),
    "another object": (
        f"other = layer\nif isinstance(layer, LocalLayer):\n    {_SHORT}",
        f"other = self.layers[0]\nif isinstance(other, LocalLayer):\n    {_SHORT}",
    ),
}


def _found(
    folder: Path, body: str, more: str = "", base: str = "GradientCheckpointingLayer", made: str = ""
) -> list[Finding]:
    lines = "\n".join(f"            {each}" for each in body.splitlines())
    text = _MODEL.format(more=more, made=made, body=lines).replace(
        "Layer(GradientCheckpointingLayer)", f"Layer({base})"
    )
    path = folder / "modeling_mixed.py"
    path.write_text(text, encoding="utf-8")
    return list(check(Project(Settings(), [path]), list(all_rules())).findings)


def _codes(folder: Path, body: str, more: str = "") -> set[str]:
    return {each.code for each in _found(folder, body, more)}


@pytest.mark.parametrize(("apart", "mixed"), _CHOICES.values(), ids=list(_CHOICES))
def test_a_call_runs_what_the_tests_around_it_let_through(apart: str, mixed: str, tmp_path: Path) -> None:
    assert _codes(tmp_path, apart) == set()
    assert _codes(tmp_path, mixed) == {"GC002"}


def test_a_class_that_inherits_two_is_let_through_by_either(tmp_path: Path) -> None:
    body = f"if isinstance(layer, LocalLayer):\n    {_SHORT}"
    assert _codes(tmp_path, body) == set()
    assert _codes(tmp_path, body, _BOTH) == {"GC002"}


@pytest.mark.parametrize("kinds", ["self.kinds", "(LocalLayer, nn.Linear)"])
def test_a_class_that_is_not_known_lets_all_through(kinds: str, tmp_path: Path) -> None:
    assert _codes(tmp_path, f"if isinstance(layer, {kinds}):\n    {_SHORT}") == {"GC002"}


def test_no_repair_is_safe_for_what_tests_seem_to_keep_away(tmp_path: Path) -> None:
    # What `torch.compile` gives is no `CachedLayer` any more, but runs one.
    made = "        self.layers = nn.ModuleList([torch.compile(each) for each in self.layers])\n"
    short = "hidden_states = layer(hidden_states, past_key_values)"
    body = f"if isinstance(layer, CachedLayer):\n    {_LONG}\nelse:\n    {short}"
    found = _found(tmp_path, body, base="nn.Module", made=made)
    assert [each.code for each in found] == ["GC001", "GC001"]
    assert not any(each.fix and each.fix.applicability is Applicability.SAFE for each in found)
