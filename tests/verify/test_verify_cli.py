"""The command ``gclint verify``: what it runs, prints, writes and exits with; the worker is a stand-in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gclint.verify.results import Results
from tests.verify.command_line import MODEL, Gclint, failing, kept_results, names, passing, write

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")

_SUMMARY = "2.13.0, transformers 5.23.0, on cpu\n"


def test_what_passes_exits_with_0(gclint: Gclint) -> None:
    write("toy", passing("A", "B"))
    outcome = gclint("--device", "cpu")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.endswith(f"{_SUMMARY}2 classes passed, 0 failed, 0 not run.\n")


def test_what_fails_exits_with_1_and_says_what_to_do(gclint: Gclint) -> None:
    write("toy", passing("A") + failing("B"))
    outcome = gclint()
    assert outcome.status == 1
    # What only the run has seen is a finding too.
    assert outcome.out.startswith(
        "modeling_toy.py:7:5: error: GC003 the gradients of 8 parameters are lost. "
        "The call passes `x` by keyword. "
        "(confirmed by run)\n"
        "    no fix: this was seen in a run, and the text alone does not say how to repair it\n"
        "modeling_toy.py: B failed gradients (reentrant default): the gradients of 8 parameters are lost. "
        "The call passes `x` by keyword.\n"
        "    parameters: a, b, c, d, e, f and 2 more\n"
        "    at modeling_toy.py:7:1\n"
        "modeling_toy.py: 1 class passed\n"
    )
    assert outcome.out.endswith("1 class passed, 1 failed, 0 not run.\n")


def test_failures_of_one_cause_are_told_once_with_the_classes_that_have_it(gclint: Gclint) -> None:
    # Another class loses other numbers of gradients, by the same call; a third one by another call.
    write("toy", failing("A") + failing("B", lost=3) + failing("C", line=9))
    told = [
        line for line in gclint().out.splitlines() if " failed " in line or line.startswith("    classes")
    ]
    assert told == [
        "modeling_toy.py: A and 1 more failed gradients (reentrant default): the gradients of 8 parameters "
        "are lost. The call passes `x` by keyword.",
        "    classes: A, B",
        "modeling_toy.py: C failed gradients (reentrant default): the gradients of 8 parameters are lost. "
        "The call passes `x` by keyword.",
    ]


def test_paths_are_relative_where_that_is_shorter(gclint: Gclint, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("toy", failing("A")).absolute()
    assert "\n    at modeling_toy.py:7:1\n" in gclint(str(path)).out
    monkeypatch.chdir("/")
    assert f"\n    at {str(path)[1:]}:7:1\n" in gclint(str(path), "--results", str(path.with_name("r"))).out


def test_what_passed_is_named_on_request(gclint: Gclint) -> None:
    write("one", passing("A", "B"))
    write("two", passing("C"))
    assert gclint().out.splitlines()[:2] == [
        "modeling_one.py: 2 classes passed",
        "modeling_two.py: 1 class passed",
    ]
    assert gclint("-v").out.splitlines()[:2] == [
        "modeling_one.py: 2 classes passed: A, B",
        "modeling_two.py: 1 class passed: C",
    ]


_NOT_RUN = """class B:
    @staticmethod
    def run(watch, known): return replace(known, outcome="not run", category="inputs", reason="none found")
"""


def test_only_the_classes_that_are_named_are_run(gclint: Gclint) -> None:
    write("toy", passing("A") + failing("B"))
    write("other", passing("C"))
    outcome = gclint("--class", "A", "--output-format", "json")
    assert (outcome.status, names(outcome)) == (0, ["A"])
    assert names(gclint("--class", "C", "--class", "B", "--output-format", "json")) == ["C", "B"]
    outcome = gclint("--class", "Unusd")
    assert (outcome.status, outcome.out) == (2, "")
    assert "none of the files defines a class 'Unusd'; did you mean Unused?" in outcome.err


def test_what_is_not_run_is_told_and_fails_nothing(gclint: Gclint) -> None:
    write("toy", passing("A") + _NOT_RUN)
    outcome = gclint()
    assert outcome.status == 0
    assert "modeling_toy.py: B not run (inputs): none found" in outcome.out
    assert outcome.out.endswith("1 class passed, 0 failed, 1 not run (1 inputs).\n")


def test_a_defect_of_gclint_is_told_and_exits_with_2(gclint: Gclint) -> None:
    write("toy", passing("A") + "class B:\n    def run(watch, known): raise ValueError('a bug in gclint')\n")
    outcome = gclint()
    assert outcome.status == 2
    assert "modeling_toy.py: B not run (verifier): there was ValueError: a bug in gclint" in outcome.out
    assert outcome.out.endswith("1 class passed, 0 failed, 1 not run (1 verifier).\n")


@pytest.mark.parametrize(
    "text", ["", "class B:\n    def run(watch, known): raise ValueError\n", "import no_such_library\n"]
)
def test_nothing_that_can_be_run_exits_with_2(gclint: Gclint, text: str) -> None:
    write("toy", text)
    assert gclint().status == 2


def test_a_file_without_classes_is_told(gclint: Gclint) -> None:
    write("toy", passing("A"))
    path = write("empty", "")
    outcome = gclint()
    assert outcome.status == 0
    line = "1 file has no model class that supports checkpointing: modeling_empty.py.\n"
    assert line in outcome.out
    assert gclint("--output-format", "json").json()["empty"] == [str(path.absolute())]


def test_a_file_that_cannot_be_imported_is_told_and_exits_with_2(gclint: Gclint) -> None:
    write("broken", "import no_such_library\n")
    write("toy", passing("A"))
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
        (["--shard", "3/2"], "'3/2' is not of the form I/N"),
        (["--shard", "0/2"], "'0/2' is not of the form I/N"),
        (["--shard", "half"], "'half' is not of the form I/N"),
        (["--device", "tpu"], "'tpu' is not auto, cpu, cuda or cuda:N"),
        (["--jobs", "0"], "--jobs"),
        (["--python", "no-such-python"], "no-such-python cannot be started: there is none in PATH"),
        (["--model", "bert", "--python", "no-such-python"], "no-such-python cannot be started"),
        (["no_such_file.py"], "no_such_file.py: error: no such file or folder"),
        (["merge", "no_such_file.jsonl"], "No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_told_without_a_traceback(
    gclint: Gclint, arguments: list[str], message: str
) -> None:
    write("toy", passing("A"))
    outcome = gclint(*arguments)
    assert outcome.status == 2
    assert message in outcome.err + outcome.out
    assert "Traceback" not in outcome.err + outcome.out


def test_an_interpreter_that_is_none_is_told(gclint: Gclint, tmp_path: Path) -> None:
    write("toy", passing("A"))
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho nonsense is wrong >&2\nexit 3\n")
    program.chmod(0o755)
    outcome = gclint("--python", str(program))
    assert outcome.status == 2
    assert "ended: nonsense is wrong" in outcome.out


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exec cat", "its exit status is 0, and it has not answered: is it a Python interpreter?"),
        ("exec sleep 0", "its exit status is 0, and it has not answered: is it a Python interpreter?"),
        ("kill -9 $$", "ended: it was killed (SIGKILL)"),
        ("yes nonsense", "cannot be understood (not a message of the verifier: "),
        ("head -c 100000 /dev/zero", "is it a Python interpreter?"),
        ('echo \'{"kind":"Finished"}\'; echo x', ""),
    ],
)
def test_whatever_an_interpreter_answers_is_told_in_one_line(
    gclint: Gclint, tmp_path: Path, script: str, message: str
) -> None:
    write("toy", passing("A"))
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script} " + ('"$1"\n' if script == "exec cat" else "\n"))
    program.chmod(0o755)
    outcome = gclint("--python", str(program))
    assert outcome.status == 2
    assert message in outcome.out
    assert "Traceback" not in outcome.out + outcome.err


def test_what_an_interpreter_prints_when_it_starts_is_passed_over(gclint: Gclint, tmp_path: Path) -> None:
    write("toy", passing("A"))
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\necho welcome\necho {{}}\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    assert gclint("--python", str(program)).status == 0


def test_a_defect_of_gclint_ends_the_run_in_one_line(gclint: Gclint, monkeypatch: pytest.MonkeyPatch) -> None:
    write("toy", passing("A"))

    def fail(*_: object, **_about: object) -> None:
        raise KeyError("toy")

    monkeypatch.setattr(Results, "add", fail)
    outcome = gclint()
    assert outcome.status == 2
    assert outcome.err.startswith("Error: this is a bug in gclint: KeyError: 'toy' (")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"x = 1\nif x\n",
            "modeling_toy.py:2:5: error: it is not imported: this is not Python (expec",
        ),
        (b"x = 1\n", "modeling_toy.py: error: it is not imported: no class in its text derives from"),
        (
            b"# \xff\nclass X(PreTrainedModel): ...\n",
            "modeling_toy.py:1:1: error: invalid or missing encoding",
        ),
    ],
)
def test_a_file_that_is_no_model_is_told_with_the_reason(gclint: Gclint, data: bytes, message: str) -> None:
    Path("modeling_toy.py").write_bytes(data)
    outcome = gclint("modeling_toy.py")
    assert outcome.status == 2
    assert outcome.err.startswith(message)


def test_modular_files_are_not_what_runs(gclint: Gclint) -> None:
    write("toy", passing("A"))
    Path("modular_toy.py").write_text("import no_such_library\n")
    assert gclint().status == 0
    outcome = gclint("modular_toy.py", "modeling_toy.py")
    assert outcome.status == 2
    assert (
        outcome.err
        == "modular_toy.py: error: a modular file is not run itself; verify modeling_toy.py instead\n"
    )


def test_what_other_libraries_run_is_left_out_of_folders(gclint: Gclint) -> None:
    write("toy", passing("A"))
    for name in ("tf_toy", "flax_toy"):
        write(name, "import no_such_library\n")
    assert gclint().status == 0
    assert gclint("modeling_tf_toy.py").status == 2


def test_failures_that_differ_only_in_how_they_came_are_told_once(gclint: Gclint) -> None:
    write(
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
    assert lines[0] == (
        "modeling_toy.py: A failed gradients (non-reentrant default, reentrant default, "
        "non-reentrant cache, reentrant cache): they differ"
    )
    assert len(lines) == 3


def test_json_holds_everything(gclint: Gclint) -> None:
    path = write("toy", passing("A") + failing("B"))
    outcome = gclint("--output-format", "json")
    found = outcome.json()
    assert outcome.status == found["exit_status"] == 1
    assert found["summary"] == {"passed": 1, "failed": 1, "not_run": {}, "not_covered": 0, "unreached": 0}
    assert found["environments"][0]["transformers"] == "5.23.0"
    passed, failed = found["results"]
    assert (passed["name"], passed["outcome"], passed["source"]) == ("A", "passed", str(path.absolute()))
    place = {"path": str(path.absolute()), "line": 7, "end_line": 8, "columns": []}
    assert failed["failures"][0]["places"] == [place]


def test_the_default_results_are_kept_outside_of_the_project(gclint: Gclint) -> None:
    write("toy", passing("A"))
    gclint()
    assert [path.name for path in Path().iterdir()] == ["modeling_toy.py"]
    assert kept_results().is_file()
    gclint("--results", "elsewhere/results.jsonl")
    assert [path.name for path in Path("elsewhere").iterdir()] == ["results.jsonl"]


def test_a_script_is_written_for_each_class_that_failed(gclint: Gclint) -> None:
    write("toy", passing("A") + failing("B"))
    outcome = gclint("--write-repro", "scripts")
    assert outcome.err == "scripts/modeling_toy_B.py reproduces a failure.\n"
    text = Path("scripts/modeling_toy_B.py").read_text()
    compile(text, "modeling_toy_B.py", "exec")
    assert "CONFIG = dict(width=8)" in text
    assert "input_ids=torch.tensor([[1]])" in text
    assert "train(use_reentrant=True)" in text


def test_a_tree_beside_files_without_one_has_a_worker_of_its_own(gclint: Gclint) -> None:
    folder = Path("src/toys")
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "modeling_tree.py").write_text(
        "from toys import __name__ as package\n" + passing("InTree") + MODEL
    )
    write("toy", passing("A"))
    outcome = gclint("--output-format", "json")
    assert (outcome.status, names(outcome)) == (0, ["A", "InTree"])
    trees = {environment["tree"] for environment in outcome.json()["environments"]}
    assert trees == {None, str(folder.parent.absolute())}


def test_a_model_is_found_in_the_interpreter(
    gclint: Gclint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "site" / "transformers" / "models"
    for name in ("toy", "toy_two", "other"):
        (models / name).mkdir(parents=True)
        (models / name / f"modeling_{name}.py").write_text(passing(f"Class_{name}"))
    for folder in (models.parent, models, *models.iterdir()):
        if folder.is_dir():
            (folder / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", f"{models.parent.parent}{os.pathsep}{os.environ['PYTHONPATH']}")
    assert names(gclint("--model", "toy-two", "--output-format", "json")) == ["Class_toy_two"]
    both = gclint("--model", "toy*", "--model", "toy", "--output-format", "json")
    assert names(both) == ["Class_toy", "Class_toy_two"]
    assert names(gclint("--model", "[m-p]*", "--output-format", "json")) == ["Class_other"]
    unknown = gclint("--model", "toys")
    assert unknown.status == 2
    assert "there is no model 'toys'" in unknown.err
    assert "did you mean toy" in unknown.err
