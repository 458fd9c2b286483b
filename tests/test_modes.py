"""Layers of a legacy branch that may not be in the mode of what runs them, or not have its flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.finding import Applicability
from tests.decisions.toy import BODY, BRANCH, FLAG, STACK, block, model, toy
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
