"""Which classes of a file are run, which are listed although they are not, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from gclint.verify.worker.classes import model_classes, unsupported

pytestmark = pytest.mark.torch

_HEAD = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

class Layer(GradientCheckpointingLayer):
    def forward(self, x): return x

LAYERS = {"plain": Layer}

class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(2)])
    def forward(self, x): return x

class Base(PreTrainedModel):
    def _init_weights(self, module):
        if isinstance(module, Layer): pass

"""


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("modeling_toy_classes")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def _load(module: ModuleType, text: str) -> dict[str, str | None]:
    exec(compile(_HEAD + dedent(text), str(Path("modeling_toy.py")), "exec"), vars(module))
    return {each.__name__: unsupported(each) for each in model_classes(module)}


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("self.encoder = Encoder(config)", "its Layer is a checkpointing layer"),
        ("self.layers = [LAYERS[each]() for each in config.kinds]", "its Layer is a checkpointing layer"),
        ("self.layers = make()", "its Layer is a checkpointing layer"),
        (
            "pass\n    def step(self, x): return self._gradient_checkpointing_func(self.f, x)",
            "it calls `_gradient_checkpointing_func`",
        ),
        (
            "from torch.utils import checkpoint as c; c.checkpoint(self.f, config)",
            "it calls `torch.utils.checkpoint.checkpoint`",
        ),
        ("pass\n    def step(self, x): return checkpoint(self.f, x)", "it calls `torch.utils.checkpoint"),
        (
            "pass\n    def step(self, x): return [torch.utils.checkpoint.checkpoint(f, x) for f in self.fs]",
            "it calls `torch.utils.checkpoint.checkpoint`",
        ),
    ],
)
def test_a_class_that_checkpoints_without_the_flag_is_listed(load: ModuleType, body: str, how: str) -> None:
    text = f"""
def make():
    return Layer()

class Model(Base):
    def __init__(self, config):
        super().__init__(config)
        {body}
    def forward(self, x): return x
"""
    (told,) = _load(load, text).values()
    assert told
    assert told.startswith("`supports_gradient_checkpointing` is not set, so checkpointing cannot be enabled")
    assert how in told
    (told,) = _load(load, f"{text}    supports_gradient_checkpointing = False\n").values()
    assert told
    assert "is False" in told
    assert _load(load, f"{text}    supports_gradient_checkpointing = True\n") == {"Model": None}


def test_a_class_that_does_not_checkpoint_is_not_listed(load: ModuleType) -> None:
    text = """
    class Model(Base):
        def __init__(self, config):
            super().__init__(config)
            self.linear = nn.Linear(config.checkpoint, 1)
        def forward(self, x): return x
        def _set_gradient_checkpointing(self, enable, gradient_checkpointing_func):
            self._gradient_checkpointing_func = gradient_checkpointing_func

    class WithoutForward(Base):
        supports_gradient_checkpointing = True
    """
    assert _load(load, text) == {}


def test_a_class_of_another_name_is_run_under_the_modules_and_an_alias_once(load: ModuleType) -> None:
    text = """
    def make(width):
        class Model(Base):
            supports_gradient_checkpointing = True
            def forward(self, x): return x
        return Model

    Wide, Narrow = make(2), make(1)
    OldName = Wide
    """
    assert _load(load, text) == {"Wide": None, "Narrow": None}
