"""What ``python3 -m tests.everything`` runs, and what it says of the time."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import everything
from tests.conftest import sampled
from tests.ecosystem.demo import balance
from tests.environment import PROJECT, EnvironmentUnavailable
from tests.everything import Step, Times, minutes, steps


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Let steps pass at once, except for mypy; return the commands that were run."""
    commands: list[Sequence[str]] = []

    def passed(command: Sequence[str], **_options: object) -> subprocess.CompletedProcess[bytes]:
        commands.append(command[2:])
        return subprocess.CompletedProcess(command, int("mypy" in command))

    monkeypatch.setattr(everything, "_MEMORY", tmp_path / "cache" / "everything.json")
    monkeypatch.setattr(everything, "fresh_environment", lambda *_arguments: Path())
    monkeypatch.setattr(subprocess, "run", passed)
    return commands


def test_every_test_has_a_share_of_the_sample_which_is_the_same_each_time() -> None:
    cases = [*(f"a.py::test_many[{number}]" for number in range(95)), "a.py::test_one", "b.py::test_one"]
    taken = list(sampled(cases, 10))
    assert set(taken) < set(cases)
    assert len(taken) == 10 + 1 + 1
    assert set(sampled(reversed(cases), 10)) == set(taken)
    # Not those at the beginning, which are often the same kind.
    assert not set(taken) <= set(cases[:20]) | {"a.py::test_one", "b.py::test_one"}
    assert sorted(sampled(cases, 1)) == sorted(cases)


def test_all_tests_are_quick_ones_or_others_or_the_sweep() -> None:
    quick, others, sweep = (step.command for step in steps(full=True)[-3:])
    assert "-m" not in quick
    assert others[3] == "(slow or releases or torch or wheel or precommit or browser or ray) and not sweep"
    assert sweep[-2:] == ("-m", "sweep")
    for whole, sample in zip(steps(full=True), steps(full=False), strict=True):
        is_sampled = "sweep" in whole.name
        assert (whole.command != sample.command) == is_sampled
        assert ("--one-in" in sample.command) == is_sampled
        assert "--one-in" not in whole.command


def test_continuous_integration_runs_the_second_command_of_the_readme() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    commands = readme.partition("Two commands do everything")[2].split("```")[1].splitlines()[1:]
    _, second = (line.partition("#")[0].strip() for line in commands)
    script = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    assert script.splitlines()[-1] == f"exec {second}"


def test_what_failed_is_named_and_the_rest_is_run(
    run: list[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert everything.main([]) == 1
    assert [command[0] for command in run] == ["ruff", "ruff", "mypy", "pytest", "pytest", "pytest"]
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    total = minutes(sum(step.seconds for step in steps(full=False)))
    assert lines[0] == f"== 7 steps, {total} in all, as measured on two cores"
    assert lines[1].startswith(f"== 1 of 7, {total} left: install gclint")
    assert lines[-2].startswith("== 7 of 7, about 1 minute left: pytest -q -m sweep")
    assert lines[-1] == "== failed: mypy (in less than a minute)"


def test_it_takes_as_long_as_the_last_time(
    run: list[Sequence[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    everything.main([])
    capsys.readouterr()
    everything.main([])
    first = capsys.readouterr().out.splitlines()[1]
    # What failed is not remembered.
    assert first == "== 7 steps, less than a minute in all, as measured on two cores, and here the last time"
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0))
    assert everything.main(["--full"]) == 0
    assert "as measured on two cores, and here the last time" in capsys.readouterr().out
    assert everything.main(["--full"]) == 0
    out = capsys.readouterr().out
    assert "== 7 steps, less than a minute in all, as the last time here\n" in out
    assert out.endswith("== everything passed (in less than a minute)\n")


def test_nothing_is_run_without_an_environment(
    run: list[Sequence[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> Path:
        raise EnvironmentUnavailable("cannot install it")

    monkeypatch.setattr(everything, "fresh_environment", refuse)
    assert everything.main([]) == 1
    assert run == []
    assert "== cannot install it\n" in capsys.readouterr().out


@pytest.mark.parametrize("memory", ["", "[]", "null", '{"mypy": "long"}', '{"mypy": null}', "\0"])
def test_a_damaged_memory_is_none(memory: str, tmp_path: Path) -> None:
    path = tmp_path / "everything.json"
    path.write_text(memory, encoding="utf-8")
    times = Times(path)
    assert times.expected([Step(("mypy",), 45)]) == 45
    times.learn(Step(("mypy",), 45), 20)
    assert Times(path).expected([Step(("mypy",), 45)]) == 20


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (10, "less than a minute"),
        (60, "about 1 minute"),
        (100, "about 2 minutes"),
        (1500, "about 25 minutes"),
    ],
)
def test_times_are_said_in_words(seconds: float, words: str) -> None:
    assert minutes(seconds) == words


def test_the_numbers_of_the_demonstration_add_up() -> None:
    before = "    24  GC001  missing-checkpointing-layer\nFound 92 findings (65 fixable with --fix).\n"
    after = "     3  GC001  missing-checkpointing-layer\nFixed 74 findings; 14 left (none fixable).\n"
    expected = "of 92 findings 74 were fixed, 4 went with the fixes of others, and 14 are left"
    assert balance(before, after) == expected
    assert balance("Found 1 finding (1 fixable).", "Fixed 1 finding; none left in 1 file.").endswith(
        "0 are left"
    )
