"""Models that no rule can run: what their users say about them makes them run, in both commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gclint.verify.results_file import read
from gclint.verify.worker.protocol import ClassResult
from tests.environment import PROJECT

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("transformers")

_MODEL = """\
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer


class OtterConfig(PretrainedConfig):
    model_type = "otter"

    def __init__(self, river=None, hidden_size=768, **kwargs):
        self.river = river
        self.hidden_size = hidden_size
        super().__init__(**kwargs)


class OtterBlock(BASE):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, hidden_states):
        weights = self.query(hidden_states) @ self.key(hidden_states).transpose(-1, -2)
        return hidden_states + weights.softmax(dim=-1) @ self.value(hidden_states)


class OtterModel(PreTrainedModel):
    config_class = OtterConfig
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        if config.river not in ("Thames", "Tweed"):
            raise ValueError("which river?")
        self.bank = nn.Linear(config.hidden_size, config.hidden_size)
        self.layers = nn.ModuleList([OtterBlock(config.hidden_size) for _ in range(2)])
        self.gradient_checkpointing = False
        self.post_init()

    def get_input_embeddings(self):
        return self.bank

    def forward(self, currents):
        if currents.get("tide") != self.config.river:
            raise ValueError("another river")
        hidden_states = self.bank(currents["water"])
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""
_INPUTS = """\
import torch

def swim(config, model_class):
    assert model_class.__name__ == "OtterModel"
    return {"currents": {"tide": config.river, "water": torch.randn(2, 5, config.hidden_size)}}
"""
_FUNCTION = '[tool.gclint.verify.models.OtterModel]\ninputs = "otter_inputs.py:swim"\n'


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _write("GradientCheckpointingLayer", "")
    Path("otter_inputs.py").write_text(_INPUTS)
    Path("tiny.json").write_text('{"river": "Thames", "hidden_size": 12}')


def _write(base: str, table: str) -> None:
    Path("modeling_otter.py").write_text(_MODEL.replace("BASE", base))
    Path("pyproject.toml").write_text(f"[tool.gclint]\n{table}")


def _gclint(*arguments: str) -> str:
    command = [
        sys.executable,
        "-m",
        "gclint",
        *arguments,
        "modeling_otter.py",
        "--device",
        "cpu",
        "--jobs",
        "1",
    ]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(command, capture_output=True, text=True, env=environment).stdout


def _verified(table: str) -> ClassResult:
    _write("GradientCheckpointingLayer", table)
    _gclint("verify", "--results", "results.jsonl")
    [found] = read(Path("results.jsonl"))[1].sorted()
    return found


def test_a_class_that_no_rule_can_run_is_not_run() -> None:
    assert _verified("").outcome == "not run"


def test_fields_and_a_function_make_it_run() -> None:
    table = '[tool.gclint.verify.configurations.OtterConfig]\nfields = { river = "Tweed" }\n'
    assert _verified(table).outcome == "not run"
    assert _verified(table + _FUNCTION).outcome == "passed"


def test_a_whole_configuration_is_used_as_it_is() -> None:
    table = '[tool.gclint.verify.configurations.OtterConfig]\nconfig = "tiny.json"\n'
    assert _verified(table + _FUNCTION).outcome == "passed"


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (
            '[tool.gclint.verify.configurations.OtterConfig]\nfields = { rivers = "Tweed" }\n',
            r"fields in [tool.gclint.verify.configurations.OtterConfig]: OtterConfig has no field 'rivers'; "
            "did you mean 'river'?",
        ),
        (
            '[tool.gclint.verify.models.OtterModel]\nconfig = "tiny.json"\ninputs = "otter_inputs.py:sink"\n',
            "inputs in [tool.gclint.verify.models.OtterModel]: ",
        ),
    ],
)
def test_what_is_said_wrongly_is_the_reason(table: str, reason: str) -> None:
    found = _verified(table)
    assert (found.outcome, found.category) == ("not run", "settings")
    assert reason in str(found.reason)


def test_repairs_are_proven_with_what_is_said() -> None:
    table = '[tool.gclint.verify.models.OtterModel]\nconfig = "tiny.json"\ninputs = "otter_inputs.py:swim"\n'
    _write("nn.Module", table)
    said = _gclint("--fix", "--verify")
    assert "class OtterBlock(GradientCheckpointingLayer):" in Path("modeling_otter.py").read_text(), said
