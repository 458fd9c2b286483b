"""What is said of blocks that a legacy branch recomputes, by release, and which of them are GC001's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.decisions.reports import Folder

_HEAD = """\
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel


class OtterLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(config.hidden_size, config.num_heads)

    def forward(self, hidden_states{cache}):
        return self.attention(hidden_states, hidden_states, hidden_states)[0]
"""
_MODEL = """

class {name}(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([OtterLayer(config) for _ in range(config.num_hidden_layers)])
        self.gradient_checkpointing = False

    def forward(self, hidden_states):
        for layer in self.layers:
{loop}
        return hidden_states
"""
_PLAIN = "            hidden_states = layer(hidden_states)"
_BRANCH = """\
            if self.gradient_checkpointing and self.training:
                hidden_states = {function}
            else:
                hidden_states = layer(hidden_states)"""
_LIBRARY = _BRANCH.format(function="self._gradient_checkpointing_func(layer.__call__, hidden_states)")
_TORCH = _BRANCH.format(function="checkpoint(layer, hidden_states, use_reentrant=False)")
_OPTIONS = _BRANCH.format(function="checkpoint(layer, hidden_states, **self.gradient_checkpointing_kwargs)")
_KEYWORDS = _LIBRARY.replace("hidden_states)\n", "hidden_states, mask=None, scale=1)\n")
_UNMINDED = _TORCH.replace("use_reentrant", "mask=None, use_reentrant")
_REENTRANT = "raises an error for the keywords `mask` and `scale`"
_CACHES = "the model has to switch its cache off itself"


def _text(loop: str = _LIBRARY, *, cache: str = "", further: str = "") -> str:
    return _HEAD.format(cache=cache) + _MODEL.format(name="OtterModel", loop=loop) + further


def _said(folder: Folder, text: str, release: str) -> list[str]:
    """Return what is said, each with its code and level."""
    folder.write({"modeling_otter.py": text})
    found = folder.run("--output-format", "json", "--target-version", release, "--exit-zero").data
    return [f"{each['level']} {each['code']} {each['message']}" for each in found]


def _ignored(options: str) -> str:
    which, have = ("options", "have") if " and " in options else ("option", "has")
    return f"the {which} {options} of `gradient_checkpointing_enable()` {have} no effect"


@pytest.mark.parametrize(
    ("release", "loop", "cache", "lacking"),
    [
        ("4.52", _LIBRARY, ", past_key_values=None", []),
        ("4.53", _LIBRARY, ", past_key_values=None", [_CACHES]),
        ("4.53", _LIBRARY, "", []),
        ("4.53", _LIBRARY, ", memory=None", []),
        ("5.17", _LIBRARY, ", past_key_value=None", [_ignored("`every_n_layers`")]),
        ("5.15", _LIBRARY, ", use_cache=False", [_CACHES]),
        ("5.16", _LIBRARY, ", use_cache=False", [_CACHES, _ignored("`every_n_layers`")]),
        (">=4.40", _LIBRARY, "", [_ignored("`every_n_layers`")]),
        ("4.53", _TORCH, "", [_ignored("`gradient_checkpointing_kwargs`")]),
        ("5.16", _TORCH, "", [_ignored("`every_n_layers` and `gradient_checkpointing_kwargs`")]),
        (
            "5.17",
            _TORCH,
            "",
            [_ignored("`every_n_layers`, `gradient_checkpointing_kwargs` and `offload`")],
        ),
        ("5.17", _OPTIONS, "", [_ignored("`every_n_layers`")]),
        ("5.15", _KEYWORDS, "", [f"reentrant checkpointing {_REENTRANT}"]),
        (
            "4.53",
            _KEYWORDS,
            "",
            [f"reentrant checkpointing, the default before transformers 5.0, {_REENTRANT}"],
        ),
        ("4.53", _UNMINDED, "", [_ignored("`gradient_checkpointing_kwargs`")]),
    ],
)
def test_what_a_branch_lacks(folder: Folder, release: str, loop: str, cache: str, lacking: list[str]) -> None:
    how = "`OtterModel` checkpoints `OtterLayer` in a branch of its own"
    but = "a `GradientCheckpointingLayer` needs no such code"
    if lacking:
        but = f"but unlike with a `GradientCheckpointingLayer`, {', and '.join(lacking)}"
    said = f"{how}, so it is recomputed; {but}"
    assert _said(folder, _text(loop, cache=cache), release) == [f"note GC302 {said}"]


@pytest.mark.parametrize("release", ["4.51", "<4.52", ">=4.35,<4.50"])
def test_branch_is_right_where_there_is_no_base_class(folder: Folder, release: str) -> None:
    assert _said(folder, _text(), release) == []
    # Nothing is recomputed, but nothing can be repaired either.
    (note,) = _said(folder, _text(_PLAIN), release)
    assert note.startswith("note GC001 ")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (_LIBRARY, ["note GC302"]),
        (_PLAIN, ["warning GC001"]),
        ("            self.run(checkpoint)\n" + _PLAIN, ["note GC302"]),
    ],
)
def test_block_that_another_model_does_not_recompute(folder: Folder, other: str, expected: list[str]) -> None:
    said = _said(folder, _text(further=_MODEL.format(name="OtterDecoder", loop=other)), "4.53")
    assert [" ".join(each.split()[:2]) for each in said] == expected
    if "GC001" in said[0]:
        assert "stacked in `OtterDecoder`" in said[0]


def test_block_that_another_file_does_not_recompute_is_one_finding(folder: Folder) -> None:
    imports = ("torch import nn", "transformers import PreTrainedModel", ".modeling_otter import OtterLayer")
    other = "".join(f"from {each}\n" for each in imports) + _MODEL.format(name="SealModel", loop=_PLAIN)
    folder.write({"modeling_seal.py": other})
    (said,) = _said(folder, _text(), "4.53")
    assert said.startswith("warning GC001 `OtterLayer`, stacked in `SealModel`, is not")
    found = folder.run("--output-format", "json", "--target-version", "4.53").data
    assert [Path(each["filename"]).name for each in found] == ["modeling_otter.py"]
    folder.run("--select", "GC302", "--target-version", "4.53", "--fix")
    assert "GradientCheckpointingLayer" in folder.read()


@pytest.mark.parametrize(
    ("loop", "release", "reasons"),
    [
        (_LIBRARY, "4.53", {"GC001": "a legacy branch recomputes `OtterLayer`, see GC302"}),
        (_PLAIN, "4.53", {"GC302": "nothing recomputes `OtterLayer`, see GC001"}),
        (
            _LIBRARY,
            "4.50",
            {
                "GC001": "a legacy branch recomputes `OtterLayer`, see GC302",
                "GC302": "a legacy branch recomputes `OtterLayer`, and transformers 4.50 has no "
                "`GradientCheckpointingLayer`",
            },
        ),
    ],
)
def test_why_one_of_the_rules_is_silent(
    folder: Folder, loop: str, release: str, reasons: dict[str, str]
) -> None:
    from click.testing import CliRunner

    from gclint.cli.main import gclint

    folder.write({"modeling_otter.py": _text(loop)})
    arguments = ["explain", "--output-format", "json", "--target-version", release, "modeling_otter.py:6"]
    explained = json.loads(CliRunner().invoke(gclint, arguments).stdout)
    rules = {each["code"]: each for each in explained["subjects"][0]["rules"]}
    for code, reason in reasons.items():
        assert rules[code]["reasons"] == [reason]
