"""Layers of a legacy branch that may not be in the mode of what runs them, or not have its flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.finding import Applicability
from tests.decisions.toy import BODY, BRANCH, FLAG, LOOP, PROTECTED, STACK, block, model, toy
from tests.toy_models import applicability

_MADE = f"{STACK}\n{FLAG}"
_OF_THE_MODEL = {
    "evaluates a part": (
        "def freeze(self):\n    self.layers[0].eval()",
        "def ready(self):\n    self.layers[0].train()",
    ),
    "evaluates by an argument": (
        "def freeze(self, on):\n    self.layers.train(on)",
        "def f(self):\n    self.layers.train(True)",
    ),
    "assigns the mode": (
        "def freeze(self):\n    self.layers[0].training = False",
        "def asked(self):\n    return self.layers[0].training",
    ),
    "assigns it by name": (
        "def freeze(self):\n    setattr(self.layers[0], 'training', False)",
        "def freeze(self):\n    setattr(self, 'kept', False)",
    ),
    "has its own mode": ("training = False", "trained = False"),
    "has a property for it": (
        "@property\ndef training(self):\n    return True",
        "@property\ndef trained(self):\n    return True",
    ),
    "finds other parts": ("def modules(self):\n    return iter(())", "def parts(self):\n    return iter(())"),
    "takes the flag away": (
        "def off(self):\n    for m in self.modules():\n        setattr(m, 'gradient_checkpointing', False)",
        "def asked(self):\n    return [each.gradient_checkpointing for each in self.layers]",
    ),
    "sets what recomputes": (
        "def on(self):\n    self._gradient_checkpointing_func = print",
        "def on(self):\n    return self.is_gradient_checkpointing",
    ),
    "makes one later": (
        "def grow(self):\n    self.layers.append(ToyLayer(self.config))",
        "def grow(self):\n    self.norms.append(nn.LayerNorm(8))",
    ),
    "copies one later": (
        "def grow(self):\n    self.layers.append(copy.deepcopy(self.layers[-1]))",
        "def settings(self):\n    return copy.deepcopy(generation_config)",
    ),
    "hides them": (
        "def hide(self):\n    object.__setattr__(self, 'layers', self.layers)",
        "def set(self, config):\n    config.__setattr__('depth', 2)",
    ),
}
"""Members of a model: one after which layers may not be recomputed, and one that only looks like it."""
_BESIDE = {
    "a part": ("model.encoder.layers[0].eval()", "model.eval()"),
    "items": (
        "for each in model.modules():\n    each.train(False)",
        "for step in steps:\n    model.train(False)",
    ),
    "in a comprehension": ("[each.eval() for each in model.layers]", "[model.eval() for each in steps]"),
}
"""Statements of a script beside a model."""
_OF_OTHERS = {
    "another layer": ("model.layers[0] = Other()", "other = model.layers[0]"),
    "one more layer": ("model.encoder.layers.append(Other())", "model.encoder.losses.append(Other())"),
    "another part, whatever it is": (
        "model.layers._modules['0'] = Other()\n    model.layers[0] = Other()",
        "for name, each in model.backbone.named_children():\n        model.backbone._modules[name] = Other()",
    ),
    "another class": ("model.layers[0].__class__ = Other", "kind = model.layers[0].__class__"),
}
"""Statements of a function that gets a model."""


def _of_model(folder: Path, more: str, script: str = "") -> Applicability:
    text = toy(block(BODY), model(BRANCH, init=_MADE, more=more))
    return applicability(folder, text, {"train.py": script})


@pytest.mark.parametrize("name", _OF_THE_MODEL)
def test_what_a_model_does_to_its_layers(name: str, tmp_path: Path) -> None:
    wrong, right = (_of_model(tmp_path, more) for more in _OF_THE_MODEL[name])
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize("name", _BESIDE)
def test_what_a_script_beside_it_does(name: str, tmp_path: Path) -> None:
    wrong, right = (_of_model(tmp_path, "", f"{each}\n") for each in _BESIDE[name])
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize("name", _OF_OTHERS)
@pytest.mark.parametrize("is_beside", [False, True])
def test_what_other_code_does_to_layers(name: str, tmp_path: Path, *, is_beside: bool) -> None:
    def said(statement: str) -> Applicability:
        code = f"class Other(nn.Module):\n    pass\n\n\ndef prepare(model):\n    {statement}\n"
        if is_beside:
            return _of_model(tmp_path, "", f"from torch import nn\nfrom modeling_toy import ToyModel\n{code}")
        return applicability(tmp_path, f"{toy(block(BODY), model(BRANCH, init=_MADE))}\n\n{code}")

    wrong, right = map(said, _OF_OTHERS[name])
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("[ToyLayer(config) for _ in range(2)]", Applicability.UNSAFE),
        ("(ToyLayer(config), ToyLayer(config))", Applicability.UNSAFE),
        ("[]\nself.layers.append(ToyLayer(config))", Applicability.UNSAFE),
        ("[ToyLayer(config)]\nself.layers = nn.ModuleList(self.layers)", Applicability.SAFE),
        ("nn.Sequential(ToyLayer(config), ToyLayer(config))", Applicability.SAFE),
    ],
)
def test_layers_where_nothing_finds_them(made: str, expected: Applicability, tmp_path: Path) -> None:
    text = toy(block(BODY), model(BRANCH, init=f"self.layers = {made}\n{FLAG}"))
    assert applicability(tmp_path, text) is expected


def test_layers_that_a_helper_makes_with_the_model(tmp_path: Path) -> None:
    text = toy(
        block(BODY),
        model(
            BRANCH,
            init=f"self.layers = nn.ModuleList(self.stack(config))\n{FLAG}",
            more="def stack(self, config):\n    return [ToyLayer(config) for _ in range(config.depth)]",
        ),
    )
    assert applicability(tmp_path, text) is Applicability.SAFE


_OVERRIDE = """
def _set_gradient_checkpointing(self, module, value=False):
    if isinstance(module, ToyEncoder):
        module.gradient_checkpointing = value
"""
_OF_FLAGS = {
    "finds other parts": ("def modules(self):\n    return iter(())", "def parts(self):\n    return iter(())"),
    "deletes it": ("def off(self):\n    del self.gradient_checkpointing", f"def off(self):\n    {FLAG}"),
    "deletes it by name": (
        "def off(self):\n    delattr(self, 'gradient_checkpointing')",
        "def off(self):\n    return hasattr(self, 'gradient_checkpointing')",
    ),
    "has a buffer for it": (
        "def off(self):\n    self.register_buffer('gradient_checkpointing', None)",
        "def off(self):\n    self.register_buffer('checkpointing', None)",
    ),
}
"""What a class does about its flag: members that are wrong, and others that are right."""
_SETTING_IT = {
    f"if config.deep:\n    {FLAG}": Applicability.UNSAFE,
    f"if config.small:\n    return\n{FLAG}": Applicability.UNSAFE,
    f"for _ in range(config.depth):\n    {FLAG}": Applicability.UNSAFE,
    f"if config.small:\n    raise ValueError\n{FLAG}": Applicability.SAFE,
}
_UNNAMED = "hidden_states = layer(hidden_states, past_key_value=past_key_values)"


def _of_cache(folder: Path, init: str, more: str = "") -> Applicability:
    layer = block(BODY, base=PROTECTED, takes="hidden_states, past_key_value=None")
    loop = f"for layer in self.layers:\n    {_UNNAMED}\n"
    runs = model(loop, takes="hidden_states, past_key_values=None", init=f"{STACK}\n{init}", more=more)
    return applicability(folder, toy(layer, runs), code="GC305", target=">=5.17")


def _of_override(folder: Path, more: str) -> Applicability:
    encoder = model(LOOP, name="ToyEncoder", base="nn.Module", init=_MADE, more=more)
    encoder = encoder.replace("super().__init__(config)", "super().__init__()")
    runs = model(
        "hidden_states = self.encoder(hidden_states)",
        init="self.encoder = ToyEncoder(config)",
        more=_OVERRIDE,
    )
    return applicability(folder, toy(block(BODY, base=PROTECTED), encoder, runs), code="GC301")


@pytest.mark.parametrize("name", _OF_FLAGS)
def test_flags_that_the_library_may_not_find(name: str, tmp_path: Path) -> None:
    wrong, right = (_of_override(tmp_path, more) for more in _OF_FLAGS[name])
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize("name", [each for each in _OF_FLAGS if each != "finds other parts"])
def test_flags_that_guard_a_cache(name: str, tmp_path: Path) -> None:
    wrong, right = (_of_cache(tmp_path, FLAG, more) for more in _OF_FLAGS[name])
    assert (wrong, right) == (Applicability.UNSAFE, Applicability.SAFE)


@pytest.mark.parametrize("init", _SETTING_IT)
def test_flags_that_are_not_always_there(init: str, tmp_path: Path) -> None:
    assert _of_cache(tmp_path, init) is _SETTING_IT[init]
