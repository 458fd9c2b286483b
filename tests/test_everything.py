"""What ``python3 -m tests.everything`` runs, and what it says of the time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests import everything
from tests.conftest import drawn, shared
from tests.ecosystem.demo import balance
from tests.environment import PROJECT, EnvironmentUnavailable
from tests.everything import expected, first, full, minutes, nightly


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """Let steps pass at once, except for mypy; return the commands that were run."""
    commands: list[Sequence[str]] = []

    def passed(command: Sequence[str], _seconds: float | None) -> int:
        commands.append(command[2:])
        return int("mypy" in command)

    monkeypatch.setattr(everything, "fresh_environment", lambda *_arguments: Path())
    monkeypatch.setattr(everything, "exit_status", passed)
    return commands


_RINGS = {"first": first(), "full": full(), "nightly": nightly(date(2026, 11, 23))}


def _marks(ring: str) -> list[str]:
    """Return which tests each run of pytest in a ring takes, beside those that plain ``pytest`` takes."""
    commands = [step.command for step in _RINGS[ring] if step.command[:1] == ("pytest",)]
    return [command[command.index("-m") + 1] for command in commands if "-m" in command]


def test_each_ring_begins_with_what_is_quick_and_runs_every_quick_test() -> None:
    quick = _RINGS["first"][:-2]
    assert [step.command[:1] for step in quick] == [(), ("ruff",), ("ruff",), ("mypy",), ("pytest",)]
    assert "-m" not in quick[-1].command
    for ring in _RINGS.values():
        assert ring[: len(quick)] == quick


def test_all_other_tests_are_in_the_second_ring_or_are_drawn_each_night() -> None:
    others = "(browser or precommit or ray or releases or slow or torch or wheel)"
    assert _sorted(_marks("full")) == [
        f"{others} and not nightly and not sweep",
        f"{others} and not nightly and sweep",
    ]
    assert _sorted(_marks("nightly")) == [f"{others} and not sweep", "sweep"]
    assert _marks("first") == ["first"]


def _sorted(marks: Iterable[str]) -> list[str]:
    """Return expressions with the marks in brackets in the order of the alphabet."""
    return [
        re.sub(r"\(([^)]*)\)", lambda found: f"({' or '.join(sorted(found[1].split(' or ')))})", each)
        for each in marks
    ]


def test_another_night_draws_other_models_and_the_same_mutants() -> None:
    def seeds(day: date) -> list[str]:
        commands = [step.command for step in nightly(day)]
        return [command[command.index("--seed") + 1] for command in commands if "--seed" in command]

    assert len(seeds(date(2026, 11, 23))) == 1
    assert seeds(date(2026, 11, 23)) != seeds(date(2026, 11, 24))
    assert nightly(date(2026, 11, 23)) == nightly(date(2026, 11, 23))
    # Only those of one seed have reasons where they live.
    (mutants,) = (step.command for step in nightly(date(2026, 11, 23)) if "tests.mutants" in step.command)
    assert "--seed" not in mutants


@pytest.mark.parametrize(
    ("own", "first", "full", "expected"),
    [
        (set(), 10, 30, {"slow": 85, "nightly": 65}),
        (set(), 10, None, {"slow": 85}),
        ({"torch"}, 5, 30, {"first": 5, "nightly": 65}),
        ({"torch"}, None, 30, {"nightly": 65}),
        ({"slow"}, None, 200, {}),
        ({"parametrize"}, None, None, {}),
    ],
)
def test_so_many_cases_are_drawn(
    own: set[str], first: int | None, full: int | None, expected: dict[str, int]
) -> None:
    cases = {f"a.py::test_many[{number}]": own for number in range(95)}
    marks = list(drawn(cases, first=first, full=full))
    assert Counter(mark for _, mark in marks) == expected
    assert set(marks) == set(drawn(dict(reversed(cases.items())), first=first, full=full))
    # What is in a ring is in those that come after it.
    by_mark = {mark: {case for case, each in marks if each == mark} for mark in ("first", "slow", "nightly")}
    assert not by_mark["first"] & by_mark["nightly"]
    assert by_mark["nightly"] <= by_mark["slow"] or "slow" not in expected
    # Not those at the beginning, which are often of one kind.
    left_out = by_mark["nightly"] | by_mark["slow"]
    assert not left_out or left_out & set(list(cases)[:10])


def test_files_share_a_process_if_they_share_what_is_made_once(tmp_path: Path) -> None:
    texts = {
        "alone": "def test_a(): pass",
        "module": '@pytest.fixture(scope="module")',
        "release": "found = reported(tree)",
        "repair": "result = repaired(version)",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = {name: shared(tmp_path / name) for name in texts}
    assert found["alone"] == ""
    assert found["release"] == found["repair"] != found["module"] != ""


def test_the_test_command_of_the_readme_is_what_continuous_integration_runs() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    commands = readme.partition("Two commands do everything")[2].split("```")[1].splitlines()[1:]
    _, second = (line.partition("#")[0].strip() for line in commands)
    script = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    assert script.splitlines()[-1] == f"exec {second} --full"


def test_what_failed_is_named_and_the_rest_is_run(
    run: list[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert everything.main([]) == 1
    assert [command[0] for command in run] == ["ruff", "ruff", "mypy", "pytest", "tests.verdicts", "pytest"]
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    total = minutes(expected(first()))
    assert lines[0] == f"== 7 steps, {total} in all, as measured on two cores"
    assert lines[1].startswith(f"== 1 of 7, {total} left: install gclint")
    assert lines[-2].startswith(
        f"== 7 of 7, {minutes(first()[-1].seconds)} left: {first()[-1].purpose}: pytest"
    )
    assert lines[-1] == "== failed: check the types: mypy (in less than a minute)"


def test_what_takes_too_long_for_continuous_integration_is_stopped_and_named(
    run: list[Sequence[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float | None] = []

    def hang(command: Sequence[str], left: float | None) -> int:
        asked.append(left)
        if "ruff" in command and left is not None:
            raise subprocess.TimeoutExpired(command, left)
        return 0

    monkeypatch.setattr(everything, "exit_status", hang)
    assert everything.main(["--full"]) == 1
    out = capsys.readouterr().out
    assert "== stopped: all steps together have taken about 80 minutes\n" in out
    assert "== failed: lint: ruff check .; look at the format: ruff format --check . (" in out
    assert all(each is not None and 0 < each <= 80 * 60 for each in asked)
    asked.clear()
    assert everything.main([]) == 0
    assert set(asked) == {None}


@pytest.mark.parametrize("at_first", [signal.default_int_handler, signal.SIG_IGN])
def test_tests_that_are_stopped_say_first_what_has_failed(
    at_first: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    signal.signal(signal.SIGINT, at_first)
    path = tmp_path / "test_two.py"
    path.write_text(
        "import signal\n\n\ndef test_wrong():\n    assert 2 == 3\n\n\ndef test_long():\n    signal.pause()\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(path)]
    said = ""
    for seconds in (3, 9, 81):  # A busy machine has not begun yet.
        if "assert 2 == 3" not in said:
            with pytest.raises(subprocess.TimeoutExpired):
                everything.exit_status(command, seconds)
            said = capfd.readouterr().out
    assert "assert 2 == 3" in said


def test_nothing_is_run_without_an_environment(
    run: list[Sequence[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> Path:
        raise EnvironmentUnavailable("cannot install it")

    monkeypatch.setattr(everything, "fresh_environment", refuse)
    assert everything.main([]) == 1
    assert run == []
    assert "== cannot install it\n" in capsys.readouterr().out


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
    before = "    24  GC003  keyword-activation\nFound 92 findings: 92 errors (65 fixable with --fix).\n"
    after = "     3  GC003  keyword-activation\nFixed 78 findings; 14 left: 14 errors (none fixable).\n"
    expected = "of 92 findings 78 were fixed, and 14 are left"
    assert balance(before, after) == expected
    assert balance("Found 1 finding (1 fixable).", "Fixed 1 finding; none left in 1 file.").endswith(
        "0 are left"
    )
