"""``gclint --fix --verify``: the repaired text is what runs, and only what is proven is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.verify.command_line import Gclint

_MODEL = """\
from torch import nn
from transformers import PreTrainedModel

class XAttention(nn.Module):
    def forward(self, hidden_states):
        return (hidden_states @ hidden_states.mT).softmax(-1) @ hidden_states

class XLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = XAttention(config)

    def forward(self, hidden_states):
        return hidden_states + self.attention(hidden_states)

class XModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([XLayer(config) for _ in range(2)])

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""
"""What the linter reads; the stand-in runs the class that is put behind it."""

_STUBS = {
    "torch/__init__.py": "from torch import nn\n",
    "torch/nn.py": "class Module: pass\n",
    "transformers/__init__.py": "class PreTrainedModel: pass\n",
    "transformers/modeling_layers.py": "class GradientCheckpointingLayer: pass\n",
}

_RUN = """
class Toy:
    @staticmethod
    def run(watch, known):
        import inspect
        from dataclasses import replace
        from gclint.verify.worker.protocol import Failure, Fingerprint, Place, RunSite

        is_layer = XLayer.__bases__[0].__name__ == "GradientCheckpointingLayer"
        # The line is that of the text that runs.
        line = inspect.getsourcelines(XLayer)[1]
        place = Place(known.source, line, line)
        site = RunSite(place, "XLayer", place, is_layer, True, 2, is_layer)
        failures = () if is_layer else (
            Failure("recomputation", "reentrant", "default", "nothing is recomputed", (), (place,), "GC001"),
        )
        return replace(
            known, outcome="failed" if failures else "passed", failures=failures, sites=(site,),
            blocks=2, recomputed=2 * is_layer, fingerprints=(Fingerprint("default", {digest}, 1.0, {{}}),),
        )
"""


@pytest.fixture(autouse=True)
def _stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gclint: Gclint) -> None:
    for name, text in _STUBS.items():
        path = tmp_path / "stubs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "stubs"), prepend=":")


def _write(digest: str = "'same'") -> tuple[Path, str]:
    path = Path("modeling_x.py")
    path.write_text(_MODEL + _RUN.format(digest=digest))
    return path, path.read_text()


def test_what_is_proven_is_written(gclint: Gclint) -> None:
    path, before = _write()
    outcome = gclint("--fix", "--verify", "--device", "cpu", str(path), command=())
    assert outcome.status == 0, outcome.err
    assert path.read_text() != before
    assert "class XLayer(GradientCheckpointingLayer):" in path.read_text()
    assert outcome.out.startswith(
        "modeling_x.py: repaired\n"
        "    Toy: failed before, passed after; recomputes 0 of 2 blocks before, 2 of 2 after\n"
    )


def test_what_computes_something_else_is_not_written(gclint: Gclint) -> None:
    path, before = _write("str(is_layer)")
    outcome = gclint("--fix", "--verify", str(path), command=())
    assert outcome.status == 1
    assert path.read_text() == before
    assert outcome.out.startswith("modeling_x.py: not repaired\n    not proven: Toy computes something else")
    assert "modeling_x.py:8:1: GC001" in outcome.out
    assert "no fix: its repair was run and is not proven" in outcome.out
    assert "Found 1 finding (none fixable)." in outcome.out


def test_what_no_model_runs_is_not_written(gclint: Gclint) -> None:
    path, _ = _write()
    path.write_text(_MODEL)
    outcome = gclint("--fix", "--verify", str(path), command=())
    assert (outcome.status, path.read_text()) == (1, _MODEL)
    assert "no model that could be run runs `XLayer`" in outcome.out


def test_what_is_known_of_other_files_survives_a_refusal(gclint: Gclint) -> None:
    path, _ = _write("str(is_layer)")
    Path("modeling_y.py").write_text("x = 1\n")
    entry = {"file": "modeling_y.py", "rule": "GC001", "symbol": "Y", "hash": "0", "count": 1}
    Path("known.json").write_text(json.dumps({"version": 1, "findings": [entry]}))
    options = ("--fix", "--verify", "--baseline", "known.json")
    outcome = gclint(*options, str(path), "modeling_y.py", command=())
    assert outcome.out.startswith("modeling_x.py: not repaired\n")
    assert "known.json: GC001 for Y in modeling_y.py no longer occurs" in outcome.err


def test_a_diff_shows_what_is_proven_and_writes_nothing(gclint: Gclint) -> None:
    path, before = _write()
    outcome = gclint("--diff", "--verify", str(path), command=())
    assert path.read_text() == before
    assert "+class XLayer(GradientCheckpointingLayer):" in outcome.out
    assert "modeling_x.py: repaired" in outcome.err


def test_json_holds_the_proofs_beside_the_findings(gclint: Gclint) -> None:
    path, _ = _write("str(is_layer)")
    outcome = gclint("--fix", "--verify", "--output-format", "json", str(path), command=())
    assert outcome.err == ""
    document = json.loads(outcome.out)
    (finding,), (proof,) = document["findings"], document["proofs"]
    assert finding["reason"].startswith("its repair was run and is not proven")
    assert (proof["filenames"], proof["proven"]) == ([str(path)], False)
    assert proof["obstacles"][0].startswith("Toy computes something else")
    assert [each["code"] for each in proof["repairs"]] == ["GC001"]
    assert [each["name"] for each in proof["after"]] == ["Toy"]


def test_an_interpreter_that_is_none_writes_nothing(gclint: Gclint) -> None:
    path, before = _write()
    outcome = gclint("--fix", "--verify", "--python", "no-such-python", str(path), command=())
    assert (outcome.status, path.read_text()) == (2, before)
    assert "nothing was repaired, since nothing could be run: no-such-python cannot be started" in outcome.err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--verify"], "--verify runs what --fix or --diff would write"),
        (["--fix", "--jobs", "2"], "so they need that"),
        (["--fix", "--verify", "--device", "tpu"], "'tpu' is none of auto, cpu, cuda and cuda:N"),
    ],
)
def test_options_that_make_no_sense_are_refused(gclint: Gclint, options: list[str], complaint: str) -> None:
    outcome = gclint(*options, ".", command=())
    assert outcome.status == 2
    assert complaint in " ".join(outcome.err.split())
