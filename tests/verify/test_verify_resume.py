"""Runs in parts: shards that are merged, and runs that go on after they were interrupted."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gclint.code.paths import shown
from tests.verify import stand_in
from tests.verify.command_line import Gclint, failing, kept_results, names, passing, write

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


def test_shards_are_merged_into_the_whole(gclint: Gclint) -> None:
    for name in "abcde":
        write(name, failing("E") if name == "e" else passing(name.upper()))
    parts = [
        gclint("--shard", f"{n}/3", "--results", f"{n}.jsonl", "--output-format", "json") for n in (1, 2, 3)
    ]
    assert sorted(name for part in parts for name in names(part)) == ["A", "B", "C", "D", "E"]
    merged = gclint("merge", "1.jsonl", "2.jsonl", "3.jsonl", "--output-format", "json")
    assert (merged.status, names(merged)) == (1, ["A", "B", "C", "D", "E"])
    whole = gclint("--output-format", "json").json()
    assert _without_times(merged.json()) == _without_times(whole)
    missing = gclint("merge", "1.jsonl", "3.jsonl")
    assert missing.status == 2
    assert "the results of 2/3 are missing" in missing.err


def _without_times(found: Any) -> Any:
    return {**found, "results": [{**result, "seconds": 0} for result in found["results"]]}


def test_a_class_with_two_outcomes_is_not_merged(gclint: Gclint) -> None:
    done = Path("1.jsonl.done").absolute()
    check = f"if os.path.exists({str(done)!r}): return\n        place ="
    write("toy", failing("A").replace("place =", check))
    path = Path("modeling_toy.py")
    path.write_text("import os\n" + path.read_text())
    gclint("--results", "2.jsonl")
    done.touch()
    gclint("--results", "1.jsonl")
    outcome = gclint("merge", "1.jsonl", "2.jsonl")
    assert outcome.status == 2
    assert "has passed in 1.jsonl, and failed in 2.jsonl" in outcome.err


def test_shards_of_two_environments_are_not_merged(gclint: Gclint, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        write(name, passing(name.upper()))
    gclint("--shard", "1/2", "--results", "1.jsonl")
    monkeypatch.setenv(stand_in.ENVIRONMENT_VARIABLE, "4.57.6")
    gclint("--shard", "2/2", "--results", "2.jsonl")
    outcome = gclint("merge", "1.jsonl", "2.jsonl")
    assert outcome.status == 2
    assert "2.jsonl is from another environment" in outcome.err


def test_shards_of_two_runs_are_not_merged(gclint: Gclint) -> None:
    for name in "ab":
        write(name, passing(name.upper()))
    gclint("--shard", "1/2", "--results", "1.jsonl")
    gclint("--shard", "2/2", "--results", "2.jsonl", "--time-limit", "7")
    outcome = gclint("merge", "1.jsonl", "2.jsonl")
    assert outcome.status == 2
    assert "2.jsonl and 1.jsonl are not from the same run: seconds is 7.0 instead of 120.0" in outcome.err
    write("c", passing("C"))
    gclint("--shard", "2/2", "--results", "2.jsonl", "--jobs", "1")
    outcome = gclint("merge", "1.jsonl", "2.jsonl")
    assert "the results of 2/2 of 1.jsonl are missing" in outcome.err
    # What a run goes on with has the files of the later run.
    gclint("--shard", "1/2", "--results", "1.jsonl", "--resume")
    assert gclint("merge", "1.jsonl", "2.jsonl").status == 0


def test_runs_of_different_models_are_merged(gclint: Gclint) -> None:
    for name in "abc":
        write(name, passing(name.upper()))
    gclint("modeling_a.py", "--results", "1.jsonl")
    gclint("modeling_b.py", "modeling_c.py", "--class", "C", "--results", "2.jsonl")
    assert names(gclint("merge", "1.jsonl", "2.jsonl", "--output-format", "json")) == ["A", "C"]
    write("a", passing("A") + "# changed\n")
    gclint("modeling_a.py", "modeling_b.py", "--results", "3.jsonl")
    outcome = gclint("merge", "1.jsonl", "3.jsonl")
    assert outcome.status == 2
    assert "modeling_a.py has changed before 3.jsonl was written: run it again" in outcome.err


_COUNTED = """
class {name}:
    @staticmethod
    def run(watch, known):
        import os
        # Models run in an empty folder.
        with open(os.path.join(os.path.dirname(__file__), "runs"), "a") as file:
            file.write("{name}")
"""


def test_resuming_runs_only_what_is_new_or_has_changed(gclint: Gclint) -> None:
    for name in "abc":
        write(name, _COUNTED.format(name=name.upper()))
    gclint("modeling_a.py", "modeling_b.py", "--jobs", "1")
    assert Path("runs").read_text() == "AB"
    write("b", _COUNTED.format(name="B") + "# changed\n")
    outcome = gclint("--resume", "--output-format", "json", "--jobs", "1")
    assert (outcome.status, names(outcome)) == (0, ["A", "B", "C"])
    assert Path("runs").read_text() == "ABBC"
    assert names(gclint("--resume", "--output-format", "json")) == ["A", "B", "C"]
    assert Path("runs").read_text() == "ABBC"
    merged = gclint("merge", str(kept_results()), "--output-format", "json")
    assert names(merged) == ["A", "B", "C"]


def test_a_configuration_that_has_changed_runs_its_models_again(gclint: Gclint) -> None:
    write("toy", _COUNTED.format(name="A"))
    gclint()
    Path("configuration_toy.py").touch()
    gclint("--resume")
    assert Path("runs").read_text() == "AA"


def test_a_class_that_is_gone_is_gone_from_resumed_results(gclint: Gclint) -> None:
    write("toy", passing("A", "B"))
    gclint()
    write("toy", passing("B", "C"))
    assert names(gclint("--resume", "--output-format", "json")) == ["B", "C"]
    assert names(gclint("merge", str(kept_results()), "--output-format", "json")) == ["B", "C"]


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_that_was_cut_off_is_run_again(gclint: Gclint, cut: int) -> None:
    write("toy", _COUNTED.format(name="A") + _COUNTED.format(name="B"))
    gclint()
    results = kept_results()
    # The last line says that the run has ended, and the one before it is about B.
    whole = results.read_bytes().removesuffix(b'{"finished":true}\n')
    results.write_bytes(whole[:-cut])
    merged = gclint("merge", str(results))
    assert merged.status == 2
    assert "a run that has not finished" in merged.err
    assert names(gclint("--resume", "--output-format", "json")) == ["A", "B"]
    assert Path("runs").read_text() == "ABB"
    assert names(gclint("merge", str(results), "--output-format", "json")) == ["A", "B"]


def test_resuming_in_another_environment_is_refused(gclint: Gclint, monkeypatch: pytest.MonkeyPatch) -> None:
    write("toy", passing("A"))
    gclint()
    monkeypatch.setenv(stand_in.ENVIRONMENT_VARIABLE, "4.57.6")
    outcome = gclint("--resume")
    assert outcome.status == 2
    assert "another environment: transformers was 5.23.0, and is 4.57.6" in outcome.err


def test_resuming_with_other_settings_is_refused(gclint: Gclint) -> None:
    write("toy", passing("A"))
    gclint()
    outcome = gclint("--resume", "--device", "cpu")
    assert outcome.status == 2
    assert "results of a different run: device is auto instead of cpu" in outcome.err
    assert gclint("--resume", "--jobs", "1").status == 0


def test_a_file_that_is_written_is_left_alone_by_a_second_run(gclint: Gclint) -> None:
    write("toy", passing("A"))
    gclint()
    written = kept_results().read_bytes()
    with kept_results().open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for more in ((), ("--resume",)):
            outcome = gclint(*more)
            assert outcome.status == 2
            assert f"another run is writing {shown(kept_results())}; wait for it to finish" in outcome.err
    assert kept_results().read_bytes() == written
    # Whoever held it has died: nothing is left to be cleared away.
    assert gclint("--resume").status == 0


def test_a_full_disk_is_told_with_the_file_and_what_is_there_can_be_used(gclint: Gclint) -> None:
    for name in "abc":
        write(name, passing(name.upper()))
    gclint("modeling_a.py", "--results", "r.jsonl")
    size = Path("r.jsonl").stat().st_size + 700
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        outcome = gclint("--results", "r.jsonl", "--resume")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert outcome.status == 2
    assert outcome.err == (
        "Error: r.jsonl cannot be written: File too large; it has the results so far, "
        "and --resume continues with them\n"
    )
    assert Path("r.jsonl").read_bytes().endswith(b"}\n")
    assert names(gclint("--results", "r.jsonl", "--resume", "--output-format", "json")) == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (os.mkfifo, "cannot be written to other.jsonl: this is not a regular file"),
        (lambda path: path.write_text("import torch\n"), "other.jsonl is not a file of results"),
        (
            lambda path: path.symlink_to("/no/such/folder/file"),
            "cannot be written to other.jsonl: this is a link, which is not followed; choose another",
        ),
    ],
)
def test_a_file_that_results_cannot_be_written_to_is_told(
    gclint: Gclint, make: Callable[[Path], None], message: str
) -> None:
    write("toy", passing("A"))
    make(Path("other.jsonl"))
    outcome = gclint("--results", "other.jsonl")
    assert outcome.status == 2
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_a_class_that_the_system_has_killed_is_run_again(gclint: Gclint) -> None:
    spared = Path("spared").absolute()
    text = (
        _COUNTED.format(name="A")
        + f"""
class B:
    @staticmethod
    def run(watch, known):
        import os, signal
        if not os.path.exists({str(spared)!r}):
            os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    write("toy", text)
    outcome = gclint()
    assert outcome.status == 2
    assert "modeling_toy.py: B not run (killed): there was a signal from outside (SIGKILL" in outcome.out
    spared.touch()
    outcome = gclint("--resume", "--output-format", "json")
    assert (outcome.status, names(outcome)) == (0, ["A", "B"])
    assert Path("runs").read_text() == "A"


@pytest.mark.parametrize("content", ['{"gclint":"0.0.1","shard":1,"shards":1}\n', "nonsense\n", "{"])
def test_resuming_with_something_else_is_refused(gclint: Gclint, content: str) -> None:
    write("toy", passing("A"))
    Path("other.jsonl").write_text(content)
    outcome = gclint("--resume", "--results", "other.jsonl")
    assert outcome.status == 2
    assert "other.jsonl" in outcome.err
    assert Path("other.jsonl").read_text() == content


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_kills_the_worker_and_keeps_and_prints_the_results(
    number: signal.Signals, gclint: Gclint
) -> None:
    write("a", passing("A"))
    # Models run in an empty folder.
    lock_file, survived = Path("lock").absolute(), Path("survived").absolute()
    write(
        "b",
        f"""
import fcntl, os, signal

class B:
    @staticmethod
    def run(watch, known):
        with open({str(lock_file)!r}, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.kill({os.getpid()}, {number:d})
            signal.sigtimedwait([], 20)
            open({str(survived)!r}, "w").close()
""",
    )
    # What a shell starts in the background ignores it.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        outcome = gclint("--jobs", "1", "--output-format", "json")
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert (outcome.status, names(outcome)) == (128 + number, ["A"])
    assert outcome.json()["problem"] == (
        f"the run was interrupted; the results so far are in {shown(kept_results())}, "
        "and --resume continues with them"
    )
    with lock_file.open("w") as lock:
        # Its holder lets go of it when it ends.
        fcntl.flock(lock, fcntl.LOCK_EX)
    assert not survived.exists()
    write("b", passing("B"))
    assert names(gclint("--resume", "--output-format", "json")) == ["A", "B"]


def test_settings_that_cannot_be_used_are_told_without_a_traceback(gclint: Gclint) -> None:
    write("toy", passing("A"))
    assert gclint("--results", "a.jsonl").status == 0
    Path("pyproject.toml").write_text("[tool.gclint]\nselect = 3\n")
    outcome = gclint("merge", "a.jsonl")
    assert outcome.status == 2
    assert "pyproject.toml" in outcome.err
