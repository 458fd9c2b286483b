"""A subclass that replaces the stack which its parent's loop runs: what counts is the block that runs."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Finding, Fix, Refusal
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings
from tests.toy_models import IMPORTS, LAYERS, LOOP, STACK, model

_LEGACY = """
for layer in self.layers:
    if self.gradient_checkpointing and self.training:
        hidden_states = self._gradient_checkpointing_func(layer.__call__, hidden_states)
    else:
        hidden_states = layer(hidden_states)
"""
_OTHER = """
class OtherLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = ToyAttention(config)

    def forward(self, hidden_states):
        return self.attention(hidden_states)


class OtherModel(ToyModel):
{}
"""
_REPLACED = {
    "the stack": """
        def __init__(self, config):
            super().__init__(config)
            self.layers = nn.ModuleList([OtherLayer(config) for _ in range(2)])
    """,
    "a factory": """
        def build(self, config):
            return OtherLayer(config)
    """,
    "a class": """
        layer_class = OtherLayer
    """,
}
_BASES = {
    "the stack": ("", STACK),
    "a factory": (
        "def build(self, config):\n    return ToyLayer(config)",
        "self.layers = nn.ModuleList([self.build(config) for _ in range(2)])",
    ),
    "a class": (
        "layer_class = ToyLayer",
        "self.layers = nn.ModuleList([self.layer_class(config) for _ in range(2)])",
    ),
}
_LAYERS = LAYERS.partition("class ToyOtherLayer")[0]


def _findings(folder: Path, **files: str) -> dict[str, Finding]:
    """Return what GC001 reports in files, by the class."""
    paths = []
    for name, text in files.items():
        compile(text, name, "exec", dont_inherit=True)
        path = folder / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    result = check(Project(Settings(), paths), [rule for rule in all_rules() if "GC001" in rule.codes])
    assert result.problems == ()
    return {finding.symbol: finding for finding in result.findings}


def _base(kind: str, loop: str) -> str:
    more, init = _BASES[kind]
    return IMPORTS + _LAYERS + "\n\n" + model(init, loop, more=more)


def _heir(kind: str) -> str:
    return "\n\n" + _OTHER.format(textwrap.indent(textwrap.dedent(_REPLACED[kind]).strip(), " " * 4))


@pytest.mark.parametrize("kind", _REPLACED)
def test_branch_of_the_parent_goes_only_with_all_blocks(kind: str, tmp_path: Path) -> None:
    found = _findings(tmp_path, modeling_toy=_base(kind, _LEGACY) + _heir(kind))
    assert set(found) == {"ToyLayer", "OtherLayer"}
    for finding in found.values():
        assert isinstance(finding.remedy, Fix)
        assert sum(edit.content == "GradientCheckpointingLayer" for edit in finding.edits) == 2


@pytest.mark.parametrize("kind", _REPLACED)
def test_plain_loop_of_the_parent(kind: str, tmp_path: Path) -> None:
    found = _findings(tmp_path, modeling_toy=_base(kind, LOOP) + _heir(kind))
    assert set(found) == {"ToyLayer", "OtherLayer"}
    assert all(isinstance(finding.remedy, Fix) for finding in found.values())


@pytest.mark.parametrize("kind", _REPLACED)
def test_parent_in_another_file(kind: str, tmp_path: Path) -> None:
    imports = IMPORTS + "from .modeling_toy import ToyAttention, ToyModel\n"
    files = {"modeling_toy": _base(kind, LOOP), "modeling_other": imports + _heir(kind)}
    found = _findings(tmp_path, **files)
    assert set(found) == {"ToyLayer", "OtherLayer"}
    assert found["OtherLayer"].path.name == "modeling_other.py"
    assert isinstance(found["OtherLayer"].remedy, Fix)


@pytest.mark.parametrize("kind", _REPLACED)
def test_branch_in_another_file_is_left_to_all_who_need_it(kind: str, tmp_path: Path) -> None:
    imports = IMPORTS + "from .modeling_toy import ToyAttention, ToyModel\n"
    files = {"modeling_toy": _base(kind, _LEGACY), "modeling_other": imports + _heir(kind)}
    found = _findings(tmp_path, **files)
    assert set(found) == {"ToyLayer", "OtherLayer"}
    mine, other = (found[name].remedy for name in ("ToyLayer", "OtherLayer"))
    assert isinstance(mine, Refusal)
    assert "`OtherModel` in " in mine.reason
    assert "`OtherLayer` into `layers`" in mine.reason
    assert isinstance(other, Refusal)
    assert "`OtherModel` inherits the loop" in other.reason
