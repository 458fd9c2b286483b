"""What only a run can see is reported and repaired: the toys of ``fixtures/seen``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gclint.code.project import Project
from gclint.rule import all_rules
from gclint.run.check import check
from gclint.settings import Settings

_FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "seen"
_NAMES = sorted(each.name for each in _FOLDER.iterdir())
_SAYS = "# seen: "
_UNSAFE = "unsafe"


def _said(name: str) -> list[str]:
    """Return the codes of the findings of a toy, and ``unsafe`` where the repair is that."""
    first, _, _ = (_FOLDER / name / "modeling_toy.py").read_text().partition("\n")
    return first.removeprefix(_SAYS).split(", ")


def _gclint(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "gclint", *arguments, "--verify", "--device", "cpu"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", _NAMES)
def test_the_text_alone_does_not_say_it(name: str) -> None:
    project = Project(Settings(), [_FOLDER / name / "modeling_toy.py"])
    assert check(project, all_rules()).findings == ()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return where the toys were repaired, and what was printed."""
    folder = tmp_path_factory.mktemp("toys")
    shutil.copytree(_FOLDER, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.fixed.py"))
    return folder, _gclint(folder, "--fix", ".")


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in _NAMES if _UNSAFE not in _said(name)])
def test_what_was_seen_is_repaired_once_it_is_proven(name: str, tree: tuple[Path, str]) -> None:
    folder, out = tree
    assert f"{name}/modeling_toy.py: repaired; proven by ToyModel in " in out
    assert all(f"    {code} of ToyLayer: a run showed that " in out for code in _said(name))
    repaired = (folder / name / "modeling_toy.py").read_text()
    assert repaired == (_FOLDER / name / "modeling_toy.fixed.py").read_text()


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in _NAMES if _UNSAFE in _said(name)])
def test_what_someone_has_to_review_is_not_repaired_unasked(name: str, tree: tuple[Path, str]) -> None:
    folder, out = tree
    file = folder / name / "modeling_toy.py"
    assert f"{name}/modeling_toy.py:" in out and "    unsafe fix: " in out
    assert file.read_text() == (_FOLDER / name / "modeling_toy.py").read_text()
    assert "modeling_toy.py: repaired; proven by ToyModel in " in _gclint(
        folder, "--fix", "--unsafe-fixes", str(file)
    )
    assert file.read_text() == (_FOLDER / name / "modeling_toy.fixed.py").read_text()
