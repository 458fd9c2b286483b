"""Functions of other packages for which only the user can vouch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.own.team import Run

_MODEL = """\
import kernels_x
from kernels_x import FusedNorm, fused
from torch import nn
from transformers import PreTrainedModel


class OtterLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)
        self.norm = FusedNorm(8)

    def forward(self, hidden_states):
        hidden_states = self.norm(hidden_states)
        hidden_states = fused(hidden_states)
        {last}
        return self.attention(hidden_states, hidden_states, hidden_states)[0]


class OtterModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([OtterLayer(config) for _ in range(2)])

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""
_ALL = ("kernels_x.fused", "kernels_x.FusedNorm", "kernels_x.ops.gate")
_GATE = "hidden_states = kernels_x.ops.gate(hidden_states)"


@pytest.fixture(autouse=True)
def _model(folder: Path) -> None:
    (folder / "modeling_sample.py").write_text(_MODEL.format(last=_GATE), encoding="utf-8")


def _safe(out: str) -> bool:
    return "(1 fixable with --fix)" in out


def test_a_reason_names_the_option_that_makes_a_function_known(gclint: Run) -> None:
    out = gclint(".").out
    assert not _safe(out)
    assert "unless `--pure-functions kernels_x.fused` says that it changes nothing" in out
    assert "unless `--pure-functions kernels_x.ops.gate` says" in out
    assert (
        "calls `self.norm`, of which nothing is known, unless `--pure-functions kernels_x.FusedNorm`" in out
    )


@pytest.mark.parametrize("left_out", [None, *_ALL])
def test_a_fix_is_safe_once_all_that_is_unknown_is_named(gclint: Run, left_out: str | None) -> None:
    # What is kept of the run before was said without the option.
    assert not _safe(gclint(".").out)
    named = ",".join(each for each in _ALL if each != left_out)
    assert _safe(gclint(".", "--pure-functions", named).out) == (left_out is None)
    assert not _safe(gclint(".").out)


@pytest.mark.parametrize(
    "last",
    [
        # What they give may share the memory of what they get.
        "kernels_x.ops.gate(hidden_states).add_(1)",
        # They may run what they get.
        "kernels_x.ops.gate(self.keep, hidden_states)",
        "kernels_x.ops.other(hidden_states)",
        # What they give may be no tensor.
        "kernels_x.ops.gate(self)(hidden_states)",
        "for each in kernels_x.ops.gate(self): each(hidden_states)",
    ],
)
def test_what_else_is_done_is_as_unsafe_as_before(gclint: Run, folder: Path, last: str) -> None:
    text = _MODEL.format(last=last).replace(
        "    def forward(self, hidden_states):\n        hidden_states = self.norm",
        "    def keep(self, states):\n        self.kept = states\n\n"
        "    def forward(self, hidden_states):\n        hidden_states = self.norm",
    )
    (folder / "modeling_sample.py").write_text(text, encoding="utf-8")
    assert not _safe(gclint(".", "--pure-functions", ",".join(_ALL)).out)


def test_a_repository_cannot_vouch_and_the_user_can(gclint: Run, folder: Path, config: Path) -> None:
    named = f"pure-functions = {list(_ALL)}\n"
    (folder / "pyproject.toml").write_text(f"[tool.gclint]\n{named}", encoding="utf-8")
    outcome = gclint(".")
    assert not _safe(outcome.out)
    assert "pure-functions is ignored, since a repository cannot vouch for code" in outcome.err
    assert f"--pure-functions {','.join(_ALL)}" in outcome.err
    config.write_text(named, encoding="utf-8")
    outcome = gclint(".")
    assert _safe(outcome.out)
    assert "ignored" not in outcome.err


@pytest.mark.parametrize("name", ["fused", "kernels_x.", "kernels_x.fused()", "kernels-x.fused", ""])
def test_what_is_no_dotted_name_is_refused(gclint: Run, name: str) -> None:
    status, _, err = gclint(".", "--pure-functions", name)
    assert status == 2
    assert "--pure-functions" in err
    assert "Traceback" not in err
