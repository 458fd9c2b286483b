"""``gclint --fix --verify``: the repaired text is what runs, and only what is proven is written."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from gclint.proof import proving
from gclint.verify.files import FileRunner
from gclint.verify.settings import RunSettings
from tests.harness import ASSUMED
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
    "transformers/modeling_layers.py": """\
import inspect

class GradientCheckpointingLayer: pass

def is_layer(kind):
    return issubclass(kind, GradientCheckpointingLayer)

def base(kind):
    return kind.__bases__[0].__name__

def lines(code):
    return inspect.getsourcelines(code)
""",
}

_RUN = """
class Toy:
    @staticmethod
    def run(watch, known):
        from dataclasses import replace
        from gclint.verify.worker.cause import Cause
        from gclint.verify.worker.protocol import Failure, Fingerprint, SourcePlace, ObservedSite

        from transformers import modeling_layers as seen

        is_layer = seen.is_layer(XLayer)
        # The line is that of the text that runs.
        line = seen.lines(XLayer)[1]
        place = SourcePlace(known.source, line, line)
        site = ObservedSite(place, "XLayer", place, is_layer, True, 2, is_layer)
        cause = Cause.NOT_A_LAYER
        failures = () if is_layer else (
            Failure("recomputation", "reentrant", "default", "nothing is recomputed", (), (place,), cause),
        )
        return replace(
            known, outcome="failed" if failures else "passed", failures=failures, sites=(site,),
            blocks=2, recomputed=2 * is_layer, fingerprints=(Fingerprint("default", {digest}, 1.0, {{}}),),
        )
"""


_IMPORT = "from transformers.modeling_layers import GradientCheckpointingLayer\n\n"
_SEEN = (
    _MODEL.replace("class XLayer(nn.Module)", "class XLayer(GradientCheckpointingLayer)")
    .replace("PreTrainedModel\n\n", "PreTrainedModel\n" + _IMPORT)
    .replace("return hidden_states + self", "return signal + self")
    .replace("forward(self, hidden_states):\n        return signal", "{header}\n        return signal")
    .replace("{header}", "forward(self, hidden_states, signal=None):")
    .replace("= layer(hidden_states)", "= layer(hidden_states, signal=self.made[0])")
)
"""What loses a gradient, as only a run sees."""

_RUN_OF_SEEN = """
class Toy:
    @staticmethod
    def run(watch, known):
        from dataclasses import replace
        from gclint.verify.worker.cause import Cause
        from gclint.verify.worker.protocol import Failure, Fingerprint, SourcePlace, ObservedSite

        from transformers import modeling_layers as seen

        lines, first = seen.lines(XModel.forward)
        line = first + next(number for number, each in enumerate(lines) if "= layer(" in each)
        lost = ("signal",) if "signal=" in lines[line - first] else ()
        place = SourcePlace(known.source, line, line)
        site = ObservedSite(place, "XLayer", SourcePlace(known.source, 1, 1), True, True, 2, True, lost)
        cause = Cause.KEYWORD_ACTIVATION
        failures = tuple(
            Failure("gradients", "reentrant", "default", "gradients are lost", (), (place,), cause)
            for _ in lost
        )
        return replace(
            known, outcome="failed" if failures else "passed", failures=failures, sites=(site,),
            blocks=2, recomputed=2, fingerprints=(Fingerprint("default", "same", 1.0, {}),),
            executed=(place,),
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
    options = ("--fix", "--verify", "--device", "cpu", "--summary", "summary.md")
    outcome = gclint(*options, str(path), command=())
    assert outcome.status == 0, outcome.err
    assert path.read_text() != before
    assert "class XLayer(GradientCheckpointingLayer):" in path.read_text()
    assert outcome.out == (
        f"modeling_x.py: repaired; proven by Toy\n{ASSUMED}\nFixed 1 finding; none left in 1 file.\n"
    )
    summary = Path("summary.md").read_text()
    assert "modeling_x.py: repaired; proven by Toy.\n\n- Toy: failed before, passed after" in summary
    assert "\n  - before, reentrant, default: nothing is recomputed" in summary


def test_what_each_class_did_is_shown_where_fixes_are(gclint: Gclint) -> None:
    path, _ = _write()
    outcome = gclint("--fix", "--verify", "--show-fixes", str(path), command=())
    assert outcome.out.startswith(
        "modeling_x.py: repaired; proven by Toy\n"
        "    Toy: failed before, passed after; recomputes 0 of 2 blocks before, 2 of 2 after\n"
    )


def test_what_computes_something_else_is_not_written(gclint: Gclint) -> None:
    path, before = _write("str(is_layer)")
    outcome = gclint("--fix", "--verify", str(path), command=())
    assert outcome.status == 1
    assert path.read_text() == before
    assert outcome.out.startswith(
        "modeling_x.py: not repaired\n    not proven: Toy, default: computes different values"
    )
    assert "modeling_x.py:8:1: warning: GC001" in outcome.out
    assert "no fix: its repair was run and is not proven" in outcome.out
    assert "Found 1 finding: 1 warning (none fixable)." in outcome.out


_SAFE = "gclint --fix --select GC001 modeling_x.py"
_UNSAFE = "gclint --fix --unsafe-fixes --select GC001 modeling_x.py"


@pytest.mark.parametrize(("is_unsafe", "command"), [(False, _SAFE), (True, _UNSAFE)], ids=["safe", "unsafe"])
def test_what_is_said_to_repair_a_failure_does_so(gclint: Gclint, is_unsafe: bool, command: str) -> None:
    path, text = _write()
    if is_unsafe:
        # A block that assigns to itself does so twice once it is recomputed.
        text = text.replace(
            "        return hidden_states + self", "        self.a = 1\n        return hidden_states + self"
        )
        path.write_text(text)
    outcome = gclint(str(path))
    assert outcome.status == 1
    assert f"    GC001 repairs it: {command}\n" in outcome.out
    (failure,) = gclint("--output-format", "json", str(path)).json()["results"][0]["failures"]
    assert (failure["cause"], failure["explanation"]) == ("not a checkpointing layer", "")
    assert failure["repaired_by"] == [
        {"code": "GC001", "filenames": ["modeling_x.py"], "unsafe": is_unsafe, "verify": False, "whole": True}
    ]
    assert gclint(*command.split()[1:], command=()).status == 0
    assert gclint(str(path)).status == 0


def test_what_rests_on_a_run_is_repaired_by_a_command_that_runs(gclint: Gclint) -> None:
    path = Path("modeling_x.py")
    path.write_text(_SEEN + _RUN_OF_SEEN)
    assert gclint(str(path), command=()).out == "No findings in 1 file.\n"
    outcome = gclint(str(path))
    command = "gclint --fix --verify --select GC003 modeling_x.py"
    assert f"    GC003 repairs it: {command}\n" in outcome.out
    assert "    fix with --verify: a run showed that `signal` requires grad\n" in outcome.out
    failures = gclint("--output-format", "json", str(path)).json()["results"][0]["failures"]
    assert [each["repaired_by"][0]["verify"] for each in failures] == [True]
    outcome = gclint(*command.split()[1:], "--summary", "summary.md", command=())
    assert outcome.status == 0, outcome.out
    assert "layer(hidden_states, self.made[0])" in path.read_text()
    assert "### Repairs found and proven by runs" in Path("summary.md").read_text()
    assert gclint(str(path)).status == 0


def test_nothing_is_said_to_repair_what_has_no_fix(gclint: Gclint) -> None:
    path, text = _write()
    legacy = """
            if self.training:
                hidden_states = self._gradient_checkpointing_func(layer.__call__, *everything)
            else:
                hidden_states = layer(hidden_states)
"""
    path.write_text(text.replace("\n            hidden_states = layer(hidden_states)\n", legacy))
    outcome = gclint(str(path))
    assert outcome.status == 1
    assert re.search(r"GC302 .* \(confirmed by run\)\n    no fix: ", outcome.out)
    assert "recomputation (reentrant default): nothing is recomputed" in outcome.out
    assert "repairs" not in outcome.out


def test_what_no_model_runs_is_not_written(gclint: Gclint) -> None:
    path, _ = _write()
    path.write_text(_MODEL)
    outcome = gclint("--fix", "--verify", str(path), command=())
    assert (outcome.status, path.read_text()) == (1, _MODEL)
    assert "none of the classes that were run uses `XLayer`: modeling_x.py has no class" in outcome.out


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


def test_json_is_an_object_where_there_is_nothing_to_prove_too(gclint: Gclint) -> None:
    Path("modeling_x.py").write_text("x = 1\n")
    document = gclint("--fix", "--verify", "--output-format", "json", "modeling_x.py", command=()).json()
    assert (document["findings"], document["proofs"]) == ([], [])


def test_json_holds_the_proofs_beside_the_findings(gclint: Gclint) -> None:
    path, _ = _write("str(is_layer)")
    outcome = gclint("--fix", "--verify", "--output-format", "json", str(path), command=())
    assert outcome.err == ""
    document = json.loads(outcome.out)
    (finding,), (proof,) = document["findings"], document["proofs"]
    assert finding["reason"].startswith("its repair was run and is not proven")
    assert (proof["filenames"], proof["proven"]) == ([str(path)], False)
    assert (proof["files_run"], proof["files_not_given"]) == ([str(path)], [])
    assert proof["obstacles"][0].startswith("Toy, default: computes different values")
    assert [each["code"] for each in proof["repairs"]] == ["GC001"]
    assert [each["name"] for each in proof["after"]] == ["Toy"]


_COUNTING = "        from transformers import modeling_layers as seen\n"
"""A line of the stand-in's class; what it becomes writes down each run."""


def _count_runs(path: Path) -> None:
    runs = repr(str(Path("runs").absolute()))  # Models run in an empty folder.
    note = f'        with open({runs}, "a") as runs: runs.write(f"{{seen.base(XLayer)}}\\n")\n'
    path.write_text(path.read_text().replace(_COUNTING, _COUNTING + note))


def test_a_run_that_was_interrupted_is_resumed(gclint: Gclint, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = _write()
    _count_runs(path)

    def interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    options = ("--fix", "--verify", "--device", "cpu", str(path))
    with monkeypatch.context() as patched:
        patched.setattr(proving, "prove", interrupted)
        outcome = gclint(*options, command=())
    assert (outcome.status, outcome.err) == (
        130,
        "Interrupted; nothing was repaired. Run it again with --resume to continue.\n",
    )
    assert gclint(*options, "--resume", command=()).status == 0
    assert Path("runs").read_text().split() == ["Module", "GradientCheckpointingLayer"]


def test_without_resume_everything_is_run_again(gclint: Gclint) -> None:
    path, _ = _write()
    _count_runs(path)
    counted = path.read_text()
    options = ("--diff", "--verify", "--device", "cpu", str(path))
    for _ in range(2):
        gclint(*options, command=())
    assert len(Path("runs").read_text().split()) == 4
    # What has changed is run again, too.
    path.write_text(counted.replace("+ self.attention", "- self.attention"))
    gclint(*options, "--resume", command=())
    assert len(Path("runs").read_text().split()) == 6


def test_what_was_run_is_remembered(gclint: Gclint) -> None:
    path, _ = _write()
    _count_runs(path)
    run = FileRunner(RunSettings(Path(sys.executable), "cpu"))
    texts = {path: path.read_text().replace("XLayer(nn.Module)", "XLayer(nn.Module, object)")}
    first = [run([path], {}), run([path], texts)]
    assert [run([path], {}), run([path], texts)] == first
    assert len(Path("runs").read_text().split()) == 2


def test_an_interpreter_that_is_none_writes_nothing(gclint: Gclint) -> None:
    path, before = _write()
    outcome = gclint("--fix", "--verify", "--python", "no-such-python", str(path), command=())
    assert (outcome.status, path.read_text()) == (2, before)
    assert (
        "nothing was repaired, because nothing could be run: no-such-python cannot be started" in outcome.err
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--verify"], "--verify requires --fix or --diff"),
        (["--fix", "--resume"], "--resume requires --verify"),
        (["--fix", "--device", "cpu"], "require --verify"),
        (["--fix", "--verify", "--device", "tpu"], "'tpu' is not auto, cpu, cuda or cuda:N"),
    ],
)
def test_options_that_make_no_sense_are_refused(gclint: Gclint, options: list[str], complaint: str) -> None:
    outcome = gclint(*options, ".", command=())
    assert outcome.status == 2
    assert complaint in " ".join(outcome.err.split())
