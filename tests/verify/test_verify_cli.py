"""The command ``gclint verify``: what it runs, prints, writes and exits with; the worker is a stand-in."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gclint.cli import main
from gclint.verify import process
from tests.verify import stand_in

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

_HEAD = "from dataclasses import replace\nfrom gclint.verify.worker.protocol import *\n"
_SUMMARY = "2.13.0, transformers 5.23.0, on CPU\n"


def _passing(*names: str) -> str:
    return "".join(f"class {name}:\n    run = staticmethod(lambda watch, known: None)\n" for name in names)


def _failing(name: str) -> str:
    return f"""
class {name}:
    @staticmethod
    def run(watch, known):
        place = Place(known.source, 7, 8)
        failure = Failure(
            "gradients", "reentrant", "default", "the gradients of 8 parameters are lost",
            tuple("abcdefgh"), (place,), "GC003",
        )
        recipe = Recipe("collections.OrderedDict", {{"width": 8}}, {{"input_ids": "torch.tensor([[1]])"}})
        watch.known(replace(known, outcome="failed", failures=(failure,), recipe=recipe))
        raise ValueError("a bug in gclint")
"""


@dataclass
class _Outcome:
    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Gclint = Callable[..., _Outcome]


@pytest.fixture
def gclint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gclint:
    """Runs the command line in an empty folder, with the stand-in in place of the worker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(process, "_PROGRAM", Path(stand_in.__file__))
    monkeypatch.setenv("PYTHONPATH", str(Path(stand_in.__file__).parent.parent.parent))

    def run(*arguments: str) -> _Outcome:
        monkeypatch.setattr(sys, "argv", ["gclint", "verify", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        return _Outcome(int(str(exit_.value.code)), captured.out, captured.err)

    return run


def _write(name: str, text: str) -> Path:
    path = Path(f"modeling_{name}.py")
    path.write_text(_HEAD + text)
    return path


def _names(outcome: _Outcome) -> list[str]:
    return [result["name"] for result in outcome.json()["results"]]


def test_what_passes_exits_with_0(gclint: Gclint) -> None:
    _write("toy", _passing("A", "B"))
    outcome = gclint("--device", "cpu")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.endswith(f"{_SUMMARY}2 classes passed, 0 failed, 0 not run.\n")


def test_what_fails_exits_with_1_and_says_what_to_do(gclint: Gclint) -> None:
    _write("toy", _passing("A") + _failing("B"))
    outcome = gclint()
    assert outcome.status == 1
    assert outcome.out.startswith(
        "modeling_toy.py: B failed 1 check\n"
        "    gradients (reentrant default): the gradients of 8 parameters are lost\n"
        "        parameters: a, b, c, d, e, f and 2 more\n"
        "        at modeling_toy.py:7:1\n"
        "        GC003 repairs it: gclint --fix --select GC003 modeling_toy.py\n"
    )
    assert outcome.out.endswith("1 class passed, 1 failed, 0 not run.\n")


def test_what_is_not_run_is_told_and_fails_nothing(gclint: Gclint) -> None:
    _write(
        "toy", _passing("A") + "class B:\n    def run(watch, known): raise ValueError('a bug in gclint')\n"
    )
    outcome = gclint()
    assert outcome.status == 0
    assert "modeling_toy.py: B not run (verifier): there was ValueError: a bug in gclint" in outcome.out
    assert outcome.out.endswith("1 class passed, 0 failed, 1 not run (1 verifier).\n")


@pytest.mark.parametrize(
    "text", ["", "class B:\n    def run(watch, known): raise ValueError\n", "import no_such_library\n"]
)
def test_nothing_that_can_be_run_exits_with_2(gclint: Gclint, text: str) -> None:
    _write("toy", text)
    assert gclint().status == 2


def test_a_file_that_cannot_be_imported_is_told_and_exits_with_2(gclint: Gclint) -> None:
    _write("broken", "import no_such_library\n")
    _write("toy", _passing("A"))
    outcome = gclint()
    assert outcome.status == 2
    assert outcome.out.startswith(
        "modeling_broken.py: error: it cannot be imported: ModuleNotFoundError: "
        "No module named 'no_such_library'"
    )
    assert outcome.out.endswith("1 class passed, 0 failed, 0 not run.\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shard", "3/2"], "'3/2' is not like 2/8"),
        (["--shard", "0/2"], "'0/2' is not like 2/8"),
        (["--shard", "half"], "'half' is not like 2/8"),
        (["--device", "tpu"], "'tpu' is none of auto, cpu, cuda and cuda:N"),
        (["--jobs", "0"], "--jobs"),
        (["--python", "no-such-python"], "no-such-python cannot be started: No such file or directory"),
        (["--model", "bert", "--python", "no-such-python"], "no-such-python cannot be started"),
        (["no_such_file.py"], "no_such_file.py: error: no such file or folder"),
        (["merge", "no_such_file.jsonl"], "No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_told_without_a_traceback(
    gclint: Gclint, arguments: list[str], message: str
) -> None:
    _write("toy", _passing("A"))
    outcome = gclint(*arguments)
    assert outcome.status == 2
    assert message in outcome.err + outcome.out
    assert "Traceback" not in outcome.err + outcome.out


def test_an_interpreter_that_is_none_is_told(gclint: Gclint, tmp_path: Path) -> None:
    _write("toy", _passing("A"))
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho nonsense is wrong >&2\nexit 3\n")
    program.chmod(0o755)
    outcome = gclint("--python", str(program))
    assert outcome.status == 2
    assert "has ended: nonsense is wrong" in outcome.out


def test_modular_files_are_not_what_runs(gclint: Gclint) -> None:
    _write("toy", _passing("A"))
    Path("modular_toy.py").write_text("import no_such_library\n")
    assert gclint().status == 0
    outcome = gclint("modular_toy.py", "modeling_toy.py")
    assert outcome.status == 2
    assert outcome.err == "modular_toy.py: error: it is not what runs; verify modeling_toy.py\n"


def test_what_other_libraries_run_is_left_out_of_folders(gclint: Gclint) -> None:
    _write("toy", _passing("A"))
    for name in ("tf_toy", "flax_toy"):
        _write(name, "import no_such_library\n")
    assert gclint().status == 0
    assert gclint("modeling_tf_toy.py").status == 2


def test_failures_that_differ_only_in_how_they_came_are_told_once(gclint: Gclint) -> None:
    _write(
        "toy",
        """
class A:
    @staticmethod
    def run(watch, known):
        failures = [
            Failure("gradients", mode, scenario, "they differ")
            for scenario in ("default", "cache") for mode in ("non-reentrant", "reentrant")
        ]
        watch.known(replace(known, failures=tuple(failures)))
        raise ValueError
""",
    )
    lines = gclint().out.splitlines()
    assert lines[:2] == [
        "modeling_toy.py: A failed 4 checks",
        "    gradients (non-reentrant default, reentrant default, non-reentrant cache, reentrant cache): "
        "they differ",
    ]
    assert len(lines) == 4


def test_json_holds_everything(gclint: Gclint) -> None:
    path = _write("toy", _passing("A") + _failing("B"))
    outcome = gclint("--output-format", "json")
    found = outcome.json()
    assert outcome.status == found["exit_status"] == 1
    assert found["summary"] == {"passed": 1, "failed": 1, "not_run": {}, "not_covered": 0}
    assert found["environments"][0]["transformers"] == "5.23.0"
    passed, failed = found["results"]
    assert (passed["name"], passed["outcome"], passed["source"]) == ("A", "passed", str(path.absolute()))
    assert failed["failures"][0]["places"] == [{"path": str(path.absolute()), "line": 7, "end_line": 8}]


def test_shards_are_merged_into_the_whole(gclint: Gclint) -> None:
    for name in "abcde":
        _write(name, _failing("E") if name == "e" else _passing(name.upper()))
    parts = [
        gclint("--shard", f"{n}/3", "--results", f"{n}.jsonl", "--output-format", "json") for n in (1, 2, 3)
    ]
    assert sorted(name for part in parts for name in _names(part)) == ["A", "B", "C", "D", "E"]
    merged = gclint("merge", "1.jsonl", "2.jsonl", "3.jsonl", "--output-format", "json")
    assert (merged.status, _names(merged)) == (1, ["A", "B", "C", "D", "E"])
    whole = gclint("--output-format", "json").json()
    assert _without_times(merged.json()) == _without_times(whole)
    missing = gclint("merge", "1.jsonl", "3.jsonl")
    assert missing.status == 2
    assert "there are no results of 2/3" in missing.err


def _without_times(found: Any) -> Any:
    return {**found, "results": [{**result, "seconds": 0} for result in found["results"]]}


def test_a_class_with_two_outcomes_is_not_merged(gclint: Gclint) -> None:
    _write("toy", _passing("A"))
    gclint("--results", "1.jsonl")
    _write("toy", _failing("A"))
    gclint("--results", "2.jsonl")
    outcome = gclint("merge", "1.jsonl", "2.jsonl")
    assert outcome.status == 2
    assert "has passed in 1.jsonl, and failed in 2.jsonl" in outcome.err


def test_shards_of_two_environments_are_not_merged(gclint: Gclint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        _write(name, _passing(name.upper()))
    gclint("--shard", "1/2", "--results", "1.jsonl")
    monkeypatch.setenv(stand_in.ENVIRONMENT_VARIABLE, "4.57.6")
    gclint("--shard", "2/2", "--results", "2.jsonl")
    outcome = gclint("merge", "1.jsonl", "2.jsonl")
    assert outcome.status == 2
    assert "2.jsonl is from another environment" in outcome.err


_COUNTED = """
class {name}:
    @staticmethod
    def run(watch, known):
        with open("runs", "a") as file:
            file.write("{name}")
"""


def test_resuming_runs_only_what_is_new_or_has_changed(gclint: Gclint) -> None:
    for name in "abc":
        _write(name, _COUNTED.format(name=name.upper()))
    gclint("modeling_a.py", "modeling_b.py", "--jobs", "1")
    assert Path("runs").read_text() == "AB"
    _write("b", _COUNTED.format(name="B") + "# changed\n")
    outcome = gclint("--resume", "--output-format", "json", "--jobs", "1")
    assert (outcome.status, _names(outcome)) == (0, ["A", "B", "C"])
    assert Path("runs").read_text() == "ABBC"
    assert _names(gclint("--resume", "--output-format", "json")) == ["A", "B", "C"]
    assert Path("runs").read_text() == "ABBC"
    merged = gclint("merge", ".gclint/verify.jsonl", "--output-format", "json")
    assert _names(merged) == ["A", "B", "C"]


def test_a_configuration_that_has_changed_runs_its_models_again(gclint: Gclint) -> None:
    _write("toy", _COUNTED.format(name="A"))
    gclint()
    Path("configuration_toy.py").touch()
    gclint("--resume")
    assert Path("runs").read_text() == "AA"


def test_a_class_that_is_gone_is_gone_from_resumed_results(gclint: Gclint) -> None:
    _write("toy", _passing("A", "B"))
    gclint()
    _write("toy", _passing("B", "C"))
    assert _names(gclint("--resume", "--output-format", "json")) == ["B", "C"]
    assert _names(gclint("merge", ".gclint/verify.jsonl", "--output-format", "json")) == ["B", "C"]


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_that_was_cut_off_is_run_again(gclint: Gclint, cut: int) -> None:
    _write("toy", _COUNTED.format(name="A") + _COUNTED.format(name="B"))
    gclint()
    results = Path(".gclint/verify.jsonl")
    # The last line says that the run has ended, and the one before it is about B.
    whole = results.read_bytes().removesuffix(b'{"finished":true}\n')
    results.write_bytes(whole[:-cut])
    merged = gclint("merge", str(results))
    assert merged.status == 2
    assert "a run that has not ended" in merged.err
    assert _names(gclint("--resume", "--output-format", "json")) == ["A", "B"]
    assert Path("runs").read_text() == "ABB"
    assert _names(gclint("merge", str(results), "--output-format", "json")) == ["A", "B"]


def test_resuming_in_another_environment_is_refused(gclint: Gclint, monkeypatch: pytest.MonkeyPatch) -> None:
    _write("toy", _passing("A"))
    gclint()
    monkeypatch.setenv(stand_in.ENVIRONMENT_VARIABLE, "4.57.6")
    outcome = gclint("--resume")
    assert outcome.status == 2
    assert "another environment: transformers was 5.23.0, and is 4.57.6" in outcome.err


@pytest.mark.parametrize("content", ['{"gclint":"0.0.1","shard":1,"shards":1}\n', "nonsense\n", ""])
def test_resuming_with_something_else_is_refused(gclint: Gclint, content: str) -> None:
    _write("toy", _passing("A"))
    Path("other.jsonl").write_text(content)
    outcome = gclint("--resume", "--results", "other.jsonl")
    assert outcome.status == 2
    assert "other.jsonl" in outcome.err
    assert Path("other.jsonl").read_text() == content


def test_an_interruption_kills_the_worker_and_keeps_the_results(gclint: Gclint) -> None:
    _write("a", _passing("A"))
    _write(
        "b",
        f"""
import fcntl, os, signal

class B:
    @staticmethod
    def run(watch, known):
        with open("lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.kill({os.getpid()}, signal.SIGINT)
            signal.sigtimedwait([], 20)
            open("survived", "w").close()
""",
    )
    outcome = gclint("--jobs", "1")
    assert outcome.status == 130
    assert "--resume goes on" in outcome.err
    with Path("lock").open("w") as lock:
        # Its holder lets go of it when it ends.
        fcntl.flock(lock, fcntl.LOCK_EX)
    assert not Path("survived").exists()
    _write("b", _passing("B"))
    assert _names(gclint("--resume", "--output-format", "json")) == ["A", "B"]


def test_the_default_results_are_hidden_from_git(gclint: Gclint) -> None:
    _write("toy", _passing("A"))
    gclint()
    assert Path(".gclint/.gitignore").read_text() == "*\n"
    gclint("--results", "elsewhere/results.jsonl")
    assert [path.name for path in Path("elsewhere").iterdir()] == ["results.jsonl"]


def test_a_script_is_written_for_each_class_that_failed(gclint: Gclint) -> None:
    _write("toy", _passing("A") + _failing("B"))
    outcome = gclint("--write-repro", "scripts")
    assert outcome.err == "scripts/modeling_toy_B.py shows a failure.\n"
    text = Path("scripts/modeling_toy_B.py").read_text()
    compile(text, "modeling_toy_B.py", "exec")
    assert "CONFIG = {'width': 8}" in text
    assert "input_ids=torch.tensor([[1]])" in text
    assert "use_reentrant=True" in text


def test_a_tree_beside_files_without_one_has_a_worker_of_its_own(gclint: Gclint) -> None:
    folder = Path("src/toys")
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "modeling_tree.py").write_text("from toys import __name__ as package\n" + _passing("InTree"))
    _write("toy", _passing("A"))
    outcome = gclint("--output-format", "json")
    assert (outcome.status, _names(outcome)) == (0, ["A", "InTree"])
    trees = {environment["tree"] for environment in outcome.json()["environments"]}
    assert trees == {None, str(folder.parent.absolute())}


def test_a_model_is_found_in_the_interpreter(
    gclint: Gclint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "site" / "transformers" / "models"
    for name in ("toy", "toy_two", "other"):
        (models / name).mkdir(parents=True)
        (models / name / f"modeling_{name}.py").write_text(_passing(f"Class_{name}"))
    for folder in (models.parent, models, *models.iterdir()):
        if folder.is_dir():
            (folder / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", f"{models.parent.parent}{os.pathsep}{os.environ['PYTHONPATH']}")
    assert _names(gclint("--model", "toy-two", "--output-format", "json")) == ["Class_toy_two"]
    both = gclint("--model", "toy*", "--model", "toy", "--output-format", "json")
    assert _names(both) == ["Class_toy", "Class_toy_two"]
    unknown = gclint("--model", "toys")
    assert unknown.status == 2
    assert "there is no model 'toys'" in unknown.err
    assert "did you mean toy" in unknown.err
