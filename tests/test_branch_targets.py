"""What a legacy branch checkpoints, when, and who else decides about it: harmful models and harmless ones."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Applicability, Fix
from gclint.releases import releases
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings

_MODEL = """
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
{imports}

class ToyLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.hidden_size, 1)

    def forward(self, hidden_states, mask=None):
        return hidden_states + self.attention(hidden_states, hidden_states, hidden_states, attn_mask=mask)[0]


class ToyModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config, other=None):
        super().__init__(config)
        self.layers = nn.ModuleList({layers})
        self.gate = nn.Linear(config.hidden_size, config.hidden_size)
        self.gradient_checkpointing = False
{init}{more}
    def forward(self, hidden_states, mask=None):
{before}        for layer in self.layers:
{loop}        return hidden_states
{after}
"""
_LAYERS = "[ToyLayer(config) for _ in range(config.num_hidden_layers)]"
_CONDITION = "self.gradient_checkpointing and self.training"
_CALL = "self._gradient_checkpointing_func(layer.__call__, hidden_states, mask)"


def _indented(code: str, depth: int) -> str:
    return textwrap.indent(f"{code}\n", " " * 4 * depth) if code else ""


def _branch(call: str = _CALL, plain: str = "layer(hidden_states, mask)", condition: str = _CONDITION) -> str:
    return f"if {condition}:\n    hidden_states = {call}\nelse:\n    hidden_states = {plain}"


def _is_safe(
    folder: Path,
    loop: str = "",
    *,
    layers: str = _LAYERS,
    parts: Mapping[str, str] | None = None,
    others: Mapping[str, str] | None = None,
    target: str = ">=5.0",
) -> bool:
    """Tell whether the only fix of a model is safe; there has to be a finding, whatever its fix is."""
    places = {"imports": 0, "init": 2, "more": 1, "before": 2, "after": 0}
    given = {name: _indented((parts or {}).get(name, ""), depth) for name, depth in places.items()}
    text = _MODEL.format(layers=layers, loop=_indented(loop or _branch(), 3), **given)
    texts = {"modeling_toy.py": text, **(others or {})}
    for name, own in texts.items():
        (folder / name).write_text(own, encoding="utf-8")
    settings = Settings(target_version=releases(target))
    project = Project(settings, [folder / name for name in texts])
    findings = check(project, [rule for rule in all_rules() if rule.code == "GC302"]).findings
    assert findings
    fixes = [finding.fix for finding in findings]
    return all(isinstance(each, Fix) and each.applicability is Applicability.SAFE for each in fixes)


def test_an_ordinary_branch_is_safe(tmp_path: Path) -> None:
    assert _is_safe(tmp_path)


def _wrapper(inner: str, before: str = "", after: str = "return custom_forward") -> str:
    head = "def create_custom_forward(module):\n"
    return head + _indented("\n".join(filter(None, (before, inner, after))), 1)


_INNER = "def custom_forward(*inputs):\n    return module(*inputs)"
_WRAPPERS = {
    "plain": _wrapper(_INNER),
    "with its text": _wrapper(_INNER, '"""Hand on."""'),
    "a lambda": _wrapper("", after="return lambda *inputs: module(*inputs)"),
}
_OTHER_WRAPPERS = {
    "the inner function is decorated": _wrapper(f"@torch.autocast('cpu', torch.bfloat16)\n{_INNER}"),
    "the outer one is": f"@partial\n{_wrapper(_INNER)}",
    "what is returned is wrapped": _wrapper(_INNER, after="return torch.no_grad()(custom_forward)"),
    "something else is returned before": _wrapper(_INNER, "if module.training:\n    return module.attention"),
    "something is set": _wrapper(_INNER, "module.attention.dropout = 0.0"),
    "another module is run": _wrapper(_INNER, "module = module.twin"),
    "the inner function has a parameter of that name": _wrapper(
        "def custom_forward(module, *inputs):\n    return module(*inputs)"
    ),
    "another one may be called": f"if torch.cuda.is_available():\n{_indented(_wrapper(_INNER), 1)}"
    f"else:\n{_indented(_wrapper(_INNER, 'module.eval()'), 1)}",
    "it is replaced": f"{_wrapper(_INNER)}\ncreate_custom_forward = torch.compile",
    "it captures another mask": _wrapper(
        "def custom_forward(hidden_states, *more):\n    return module(hidden_states, mask)"
    ),
    "it computes something": _wrapper(
        "def custom_forward(hidden_states, mask):\n    return module(hidden_states, torch.sigmoid(mask))"
    ),
}
_MADE = "self._gradient_checkpointing_func(create_custom_forward(layer), hidden_states, mask)"


@pytest.mark.parametrize("wrapper", _WRAPPERS)
@pytest.mark.parametrize("place", ["imports", "before"])
def test_a_function_that_only_hands_on_is_looked_through(place: str, wrapper: str, tmp_path: Path) -> None:
    assert _is_safe(tmp_path, _branch(_MADE), parts={place: _WRAPPERS[wrapper]})


@pytest.mark.parametrize("wrapper", _OTHER_WRAPPERS)
def test_one_that_may_do_more_is_not(wrapper: str, tmp_path: Path) -> None:
    assert not _is_safe(tmp_path, _branch(_MADE), parts={"imports": _OTHER_WRAPPERS[wrapper]})


def test_what_the_method_itself_names_may_be_captured(tmp_path: Path) -> None:
    inner = "def custom_forward(hidden_states):\n    return module(hidden_states, mask)"
    call = "self._gradient_checkpointing_func(create_custom_forward(layer), hidden_states)"
    assert _is_safe(tmp_path, _branch(call), parts={"before": _wrapper(inner)})


_FUNCTIONS = {
    "the layer alone": ("return layer(hidden_states, mask)", True),
    "an item of its output": ("return tuple(layer(hidden_states, mask))[0]", True),
    "and another module": ("return self.gate(layer(hidden_states, mask))", False),
    "and a product": ("return layer(hidden_states @ hidden_states.mT, mask)", False),
    "and a function": ("return torch.tanh(layer(hidden_states, mask))", False),
}


@pytest.mark.parametrize("function", _FUNCTIONS)
def test_a_function_may_run_nothing_beside_the_layer(function: str, tmp_path: Path) -> None:
    body, is_safe = _FUNCTIONS[function]
    before = f"def run(layer, hidden_states):\n{_indented(body, 1)}"
    loop = _branch(
        "self._gradient_checkpointing_func(run, layer, hidden_states)", "run(layer, hidden_states)"
    )
    assert _is_safe(tmp_path, loop, parts={"before": before}) is is_safe


@pytest.mark.parametrize(
    ("more", "is_safe"),
    [
        ("", True),
        (" and torch.is_grad_enabled()", True),
        (" and hidden_states.requires_grad", False),
        (" and self.config.training", False),
        (" and layer.training", False),
        (" and self.is_grad_enabled()", False),
    ],
)
@pytest.mark.parametrize("negated", [False, True])
def test_only_the_mode_of_the_model_is_one(more: str, is_safe: bool, negated: bool, tmp_path: Path) -> None:
    loop = _branch(condition=_CONDITION + more)
    if negated:
        first, _, second = loop.partition("else:\n")
        _, _, first = first.partition("\n")
        loop = f"if not ({_CONDITION}{more}):\n{second}\nelse:\n{first}"
    assert _is_safe(tmp_path, loop) is is_safe


@pytest.mark.parametrize(
    ("freezing", "is_safe"),
    [
        ("for each in self.parameters():\n    each.requires_grad = False\nself._requires_grad = False", True),
        ("self._requires_grad = False", False),
        ("self._requires_grad = self.config.tuned", False),
    ],
)
def test_what_says_that_a_model_is_frozen_has_to_freeze_it(
    freezing: str, is_safe: bool, tmp_path: Path
) -> None:
    loop = _branch(condition=f"self._requires_grad and {_CONDITION}")
    parts = {"init": "self._requires_grad = True", "more": f"def freeze(self):\n{_indented(freezing, 1)}"}
    assert _is_safe(tmp_path, loop, parts=parts) is is_safe


_TORCHS = "checkpoint(layer, hidden_states, mask, use_reentrant=False)"
_CHECKPOINTS = {
    "torch's": ("", _TORCHS, True),
    "another name of it": ("_checkpoint = checkpoint", f"_{_TORCHS}", True),
    "with options of its own": (
        "_checkpoint = partial(checkpoint, use_reentrant=False, context_fn=torch.no_grad)",
        "_checkpoint(layer, hidden_states, mask)",
        False,
    ),
    "with its mode alone": (
        "_checkpoint = partial(checkpoint, use_reentrant=False)",
        "_checkpoint(layer, hidden_states, mask)",
        True,
    ),
    "with options of its own, and its mode": (
        "_checkpoint = partial(partial(checkpoint, context_fn=torch.no_grad), use_reentrant=False)",
        "_checkpoint(layer, hidden_states, mask)",
        False,
    ),
    "another name of one with options": (
        "_other = partial(checkpoint, context_fn=torch.no_grad)\n_checkpoint = _other",
        "_checkpoint(layer, hidden_states, mask)",
        False,
    ),
    "or another one": (
        "_checkpoint = partial if torch.cuda.is_available() else checkpoint",
        f"_{_TORCHS}",
        False,
    ),
    "set by a function": (
        "def choose(function):\n    global checkpoint\n    checkpoint = function",
        _TORCHS,
        False,
    ),
}


@pytest.mark.parametrize("function", _CHECKPOINTS)
def test_only_torchs_own_function_is_known(function: str, tmp_path: Path) -> None:
    imports, call, is_safe = _CHECKPOINTS[function]
    assert _is_safe(tmp_path, _branch(call), parts={"imports": imports}) is is_safe


@pytest.mark.parametrize("target", ["4.57", "5.0"])
@pytest.mark.parametrize(
    ("run", "is_safe"),
    [
        ("run = layer", True),
        ("run = partial(layer, mask=mask)", True),
        ("run = layer.forward", False),
        ("run = partial(layer.forward, mask=mask)", False),
    ],
)
def test_a_method_has_to_be_called_by_its_layer(run: str, is_safe: bool, target: str, tmp_path: Path) -> None:
    call = "self._gradient_checkpointing_func(run, hidden_states)"
    assert _is_safe(tmp_path, f"{run}\n{_branch(call, 'run(hidden_states)')}", target=target) is is_safe


_STACKS = {
    "two kinds of layers": ("[ToyLayer(config), Heir(config)]", True),
    "a module of torch": ("[ToyLayer(config), nn.TransformerEncoderLayer(8, 1)]", False),
    "a sequence": ("[ToyLayer(config), nn.Sequential(nn.Linear(8, 8))]", False),
    "a parameter": ("[ToyLayer(config), other]", False),
    "what the settings name": ("[ToyLayer(config), config.kind(config)]", False),
    "what a function makes": ("[ToyLayer(config), make(config)]", False),
}


@pytest.mark.parametrize("stack", _STACKS)
def test_all_that_a_branch_runs_has_to_become_a_layer(stack: str, tmp_path: Path) -> None:
    layers, is_safe = _STACKS[stack]
    after = (
        "class Heir(ToyLayer):\n    pass\n\n\ndef make(config):\n    return nn.Sequential(nn.Linear(8, 8))\n"
    )
    assert _is_safe(tmp_path, layers=layers, parts={"after": after}) is is_safe


_SETTINGS = {
    "the function of the model": ("model._gradient_checkpointing_func = print", False),
    "by its name": ("setattr(model, '_gradient_checkpointing_func', print)", False),
    "of some modules": (
        "for each in model.modules():\n    if isinstance(each, ToyModel):\n"
        "        each._gradient_checkpointing_func = print\n        each.gradient_checkpointing = True",
        False,
    ),
    "of all modules": (
        "for each in model.modules():\n    if hasattr(each, 'gradient_checkpointing'):\n"
        "        each._gradient_checkpointing_func = print\n        each.gradient_checkpointing = True",
        True,
    ),
    "the flag, by a method": ("model.__setattr__('gradient_checkpointing', True)", False),
    "another attribute": ("model.__setattr__('other', True)", True),
    "the mode of a layer": ("layer = model.layers[0]\nlayer.eval()", False),
    "the mode of the model": ("model = model.base['it'](1)\nmodel.eval()", True),
}


@pytest.mark.parametrize("setting", _SETTINGS)
@pytest.mark.parametrize("is_beside", [False, True])
def test_who_sets_what_only_the_branch_asks_for(setting: str, is_beside: bool, tmp_path: Path) -> None:
    body, is_safe = _SETTINGS[setting]
    after = f"def change(model):\n{_indented(body, 1)}"
    others = {"change.py": f"from modeling_toy import ToyModel\n\n\n{after}"} if is_beside else None
    assert _is_safe(tmp_path, parts={} if is_beside else {"after": after}, others=others) is is_safe


@pytest.mark.parametrize(
    ("name", "is_safe"), [("name", False), ("f'gradient_{name}'", False), ("f'layer_{name}'", True)]
)
def test_an_attribute_with_a_computed_name_may_be_the_flag(name: str, is_safe: bool, tmp_path: Path) -> None:
    init = f"for name in ('checkpointing', 'other'):\n    setattr(self, {name}, True)"
    assert _is_safe(tmp_path, parts={"init": init}) is is_safe


@pytest.mark.parametrize(("call", "is_safe"), [("checkpoint(layer, x)", False), ("layer(x)", True)])
def test_a_function_of_another_file_may_get_the_layers(call: str, is_safe: bool, tmp_path: Path) -> None:
    lines = "from torch.utils.checkpoint import checkpoint", "from modeling_toy import ToyModel", ""
    run = f"def run(layers, x):\n    for layer in layers:\n        x = {call}\n    return x\n"
    assert _is_safe(tmp_path, others={"run.py": "\n".join((*lines, run))}) is is_safe
