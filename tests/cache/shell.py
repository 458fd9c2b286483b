"""gclint run from the shell, as users do, in a project of a few models."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gclint.cache.consulted import decoded
from gclint.cache.store import NAME

BASE = """import torch.nn as nn


class BaseBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.hidden_size, 2)

    def forward(self, hidden_states, attention_mask=None):
        return hidden_states + self.attention(hidden_states, hidden_states, hidden_states)[0]
"""
MODEL = """import torch.nn as nn

from ..base.modeling_base import BaseBlock
from transformers.modeling_utils import PreTrainedModel


class MyBlock(BaseBlock):
    pass


class MyModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([MyBlock(config) for _ in range(config.num_hidden_layers)])

    def forward(self, hidden_states, attention_mask=None):
        for layer in self.layers:
            hidden_states = layer(hidden_states, attention_mask)
        return hidden_states
"""
_IMPORT = "import torch.nn as nn\n"
OWN = BASE.replace(_IMPORT, f"{_IMPORT}from transformers.modeling_utils import PreTrainedModel\n")
OWN += "\n\n" + MODEL[MODEL.index("class MyModel") :].replace("MyBlock", "BaseBlock")
CHECKPOINTED_BASE = BASE.replace("(nn.Module)", "(GradientCheckpointingLayer)").replace(
    "import torch.nn as nn\n",
    "import torch.nn as nn\n\nfrom transformers.modeling_layers import GradientCheckpointingLayer\n",
)


@dataclass(frozen=True)
class Ran:
    """How a run ended."""

    status: int
    output: str
    errors: str


def write_project(folder: Path) -> Path:
    """Write a package of two models, one of which builds on the other, and return its folder."""
    for name, text in (("base", BASE), ("mine", MODEL), ("own", OWN)):
        model = folder / "package" / "models" / name
        model.mkdir(parents=True)
        (model / "__init__.py").touch()
        (model / f"modeling_{name}.py").write_text(text, encoding="utf-8")
    for package in (folder / "package", folder / "package" / "models"):
        (package / "__init__.py").touch()
    (folder / "pyproject.toml").write_text("[tool.gclint]\n", encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None, code: str = "") -> Ran:
    """Run ``gclint`` in a folder.

    Args:
        folder: the working directory.
        arguments: those of the command line.
        variables: changes of the environment.
        code: what the process does first.
    """
    start = f"{code}\nimport sys\nfrom gclint.launch import main\nmain()\n"
    done = subprocess.run(
        [sys.executable, "-c", start, *arguments],
        cwd=folder,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def database(folder: Path | None = None) -> Path:
    """Return the database in a folder, by default the user's."""
    return (folder or Path(os.environ["XDG_CACHE_HOME"], "gclint")) / NAME


def documents(kind: str = "", folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return the documents of one kind (``report`` or ``verdicts``), or of both, by key."""
    path = database(folder)
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path)) as opened:
        found = opened.execute("SELECT key, body FROM verdicts_5").fetchall()
    return {key: json.loads(body) for key, body in found if key.startswith(kind)}


def consulted(document: dict[str, Any]) -> dict[tuple[str, str, str], str]:
    """Return the answers that a document depends on, by kind, path and detail of the question."""
    return {
        (fact.kind, fact.path, fact.detail): kept.text for fact, kept in decoded(document["facts"]).items()
    }


LISTS_MODULES = (
    "import atexit, sys\n"
    "atexit.register(lambda: print('libcst' in sys.modules, 'click' in sys.modules, file=sys.stderr))"
)
"""Lets a run print whether it needed LibCST and click."""


def is_known(ran: Ran) -> bool:
    """Tell whether a run that began with :data:`LISTS_MODULES` came without LibCST."""
    return ran.errors.splitlines()[-1] == "False False"
