"""What blocks receive, as the interpreter records it, and what becomes of what is read by its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gclint.model.looking import is_only_looked_into
from gclint.model.received import Received, records
from gclint.settings import Settings
from gclint.source.project import Project

_MODEL = """\
import torch
from torch import nn


class Layer(nn.Module):
    def forward(self, states, held=None):
        return states


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.bias = nn.Linear(4, 4)
        self.register_buffer("table", torch.linspace(0, 1, 4))
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, states, past_key_values=None):
        for layer in self.layers:
            states = layer(states, {held})
        return states
"""


def _received(folder: Path, *, held: str) -> dict[str, Received]:
    path = folder / "modeling_toy.py"
    path.write_text(_MODEL.replace("{held}", held), encoding="utf-8")
    project = Project(Settings(), [path], [folder])
    file = project.file(path)
    found = records(project, [file], [(file, "Layer")])
    assert found.is_complete
    return {each.parameter: each for each in found.received}


@pytest.mark.parametrize("held", ["(self.bias(states),)", "{'bias': self.bias.weight * 2}", "[states]"])
def test_a_container_with_what_requires_grad_is_recorded(held: str, tmp_path: Path) -> None:
    assert _received(tmp_path, held=held)["held"].holds_gradients


@pytest.mark.parametrize("held", ["(self.table * 2,)", "(self.bias(states).detach(),)", "states"])
def test_other_containers_are_not(held: str, tmp_path: Path) -> None:
    assert not _received(tmp_path, held=held)["held"].holds_gradients


@pytest.mark.parametrize(
    ("use", "is_only_looked_into_"),
    [("p = p[0]", True), ("p(1)", False), ("return p", False), ("p.__call__(1)", False), ("q = p", False)],
)
def test_what_is_read_by_name_may_be_called(use: str, is_only_looked_into_: bool) -> None:
    tree = ast.parse(f"def f(p, n):\n    p = getattr(p, n)\n    {use}\n")
    (read,) = (each for each in ast.walk(tree) if isinstance(each, ast.Call) and len(each.args) == 2)
    assert is_only_looked_into(tree, read) == is_only_looked_into_
