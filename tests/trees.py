"""Small trees of models as transformers has them, with copies and generated files, checked and fixed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gclint.code.project import Project
from gclint.finding import Finding
from gclint.report.findings import obstacle
from gclint.rule import all_rules
from gclint.run.check import LintResult, check
from gclint.run.fix import FixResult, fix
from gclint.settings import Settings

HEADER = "#   This file was automatically generated from src/transformers/models/{0}/modular_{0}.py.\n"

IMPORTS = """\
import torch
from torch import nn

from ...modeling_layers import GradientCheckpointingLayer
from ...modeling_utils import PreTrainedModel
"""
PLAIN_IMPORTS = """\
import torch
from torch import nn

from ...modeling_utils import PreTrainedModel
"""
ATTENTION = """

class {0}Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states):
        return torch.softmax(self.query(hidden_states) @ self.key(hidden_states).mT, dim=-1) @ hidden_states
"""
LAYER = """

class {0}Layer({1}):
    def __init__(self, config):
        super().__init__()
        self.attention = {0}Attention(config)

    def forward(self, hidden_states, layer_past=None, encoder_hidden_states=None):
        return hidden_states + self.attention(hidden_states)
"""
MODEL = """

class {0}Model(PreTrainedModel):
    supports_gradient_checkpointing = {1}

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([{0}Layer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""
GCL = "GradientCheckpointingLayer"


def model(name: str, *, layer: str = LAYER, supports: bool = True, base: str = "nn.Module") -> str:
    """Return a modeling file; its layer is a block that is stacked and, with that base, unprotected."""
    imports = IMPORTS if base == GCL else PLAIN_IMPORTS
    written = layer.replace("{0}", name).replace("{1}", base)
    return imports + ATTENTION.replace("{0}", name) + written + MODEL.format(name, supports)


def converted(text: str) -> str:
    """Return a modeling file whose layer is a checkpointing layer."""
    return text.replace(PLAIN_IMPORTS, IMPORTS).replace("Layer(nn.Module)", f"Layer({GCL})")


def copied(origin: str, replacements: str) -> str:
    """Return a layer that says that it is a copy."""
    path = f"transformers.models.{origin.lower()}.modeling_{origin.lower()}.{origin}Layer"
    return LAYER.replace("\n\nclass", f"\n\n# Copied from {path} with {replacements}\nclass")


_LIBRARY = {
    "../__init__.py": "",
    "../modeling_layers.py": f"class {GCL}: ...\n",
    "../modeling_utils.py": "class PreTrainedModel: ...\n",
}


@dataclass
class Tree:
    """A package `transformers` with models, each given as ``alpha/modeling_alpha.py``."""

    folder: Path

    def write(self, files: Mapping[str, str]) -> None:
        """Write files below the models' folder."""
        for name, text in {**_LIBRARY, **files}.items():
            path = self.folder / "transformers" / "models" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def path(self, name: str) -> Path:
        """Return where a file is."""
        return self.folder / "transformers" / "models" / name

    def _given(self, names: tuple[str, ...]) -> list[Path]:
        models = self.folder / "transformers" / "models"
        return [self.path(name) for name in names] if names else sorted(models.glob("*/mod*.py"))

    def check(self, *names: str) -> LintResult:
        """Check the named files, or all of them."""
        result = check(Project(Settings(), self._given(names)), all_rules())
        assert result.problems == ()
        return result

    def fix(self, *names: str, unsafe: bool = False) -> tuple[dict[str, str], FixResult]:
        """Fix the named files, or all; return the texts that changed, having made sure that it is final."""
        changed, result = self.fix_paths(self._given(names), unsafe=unsafe)
        models = self.folder / "transformers" / "models"
        return {path.relative_to(models).as_posix(): text for path, text in changed.items()}, result

    def fix_paths(self, given: list[Path], *, unsafe: bool) -> tuple[dict[Path, str], FixResult]:
        """Fix the files at these paths; return the texts that changed."""
        project = Project(Settings(), given)
        result = fix(project, all_rules(), unsafe=unsafe)
        assert result.problems == ()
        again = fix(project, all_rules(), unsafe=unsafe)
        assert (again.changed, again.applied, again.findings) == ({}, (), result.findings)
        return {path: after for path, (_, after) in result.changed.items()}, result


def told(result: LintResult) -> list[str]:
    """Return the findings: code, file and symbol, and the kind of fix."""
    return [f"{each.code} {each.path.name} {each.symbol} {kind(each)}" for each in result.findings]


def kind(finding: Finding) -> str:
    """Return what kind of fix there is."""
    return "no fix" if finding.fix is None else finding.fix.applicability.value


def said(finding: Finding) -> str:
    """Return everything that is said about a finding, without the folders of files."""
    return re.sub(r"(?<![\w./])(?:\.\.)?/\S*/", "", f"{finding.message}; {obstacle(finding)}")
