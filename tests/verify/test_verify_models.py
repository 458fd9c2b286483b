"""The command with the real worker: small models of each way that files can lie, in real processes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gclint.verify.run import verify
from gclint.verify.settings import RunSettings
from gclint.verify.sources import target_of

pytestmark = pytest.mark.torch

_CONFIGURATION = """
from transformers import PretrainedConfig


class ToyConfig(PretrainedConfig):
    model_type = "gclint_toy"

    def __init__(self, vocab_size=64, hidden_size=16, num_hidden_layers=2, **kwargs):
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        super().__init__(**kwargs)
"""

_MODELING = """
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from .configuration_toy import ToyConfig


class ToyLayer({base}):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states):
        return hidden_states + self.attention(hidden_states).tanh()


class ToyModel(PreTrainedModel):
    config_class = ToyConfig
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([ToyLayer(config) for _ in range(config.num_hidden_layers)])
        self.gradient_checkpointing = False
        self.post_init()

    def get_input_embeddings(self):
        return self.embeddings

    def forward(self, input_ids=None):
        hidden_states = self.embeddings(input_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return (hidden_states,)
"""

HEALTHY = _MODELING.format(base="GradientCheckpointingLayer")
_UNPROTECTED = _MODELING.format(base="nn.Module")


def write_model(folder: Path, modeling: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "configuration_toy.py").write_text(_CONFIGURATION)
    path = folder / "modeling_toy.py"
    path.write_text(modeling)
    return path


def _gclint(folder: Path, *arguments: str | Path) -> tuple[int, Any]:
    command = [
        sys.executable,
        "-m",
        "gclint",
        "verify",
        "--output-format",
        "json",
        "--device",
        "cpu",
        *arguments,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_model_of_remote_code_passes(tmp_path: Path) -> None:
    path = write_model(tmp_path / "remote", HEALTHY)
    status, found = _gclint(tmp_path, path)
    (result,) = found["results"]
    assert (status, result["name"], result["outcome"]) == (0, "ToyModel", "passed"), result
    assert result["recomputed"] == result["blocks"] > 1


def test_a_model_in_a_package_whose_layer_is_not_protected_fails(tmp_path: Path) -> None:
    path = write_model(tmp_path / "src" / "toys", _UNPROTECTED)
    (path.parent / "__init__.py").touch()
    status, found = _gclint(tmp_path, "src")
    (result,) = found["results"]
    assert (status, result["outcome"]) == (1, "failed"), result
    assert {failure["cause"] for failure in result["failures"]} >= {"not a checkpointing layer"}


def test_the_script_shows_the_failure(tmp_path: Path) -> None:
    path = write_model(tmp_path / "remote", _UNPROTECTED)
    command = [sys.executable, "-m", "gclint", "verify", "--device", "cpu", "--write-repro", "scripts"]
    subprocess.run([*command, str(path)], cwd=tmp_path, capture_output=True, check=False)
    script = tmp_path / "scripts" / "modeling_toy_ToyModel.py"
    shown = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert shown.returncode == 1, shown.stderr
    versions, *failures = shown.stdout.splitlines()
    assert versions.startswith("transformers "), versions
    assert failures == [f"layers.{i} is not recomputed in the backward pass" for i in range(2)]


def test_another_text_is_run_and_nothing_is_written(tmp_path: Path) -> None:
    path = write_model(tmp_path / "remote", _UNPROTECTED)
    settings = RunSettings(Path(sys.executable), "cpu")
    (result,) = verify([target_of(path)], settings, texts={path: HEALTHY}).sorted()
    assert result.outcome == "passed", result
    assert path.read_text() == _UNPROTECTED


def test_what_the_worker_needs_is_named_where_it_is_missing(tmp_path: Path) -> None:
    path = write_model(tmp_path, HEALTHY)
    python = tmp_path / "environment" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", python.parent.parent], check=True)
    results = verify([target_of(path)], RunSettings(python))
    assert results.exit_status == 2
    assert results.problem
    assert "torch is not installed" in results.problem
    assert str(python) in results.problem


def test_a_gpu_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = write_model(tmp_path, HEALTHY)
    results = verify([target_of(path)], RunSettings(Path(sys.executable), "cuda:99"))
    assert results.problem
    assert "there is no device 'cuda:99'" in results.problem


_BROKEN = """
import torch
from torch import nn
from transformers import PreTrainedModel
from configuration_toy import ToyConfig

if torch.nowhere_to_be_seen if hasattr(torch, "nowhere_to_be_seen") else False:
    import conditional


class Helper(nn.Module):
    def forward(self, states, *, scale=1):
        return states * scale


class Base(PreTrainedModel):
    config_class = ToyConfig
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.helper = Helper()
        self.post_init()

    def forward(self, input_ids=None, **kwargs):
        return (self.step(self.embeddings(input_ids), **kwargs),)
"""
_OWN = {
    "Name": ("return states * factor", "NameError", "`factor` is not defined in this file"),
    "Local": (
        "if states is None: scale = 1\n        return states * scale",
        "UnboundLocalError",
        "every attempt failed on this line",
    ),
    "Attribute": (
        "return states * self.factor",
        "AttributeError",
        "no code sets an attribute `factor` on `Attribute`",
    ),
    "Keyword": ("return self.helper(states, size=2)", "TypeError", "this call passes `size` explicitly"),
    "Count": ("return self.helper(states, 2)", "TypeError", "this call passes all its arguments explicitly"),
    "Import": (
        "from torch import no_such_thing\n        return states",
        "ImportError",
        "the installed library has no such name",
    ),
}
_NOT_OWN = {
    "Shape": 'raise ValueError("no such shape")',
    "Condition": "return conditional.run(states)",
    "Library": "import no_such_library\n        return states",
    "Setting": "return states * self.config.published",
    "Part": "return getattr(nn, 'Iden' + 'tity')()(states, size=2)",
}


def test_an_error_that_is_the_models_own_is_its_failure(tmp_path: Path) -> None:
    path = write_model(tmp_path / "remote", HEALTHY)
    bodies = {**{name: body for name, (body, _, _) in _OWN.items()}, **_NOT_OWN}
    text = _BROKEN + "".join(
        f"\n\nclass {name}(Base):\n    def step(self, states, **kwargs):\n        {body}\n"
        for name, body in bodies.items()
    )
    path.write_text(text)
    status, found = _gclint(tmp_path, path, "--jobs", "2")
    assert status == 1
    results = {result["name"]: result for result in found["results"]}
    for name, (body, kind, why) in _OWN.items():
        result = results[name]
        assert result["outcome"] == "failed", result
        (failure,) = result["failures"]
        assert failure["message"].startswith(f"the model cannot run: it raises {kind}: ")
        assert why in failure["explanation"]
        (place,) = failure["places"]
        last = body.splitlines()[0 if name == "Import" else -1].strip()
        assert (place["path"], text.splitlines()[place["line"] - 1].strip()) == (str(path), last)
    for name in _NOT_OWN:
        assert results[name]["outcome"] == "not run", results[name]
    assert results["Library"]["category"] == "extra library"


_CURIOUS = (
    HEALTHY
    + """
import json, os, subprocess, sys
from pathlib import Path

Path.home().joinpath("left").mkdir(parents=True)
reach = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)"
json.dump(
    {
        "token": os.environ.get("HF_TOKEN"),
        "homes": [str(Path.home()), os.environ["HF_HOME"], os.environ["TMPDIR"]],
        "network": {
            where: subprocess.run(
                [sys.executable, "-c", reach, where, port], capture_output=True, text=True
            ).stderr
            for where, port in (("192.0.2.1", "9"), ("127.0.0.1", "LISTENING"))
        },
        "environments": [
            path.read_bytes().decode(errors="replace").count("secret-of-mine")
            for path in Path("/proc").glob("[0-9]*/environ")
            if os.access(path, os.R_OK)
        ],
    },
    open("SEEN", "w"),
)
"""
)


def test_a_model_finds_no_secrets_and_its_home_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret-of-mine")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        text = _CURIOUS.replace("LISTENING", str(listening.getsockname()[1]))
        text = text.replace("SEEN", str(tmp_path / "seen.json"))
        path = write_model(tmp_path / "remote", text)
        status, found = _gclint(tmp_path, path)
    seen = json.loads((tmp_path / "seen.json").read_text())
    (environment,) = found["environments"]
    assert (status, seen["token"]) == (0, None)
    assert not any(Path(each).exists() for each in seen["homes"])
    isolation = environment["isolation"]
    assert isolation[0] == "an environment without secrets, and a temporary home"
    if "no network" in isolation:
        assert "Network is unreachable" in seen["network"]["192.0.2.1"]
        # It has a loopback interface of its own, where nobody listens.
        assert "Connection refused" in seen["network"]["127.0.0.1"]
    if "other processes are hidden" in isolation:
        assert not any(seen["environments"])
