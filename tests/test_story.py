"""What findings tell of how they come about, over models of a few lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.finding import Finding
from gclint.observations import Feeding, Observations
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings

_HEADER = """\
import torch
from torch import nn
from transformers import GradientCheckpointingLayer, PreTrainedModel


class Layer({base}):
    def __init__(self):
        super().__init__()
        self.attn = nn.Linear(4, 4)

    def forward(
        self, mask=[(x := 1)], *, states: torch.Tensor = None,  # states
        past_key_values=None,
    ):
        return self.attn(states)


class Model(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.scale = nn.Parameter(torch.ones(4))
        self.embed = nn.Embedding(4, 4)
"""
_KEYWORD = """\
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, ids, mask=None{more}):
        {start}
        for layer in self.layers:
            {target} = layer(mask, states={value})
        return {target}
"""


def _keyword(start: str, target: str, value: str, more: str = "") -> str:
    header = _HEADER.format(base="GradientCheckpointingLayer")
    return header + _KEYWORD.format(start=start, target=target, value=value, more=more)


def _finding(path: Path, text: str, code: str) -> tuple[Finding, list[tuple[str, str]]]:
    """Return the only finding of a rule, and its story as code and message."""
    path.write_text(text, encoding="utf-8")
    project = Project(Settings(), [path])
    result = check(project, all_rules())
    assert not result.problems
    (finding,) = [each for each in result.findings if each.code == code]
    texts = [project.file(each.path).text[each.start : each.end] for each in finding.story]
    return finding, [(text, each.message) for text, each in zip(texts, finding.story, strict=True)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "modeling_x.py"


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        (
            _keyword("states = self.embed(ids)", "states", "states"),
            (
                "self.embed(ids)",
                "`states` requires grad, because it comes from `self.embed(ids)`, which has parameters",
            ),
        ),
        (
            _keyword("states = self.scale * 2", "other", "states"),
            ("self.scale", "`states` requires grad, because it comes from the parameter `self.scale`"),
        ),
        (
            _keyword("pass", "states", "states"),
            (
                "layer(mask, states=states)",
                "`states` is the output of the previous block in the loop, so it requires grad",
            ),
        ),
    ],
    ids=["a module", "a parameter", "the loop itself"],
)
def test_the_gradient_is_followed_to_where_it_begins(text: str, origin: tuple[str, str], path: Path) -> None:
    _, story = _finding(path, text, "GC003")
    assert (
        "states",
        "`states` of `Layer.forward` takes an activation, which reentrant checkpointing needs by position",
    ) in story
    assert origin in story


def test_what_users_pass_is_said_to_come_from_them(path: Path) -> None:
    text = _keyword("pass", "other", "hidden", ", hidden=None").replace("states", "hidden_states")
    _, story = _finding(path, text, "GC003")
    assert story[-1] == (
        "hidden",
        "`hidden_states` is passed in by the caller of `Model.forward` as `hidden`",
    )


def test_each_place_that_fills_a_stack_is_named(path: Path) -> None:
    text = _HEADER.format(base="nn.Module").replace(
        "attn = nn.Linear(4, 4)", "attn = nn.MultiheadAttention(4, 4)"
    )
    text = text.replace("mask=[(x := 1)], *, ", "")
    text += """\
        self.layers = nn.ModuleList()
        for _ in range(2):
            self.layers.append(Layer())

    def forward(self, states):
        for layer in self.layers:
            states = layer(states)
        return states
"""
    finding, story = _finding(path, text, "GC001")
    assert story == [
        ("nn.ModuleList()", "`self.layers` of `Model` holds `Layer`"),
        ("Layer()", "`Layer` is added to `self.layers` here"),
        ("layer(states)", "`Model` runs `Layer` here, and `states` is passed from each call to the next"),
        ("class Layer", "`Layer` is not a `GradientCheckpointingLayer`"),
    ]
    assert finding.symbol == "Layer"


def test_a_story_leads_into_other_files(tmp_path: Path) -> None:
    whole = _keyword("states = self.embed(ids)", "states", "states")
    layer, _, model = whole.partition("class Model")
    (tmp_path / "__init__.py").touch()
    (tmp_path / "modeling_layer.py").write_text(layer)
    imports = layer.partition("\n\n\n")[0] + "\nfrom .modeling_layer import Layer\n\n\nclass Model"
    path = tmp_path / "modeling_x.py"
    path.write_text(imports + model)
    project = Project(Settings(), [path, tmp_path / "modeling_layer.py"])
    (finding,) = [each for each in check(project, all_rules()).findings if each.code == "GC003"]
    assert finding.path == path
    assert [each.path.name for each in finding.story] == [
        "modeling_x.py",
        "modeling_layer.py",
        "modeling_x.py",
        "modeling_layer.py",
        "modeling_x.py",
        "modeling_x.py",
    ]


_PARTS = """\
class Parts(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.tokens = nn.Embedding(4, 4)
        self.layers = nn.ModuleList([Layer() for _ in range(2)])
"""
_CHANGED = """
    def get_input_embeddings(self):
        return self.tokens

    def forward(self, ids):
        states = self.tokens(ids)
        found = states
        found *= 2
        return found
"""
_OVERRIDE = """
    def _set_gradient_checkpointing(self, module, value=False):
        if isinstance(module, Other):
            module.gradient_checkpointing = value


class Other(nn.Module):
    pass
"""


def _parts(more: str) -> str:
    return _HEADER.format(base="GradientCheckpointingLayer").partition("class Model")[0] + _PARTS + more


def test_what_is_changed_in_place_is_followed_to_its_embedding(path: Path) -> None:
    _, story = _finding(path, _parts(_CHANGED), "GC108")
    assert [code for code, _ in story] == ["nn.Embedding(4, 4)", "self.tokens(ids)", "found *= 2"]


def test_an_old_override_is_told_with_what_it_leaves_disabled(path: Path) -> None:
    _, story = _finding(path, _parts(_OVERRIDE), "GC301")
    assert [code for code, _ in story] == ["class Parts", "value", "class Other", "class Layer"]
    assert story[-1][1] == "`Layer` is a `GradientCheckpointingLayer`, whose flag stays False"


@pytest.mark.parametrize(
    ("code", "present", "fails", "getter", "told"),
    [
        (
            "GC113",
            "layers.0",
            True,
            True,
            ["def get_input_embeddings", "nn.ModuleList", "nn.Embedding(4, 4)"],
        ),
        ("GC114", "layers.0", False, False, ["class Parts", "nn.ModuleList", "nn.Embedding(4, 4)"]),
        ("GC114", None, False, True, ["def get_input_embeddings", "nn.Embedding(4, 4)"]),
    ],
)
def test_embeddings_that_a_run_has_seen_are_shown_where_they_are_made(
    code: str, present: str | None, fails: bool, getter: bool, told: list[str], path: Path
) -> None:
    method = "\n    def get_input_embeddings(self):\n        return self.layers[0]\n" if getter else ""
    path.write_text(_parts(method), encoding="utf-8")
    project = Project(Settings(), [path])
    project.observe(Observations([], [Feeding(path, "Parts", "tokens", present, fails)]))
    (finding,) = [each for each in check(project, all_rules()).findings if each.code == code]
    texts = [project.file(path).text[each.start : each.end] for each in finding.story]
    assert [text.partition("(")[0] for text in texts] == [text.partition("(")[0] for text in told]
    assert finding.story[-1].message == "a run has seen that `self.tokens` feeds the first block"


def test_a_finding_is_the_same_whatever_its_story(path: Path) -> None:
    finding, story = _finding(path, _keyword("states = self.embed(ids)", "states", "states"), "GC003")
    assert story
    from dataclasses import replace

    assert replace(finding, story=()) == finding
