"""What other files of a project do with a model, and what it freezes or asks for where it is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Fix
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.decisions.toy import BODY, LOOP, STACK, block, model, toy

_MASKED = LOOP.replace("layer(hidden_states)", "layer(hidden_states, mask)")
_IMPORTS = """
import torch
from torch import nn
import modeling_toy
from modeling_toy import *

SEEN = []


class Counting(nn.Module):
    def __init__(self, inner=None):
        super().__init__()
        self.count = 0

    def forward(self, states):
        self.count += 1
        return states * self.count


"""


def _text(body: str = BODY, loop: str = _MASKED, init: str = "", made: str = "", more: str = "") -> str:
    layer = block(body, init=init, more=more)
    return toy(layer, model(loop, init=f"{STACK}\n{made}", takes="hidden_states, mask=None, input_ids=None"))


def _safe(folder: Path, text: str, other: str = "") -> bool:
    """Tell whether the fix of the layer is safe, with both files given."""
    files = {"modeling_toy.py": text, "other.py": _IMPORTS + other}
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    rules = [rule for rule in all_rules() if "GC001" in rule.codes]
    found = check(Project(Settings(), [folder / name for name in files]), rules).findings
    (remedy,) = (each.remedy for each in found if each.symbol == "ToyLayer")
    assert isinstance(remedy, Fix), remedy
    return remedy.applicability is Applicability.SAFE


_HEIR = """
class OtherLayer(ToyLayer):
    {}

class OtherModel(ToyModel):
    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([OtherLayer(config) for _ in range(2)])
"""
_MAKES = "kind = Counting"
_HEAD = """
class Head(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.model = {}(config)

    def forward(self, states, mask):
        states = self.model(states, mask)
        {}
        return states
"""
_ELSEWHERE = {
    "a head changes what blocks were given": (_HEAD.format("ToyModel", "mask.zero_()"), True),
    "by another name": (_HEAD.format("modeling_toy.ToyModel", "mask.zero_()"), True),
    "a head computes with it": (_HEAD.format("ToyModel", "mask = mask + 1"), False),
    "a function changes it": (
        "def step(config, states, mask):\n    ToyModel(config)(states, mask).sum()\n    mask.zero_()\n",
        True,
    ),
    "what is said to be the model": (
        "def step(model: ToyModel, states, mask):\n    model(states, mask).sum()\n    mask.zero_()\n",
        True,
    ),
    "an heir of a block has other parts": (_HEIR.format(_MAKES), True),
    "an heir of a block has the same parts": (_HEIR.format("pass"), False),
    "a part is replaced": (
        "def patch(model):\n    for layer in model.layers:\n        layer.attention = Counting()\n",
        True,
    ),
    "something else is replaced": (
        "def patch(model):\n    for layer in model.layers:\n        layer.label = Counting()\n",
        False,
    ),
    "a function is added to those to choose from": ("modeling_toy.TABLE.update(b=Counting())", True),
    "a function has the name of such a method": ("TABLE = torch.sort(torch.ones(3))", False),
    "a table of its own gets one": ("TABLE = {}\nTABLE.update(b=Counting())", False),
    "an attention is registered": (
        "from transformers import AttentionInterface\nAttentionInterface.register('b', SEEN.append)",
        True,
    ),
    "a setting is registered": (
        "from transformers import AutoConfig\nAutoConfig.register('b', Counting)",
        False,
    ),
}


@pytest.mark.parametrize(("other", "is_harmful"), _ELSEWHERE.values(), ids=list(_ELSEWHERE))
def test_what_another_file_does_with_a_model(other: str, is_harmful: bool, tmp_path: Path) -> None:
    tables = "from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS\nTABLE = {'a': torch.relu}\n"
    body = """
states = TABLE[self.name](self.attention(hidden_states))
attend = ALL_ATTENTION_FUNCTIONS[self.name]
states, _ = attend(self, states, states, states, mask)
return hidden_states + states * mask
"""
    text = _text(
        body, init="self.name = config.name\nself.attention = self.kind(config)", more="kind = ToyAttention"
    )
    text = text.replace("class ToyLayer", f"{tables}\n\nclass ToyLayer", 1)
    assert _safe(tmp_path, text, other) is not is_harmful


_AFTER = {
    "self.half()": True,
    "self.zero_grad()": False,
    "self.load_state_dict(self.saved)": True,
    "self.layers.load_state_dict({})": True,
    "self.layers.train(False)": True,
    "self.layers[0].norm.reset_parameters()": True,
    "for each in self.layers:\n    each.norm.load_state_dict({})": True,
    "self.layers[0].norm.extra_repr": False,
    "for name, each in self.state_dict().items():\n    each.add_(1)": True,
    "for name, each in self.state_dict().items():\n    each = each + 1": False,
}


@pytest.mark.parametrize(("code", "is_harmful"), _AFTER.items())
def test_methods_of_modules_behind_a_loop(code: str, is_harmful: bool, tmp_path: Path) -> None:
    init = "self.norm = nn.LayerNorm(3)\nself.attention = ToyAttention(config)"
    body = "return hidden_states + self.attention(self.norm(hidden_states)) * mask"
    assert _safe(tmp_path, _text(body, f"{_MASKED}\n{code}", init)) is not is_harmful


_FREEZING = (
    "self.embed.requires_grad_(False)",
    "self.embed.weight.requires_grad_(False)",
    "self.embed.weight.requires_grad = False",
    "for each in self.embed.parameters():\n    each.requires_grad = False",
    "for each in self.embed.parameters():\n    each.requires_grad_(False)",
    "self.embed = nn.Embedding.from_pretrained(torch.ones(3, 3))",
    "self.requires_grad_(False)",
    "self.embed.requires_grad_(config.is_trained)",
    "self.embed.weight.detach_()",
    "self.embed.weight = nn.Parameter(torch.ones(3, 3), requires_grad=False)",
    "setattr(self.embed.weight, 'requires_grad', False)",
    "self.embed.weight.requires_grad &= config.is_trained",
    "for name, each in self.named_parameters():\n    if 'embed' in name:\n        each.requires_grad = False",
    "for each in self.modules():\n    if each is not self:\n        each.weight.requires_grad = False",
    "[each.requires_grad_(False) for each in self.embed.parameters()]",
    "self.embed.apply(lambda each: each.requires_grad_(False))",
    "freeze(self.embed)",
    "self.get_input_embeddings().requires_grad_(False)",
    "change = self.embed.requires_grad_\nchange(False)",
    "self.other = nn.Linear(3, 3)\nfor each in self.other.parameters():\n    each = self.embed.weight\n"
    "    each.requires_grad = False",
)
_TRAINING = (
    "self.embed.requires_grad_(True)",
    "self.other = nn.Embedding(3, 3)\nself.other.requires_grad_(False)",
    "for each in self.embed.parameters():\n    each.requires_grad = True",
    "self.embed = nn.Embedding.from_pretrained(torch.ones(3, 3), freeze=False)",
    "self.other = nn.Linear(3, 3)\nfor each in self.other.parameters():\n    if config.is_frozen:\n"
    "        each.requires_grad = False",
    "self.other = nn.Linear(3, 3)\nself.other.weight = nn.Parameter(torch.ones(3, 3), requires_grad=False)",
    "self.other = nn.Parameter(torch.ones(3, 3), requires_grad=False)",
    "self.embed.requires_grad_()",
    "self.register_buffer('weight', torch.ones(3))",
)
_FUNCTION = """
def freeze(module):
    for each in module.parameters():
        each.requires_grad = False


"""
_EMBEDDED = f"hidden_states = self.embed(input_ids)\n{_MASKED.strip()}"


@pytest.mark.parametrize("code", [*_FREEZING, *_TRAINING])
def test_blocks_get_no_gradients_from_what_is_frozen_where_it_is_made(code: str, tmp_path: Path) -> None:
    text = _text(loop=_EMBEDDED, made=f"self.embed = nn.Embedding(3, 3)\n{code}")
    text = text.replace("class ToyLayer", f"{_FUNCTION}class ToyLayer", 1)
    assert _safe(tmp_path, text) is (code in _TRAINING)


_CUTTING = (
    "hidden_states = hidden_states.sort()[1]",
    "_, hidden_states = hidden_states.sort()",
    "hidden_states = torch.topk(hidden_states, 2).indices / 2",
    "hidden_states = torch.max(hidden_states, dim=-1).indices.float()",
    "hidden_states = nn.functional.max_pool1d(hidden_states, 2, return_indices=True)[1].float()",
    "hidden_states = hidden_states.type(torch.long).float()",
    "hidden_states = hidden_states.to(dtype=torch.int64).float()",
    "hidden_states = hidden_states.type('torch.LongTensor').float()",
    "hidden_states = hidden_states.type_as(input_ids).float()",
    "hidden_states = hidden_states.sum(-1, dtype=torch.long).float()",
    "kind = torch.uint8\nhidden_states = hidden_states.to(kind).half()",
    "hidden_states = torch.bucketize(hidden_states, torch.ones(3)).float()",
    "hidden_states = nn.Parameter(hidden_states, requires_grad=False)",
    "hidden_states = torch.autograd.Variable(hidden_states)",
    "hidden_states = torch.from_numpy(hidden_states.numpy())",
    "import numpy as np\nhidden_states = torch.as_tensor(np.asarray(hidden_states.detach()))",
    "hidden_states = torch.no_grad()(self.part)(hidden_states)",
    "run = torch.inference_mode()(lambda x: self.part(x))\nhidden_states = run(hidden_states)",
)
_KEEPING = (
    "hidden_states = torch.autograd.Variable(hidden_states, requires_grad=True)",
    "hidden_states = hidden_states.sort()[0]",
    "hidden_states, _ = torch.topk(hidden_states, 2)",
    "hidden_states = hidden_states.max(-1).values",
    "hidden_states = torch.max(hidden_states, hidden_states * 2)",
    "hidden_states = hidden_states.gather(-1, hidden_states.topk(2)[1])",
    "hidden_states = hidden_states.to(torch.float16)",
    "hidden_states = hidden_states.to(input_ids.device)",
    "hidden_states = hidden_states.type_as(self.embed.weight)",
    "hidden_states = self.part(hidden_states)",
)


@pytest.mark.parametrize("code", [*_CUTTING, *_KEEPING])
def test_blocks_get_no_gradients_from_what_is_cut_off(code: str, tmp_path: Path) -> None:
    loop = f"hidden_states = self.embed(input_ids)\n{code}\n{_MASKED.strip()}"
    made = "self.embed = nn.Embedding(3, 3)\nself.part = ToyAttention(config)"
    assert _safe(tmp_path, _text(loop=loop, made=made)) is (code in _KEEPING)


_TOWER = """
class Lookup(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(3, 3)

    def forward(self, ids):
        return self.embed(ids)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Lookup() for _ in range(2)])

    def forward(self, ids):
        return self.parts[0](ids)


"""


@pytest.mark.parametrize("is_frozen", [True, False])
def test_what_is_frozen_holds_other_parts_in_lists(is_frozen: bool, tmp_path: Path) -> None:
    made = f"self.embed = Tower()\nself.embed.requires_grad_({not is_frozen})"
    text = _text(loop=_EMBEDDED, made=made).replace("class ToyLayer", f"{_TOWER}class ToyLayer", 1)
    assert _safe(tmp_path, text) is not is_frozen


@pytest.mark.parametrize(
    ("code", "is_asking"),
    [
        ("ASKED = ToyLayer.forward.__code__.co_argcount", True),
        ("ASKED = len(ToyLayer.__mro__)", True),
        ("ASKED = hasattr(ToyLayer.forward, '__wrapped__')", True),
        ("import inspect\nASKED = inspect.getsource(ToyLayer)", True),
        ("import inspect\nASKED = inspect.signature(ToyLayer.forward)", False),
        ("ASKED = ToyLayer.__name__", False),
    ],
)
def test_a_module_asks_for_what_becomes_different(code: str, is_asking: bool, tmp_path: Path) -> None:
    assert _safe(tmp_path, f"{_text()}\n{code}\n") is not is_asking
