"""The option ``--report`` of ``gclint verify`` and ``gclint check``; the worker is a stand-in."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from gclint.cli import output
from tests.verify.command_line import Gclint, failing, kept_results, passing, write

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


def test_a_run_writes_a_page(gclint: Gclint) -> None:
    write("toy", passing("A") + failing("B"))
    outcome = gclint("--device", "cpu", "--report", "report.html")
    assert (outcome.status, outcome.err) == (1, "Open report.html in a browser to see the report.\n")
    text = Path("report.html").read_text()
    assert "the gradients of 8 parameters are lost" in text
    assert "gclint verify --device cpu --class B modeling_toy.py" in text
    assert "<dd>gclint verify --device cpu --report report.html</dd>" in text


def test_merged_results_make_a_page(gclint: Gclint) -> None:
    write("toy", passing("A"))
    gclint("--results", "r.jsonl")
    assert gclint("merge", "r.jsonl", "--report", "report.html").status == 0
    assert "1 class: 1 passed" in Path("report.html").read_text()


@pytest.mark.parametrize("command", ["run", "merge"])
def test_a_missing_library_is_told_before_anything_is_run(
    command: str, gclint: Gclint, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("toy", passing("A"))
    monkeypatch.setattr(output, "find_spec", lambda name: None if name == "jinja2" else find_spec(name))
    outcome = gclint(command, "." if command == "run" else "r.jsonl", "--report", "report.html")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == ("Error: --report needs jinja2; install it with: pip install 'gclint[report]'\n")
    assert not kept_results().exists()


@pytest.mark.parametrize("path", ["missing/report.html", "modeling_toy.py/report.html"])
def test_a_path_that_cannot_be_written_is_told_before_anything_is_run(path: str, gclint: Gclint) -> None:
    write("toy", passing("A"))
    outcome = gclint("modeling_toy.py", "--report", path, command=("verify",))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"Error: --report: {path} cannot be written: ")
    assert not kept_results().exists()


def test_what_is_there_stays_where_the_page_cannot_be_written_after_all(
    gclint: Gclint, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("toy", passing("A"))
    Path("report.html").write_text("old")

    def fail(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gclint.write.disk.os.replace", fail)
    outcome = gclint("--report", "report.html")
    assert outcome.status == 2
    assert "No space left on device" in outcome.err
    assert Path("report.html").read_text() == "old"
    assert list(Path().glob(".report*")) == []


def test_a_check_without_runs_has_no_page(gclint: Gclint) -> None:
    outcome = gclint("--report", "report.html", command=("check",))
    assert outcome.status == 2
    assert "--report requires --verify" in outcome.err
