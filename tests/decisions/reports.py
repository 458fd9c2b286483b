"""Small models, and the command line that reads them, in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from gclint.cli.main import gclint

_HEAD = """\
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
"""
_LAYER = """

class {name}Layer({base}):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.hidden_size, config.num_heads)
{more}
    def forward(self, hidden_states, past_key_values=None):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]
"""
_MODEL = """

class {name}Model(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([{name}Layer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, hidden_states, past_key_values=None):
        for layer in self.layers:
            hidden_states = layer({arguments})
        return hidden_states
"""


def model(
    name: str = "Otter",
    *,
    base: str = "nn.Module",
    arguments: str = "hidden_states",
    more: str = "",
) -> str:
    """Return a layer and a model, without what they import."""
    return _LAYER.format(name=name, base=base, more=more) + _MODEL.format(name=name, arguments=arguments)


GOOD = _HEAD + model(base="GradientCheckpointingLayer")
"""Nothing is found in it."""
SAFE = _HEAD + model()
"""GC001, with a safe fix."""
REPAIRED = GOOD
"""What ``--fix`` makes of ``SAFE``."""
UNSAFE = _HEAD + model(more="        self.norm = nn.BatchNorm1d(8)\n")
"""GC001, with an unsafe fix."""
CACHE = _HEAD + model(base="GradientCheckpointingLayer", arguments="hidden_states, past_key_values")
"""GC002, with a safe fix."""
BROKEN = GOOD.replace("def forward(self, hidden_states, past", "def forward(self, hidden_states, past(", 1)
"""Not Python."""


def two(first: str, second: str) -> str:
    """Return one text of two; the names of the second are others."""
    return first + second.removeprefix(_HEAD).replace("Otter", "Seal")


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The output as JSON."""
        return json.loads(self.out)

    @property
    def codes(self) -> list[str]:
        """The codes of the findings in JSON."""
        return [each["code"] for each in self.data]


@dataclass(frozen=True)
class Folder:
    """A folder, and gclint in it; use it where that is the working directory."""

    path: Path

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, by their paths."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def read(self, name: str = "modeling_otter.py") -> str:
        """Return the text of a file."""
        return (self.path / name).read_text(encoding="utf-8")

    def run(self, *arguments: str, given: str | None = None) -> Outcome:
        """Run gclint."""
        done = CliRunner().invoke(gclint, ["check", "--no-cache", *arguments], input=given)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Outcome(done.exit_code, done.stdout, done.stderr)

    def found(self, *arguments: str) -> list[str]:
        """Return the codes of what is found."""
        done = self.run("--output-format", "json", *arguments)
        assert done.status != 2, done.err
        return done.codes
