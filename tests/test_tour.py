"""The tour of the house in the documentation, held against runs of the commands that it follows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import PROJECT

_PAGE = PROJECT / "docs" / "how-it-works.md"
_EXAMPLE = PROJECT / "docs" / "examples" / "modeling_seal.py"
_TOLERANCE = 12
"""How far the number of modules may be from the one in the text before that has to be written anew."""
_TRACER = """
import json, sys
from pathlib import Path

root, *arguments = sys.argv[1:]
folders = (f"{root}/gclint/", f"{root}/rules/")
order = {}

def is_imported(frame):
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False

def note(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and name not in order and name.startswith(folders) and not is_imported(frame):
        order[name] = None

from gclint.cli.main import main

sys.argv = ["gclint", *arguments]
sys.setprofile(note)
try:
    main()
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    Path("order.json").write_text(json.dumps([name.removeprefix(f"{root}/") for name in order]))
"""


def _tour() -> str:
    text = _PAGE.read_text(encoding="utf-8")
    return text[text.index("## A tour:") :].split("\n## ", 1)[0]


def _named(text: str) -> list[str]:
    """Return the modules that a text names, by their paths in the checkout."""
    found = re.findall(r"`([a-z_/0-9]+\.py)`", text)
    return [each if each.startswith("rules/") else f"gclint/{each}" for each in found]


def _traced(folder: Path, *arguments: str) -> list[str]:
    """Return the modules whose functions a command runs, in the order in which they begin."""
    shutil.copy(_EXAMPLE, folder)
    (folder / "tracer.py").write_text(_TRACER, encoding="utf-8")
    command = [sys.executable, "tracer.py", str(PROJECT), *arguments, _EXAMPLE.name, "--no-cache"]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    found: list[str] = json.loads((folder / "order.json").read_text())
    return found


def test_what_the_tour_says_of_a_finding_is_what_runs_in_this_order(tmp_path: Path) -> None:
    table = _tour().split("With `--fix`,", 1)[0].split("finds it:", 1)[1]
    order = _traced(tmp_path, "check", "--jobs", "1", "--select", "GC003")
    named = _named(table)
    assert [each for each in named if each not in order] == []
    assert named == sorted(named, key=order.index)
    (said,) = re.findall(r"about (\d+) run for this finding", _tour())
    assert abs(int(said) - len(order)) <= _TOLERANCE, f"{len(order)} modules run"


def test_what_the_tour_says_of_a_fix_runs(tmp_path: Path) -> None:
    text = _tour().split("With `--fix`,", 1)[1].split("With `--fix --verify`", 1)[0]
    assert {*_named(text)} <= {*_traced(tmp_path, "check", "--jobs", "1", "--fix")}


@pytest.mark.torch
def test_what_the_tour_says_of_a_proof_runs(tmp_path: Path) -> None:
    text = _tour().split("With `--fix --verify`", 1)[1].split("In the worker,", 1)[0]
    run = {*_traced(tmp_path, "check", "--fix", "--verify")}
    assert {*_named(text)} <= run
    assert (tmp_path / _EXAMPLE.name).read_text() != _EXAMPLE.read_text()
    worker = re.findall(r"`(worker/[a-z_/]+(?:\.py|/))`", _tour())
    assert [each for each in worker if not (PROJECT / "gclint" / "verify" / each).exists()] == []
