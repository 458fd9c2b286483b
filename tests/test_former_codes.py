"""What users of 0.2.0 wrote about GC001, GC002 and GC003 holds for what is GC302 or part of a fix now."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from gclint.level import Level
from gclint.rule import selected_rules
from gclint.settings import Settings
from tests.decisions.reports import Folder

_HEAD = "from torch import nn\nfrom transformers import PreTrainedModel\n"
_MODEL = """

class {name}Layer(nn.Module):{on_class}
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.hidden_size, config.num_heads)

    def forward(self, hidden_states, encoder_hidden_states=None, past_key_values=None):
        return self.attention(hidden_states, encoder_hidden_states, encoder_hidden_states)[0]


class {name}Model(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([{name}Layer(config) for _ in range(config.num_hidden_layers)])
        self.gradient_checkpointing = False

    def forward(self, hidden_states, encoder_hidden_states=None, past_key_values=None):
        for layer in self.layers:
            if self.gradient_checkpointing and self.training:
                hidden_states = self._gradient_checkpointing_func(
                    layer.__call__, hidden_states, encoder_hidden_states
                )
            else:
                hidden_states = layer({arguments}){on_call}
        return hidden_states
"""
_CACHE = "hidden_states, encoder_hidden_states, past_key_values"
_KEYWORD = "hidden_states, encoder_hidden_states=encoder_hidden_states"


def _text(name: str, on_class: str = "", on_cache: str = "", on_keyword: str = "") -> str:
    """Return two models with a legacy branch, one of which passes a cache and one an activation wrongly."""
    first = _MODEL.format(name=name, on_class=on_class, arguments=_CACHE, on_call=on_cache)
    second = f"{name}Cross"
    return f"{_HEAD}{first}" + _MODEL.format(
        name=second, on_class=on_class, arguments=_KEYWORD, on_call=on_keyword
    )


_COMMENTS = ("  # gclint: ignore[GC001]", "  # gclint: ignore[positional-cache]", "  # noqa: GC003")
_SETTINGS = """
[tool.gclint]
target-version = ">=4.53,<5"
per-file-ignores = { "old/*" = ["GC001", "GC002", "keyword-activation"] }
baseline = "baseline.json"
"""
_BASELINE = """{
  "version": 1,
  "findings": [
    {"file": "modeling_badger.py", "rule": "GC001", "symbol": "BadgerCrossLayer", "hash": "be1349949dec3fe6", "count": 1},
    {"file": "modeling_badger.py", "rule": "GC001", "symbol": "BadgerLayer", "hash": "ac66f9bc4dc0d749", "count": 1},
    {"file": "modeling_badger.py", "rule": "GC002", "symbol": "BadgerLayer", "hash": "880cf07350acce7b", "count": 1},
    {"file": "modeling_badger.py", "rule": "GC003", "symbol": "BadgerCrossLayer", "hash": "e98b2fcba1ebcefa", "count": 1}
  ]
}
"""  # noqa: E501
_TREE = {
    "modeling_otter.py": _text("Otter", *_COMMENTS),
    "modeling_badger.py": _text("Badger"),
    "old/modeling_seal.py": _text("Seal"),
    "pyproject.toml": _SETTINGS,
    "baseline.json": _BASELINE,
}
"""A tree with comments, settings and a baseline as gclint 0.2.0 made them."""


@pytest.mark.parametrize(
    "options",
    [[], ["--select", "GC001,GC002,GC003"], ["--select", "GC302"], ["--ignore", "GC302"], ["--jobs", "2"]],
    ids=" ".join,
)
def test_tree_of_an_earlier_release_has_nothing_new(folder: Folder, options: Sequence[str]) -> None:
    folder.write(_TREE)
    outcome = folder.run(*options, "--fail-level", "note")
    assert outcome.status == 0, outcome.out
    assert outcome.out == "No findings in 3 files.\n"
    assert "no longer" not in outcome.err


def _converted(text: str) -> str:
    """Return a text with layers in place of legacy branches, and with the calls as they are."""
    plain = re.sub(r" {12}if self\.grad.*?else:\n {4}", "", text, flags=re.DOTALL)
    header = "from transformers.modeling_layers import GradientCheckpointingLayer\n"
    return header + plain.replace("(nn.Module)", "(GradientCheckpointingLayer)")


def test_what_has_become_needless_is_still_said(folder: Folder) -> None:
    right = {
        name: _converted(text).replace(", past_key_values)", ")").replace(_KEYWORD, "hidden_states")
        for name, text in _TREE.items()
        if name.endswith(".py")
    }
    folder.write({**_TREE, **right})
    outcome = folder.run("--output-format", "json")
    assert outcome.codes == ["GC000"] * 4
    assert outcome.err.count("no longer occurs") == 4


def test_entry_of_a_call_holds_once_its_block_is_a_layer(folder: Folder) -> None:
    files = {"modeling_badger.py": _converted(_text("Badger")), "baseline.json": _BASELINE}
    folder.write({"pyproject.toml": _SETTINGS, **files})
    assert folder.found() == []
    (folder.path / "baseline.json").unlink()
    folder.write({"pyproject.toml": ""})
    assert folder.found() == ["GC002", "GC003"]


def test_fix_repairs_the_calls_whichever_rule_is_selected(folder: Folder) -> None:
    texts = set()
    for code in ("ALL", "GC001", "GC302"):
        folder.write({"modeling_badger.py": _text("Badger"), "pyproject.toml": ""})
        outcome = folder.run("--select", code, "--target-version", "4.53", "--fix", "--show-fixes")
        assert "pass `past_key_values` by keyword on line 29" in outcome.out
        assert "pass `encoder_hidden_states` by position on line 57" in outcome.out
        texts.add(folder.read("modeling_badger.py"))
    (text,) = texts
    assert "layer(hidden_states, encoder_hidden_states, past_key_values=past_key_values)" in text


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        ("GC001", "", "GC001 GC302"),
        ("missing-checkpointing-layer", "", "GC001 GC302"),
        ("GC00", "", "GC001 GC002 GC003 GC302"),
        ("GC302", "", "GC302"),
        ("GC001", "GC302", "GC001"),
        ("GC001 GC002", "GC001", "GC002"),
        ("GC002 GC302", "GC001", "GC002 GC302"),
    ],
)
def test_former_code_selects_a_rule(select: str, ignore: str, expected: str) -> None:
    rules = selected_rules(Settings(select=tuple(select.split()), ignore=tuple(ignore.split())))
    assert [rule.code for rule in rules if rule.code != "GC000"] == expected.split()


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ({"ALL": "warning"}, Level.WARNING),
        ({"GC001": "error"}, Level.ERROR),
        ({"missing-checkpointing-layer": "error", "ALL": "warning"}, Level.ERROR),
        ({"missing-checkpointing-layer": "error", "GC302": "warning"}, Level.WARNING),
        ({"GC001": "error", "GC3": "warning"}, Level.ERROR),
        ({"GC002": "error"}, Level.NOTE),
    ],
)
def test_former_code_gives_a_level(folder: Folder, levels: dict[str, str], expected: Level) -> None:
    table = "".join(f'{name} = "{level}"\n' for name, level in levels.items())
    folder.write(
        {
            "modeling_badger.py": _text("Badger"),
            "pyproject.toml": f'[tool.gclint]\ntarget-version = "4.53"\n[tool.gclint.levels]\n{table}',
        }
    )
    assert {each["level"] for each in folder.run("--output-format", "json").data} == {expected.value}
