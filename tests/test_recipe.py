"""The recipe for a new rule, followed as it is written."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from gclint.rule import Rule
from tests.documented import DOCS
from tests.environment import PROJECT
from tests.harness import load_fixtures, verify_findings, verify_fix, verify_suppression

_PAGE = (DOCS / "adding-a-rule.md").read_text(encoding="utf-8")
_FIXTURE, _MODULE = re.findall(r"^```python\n(.*?)^```$", _PAGE, re.MULTILINE | re.DOTALL)
_NAME = "gc999_literal_use_cache"


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    """The module of the second step."""
    path = tmp_path / f"{_NAME}.py"
    path.write_text(_MODULE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(_NAME, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rules(module: ModuleType) -> list[Rule]:
    return [module.LiteralUseCache()]


def test_the_fixtures_of_the_recipe_pass(rules: list[Rule], tmp_path: Path) -> None:
    folder = tmp_path / "fixtures" / "GC999"
    folder.mkdir(parents=True)
    (folder / "literal.py").write_text(_FIXTURE, encoding="utf-8")
    after = re.sub(r"  # expect: .*", "", _FIXTURE).replace("use_cache=True", "use_cache=False")
    (folder / "literal.unsafe.py").write_text(after, encoding="utf-8")
    (fixture,) = load_fixtures(folder.parent)
    assert [each.code for each in fixture.expectations] == ["GC999"]
    for number, verify in enumerate((verify_findings, verify_suppression)):
        verify(fixture, rules, _new(tmp_path / str(number)))
    for unsafe in (False, True):
        verify_fix(fixture, rules, _new(tmp_path / f"fixed-{unsafe}"), "as it is", unsafe=unsafe)


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_the_docstring_has_the_headings_of_the_others(rules: list[Rule]) -> None:
    headings = re.findall(r"^## .*$", rules[0].documentation(), re.MULTILINE)
    assert headings == ["## What it does", "## Why is this bad?", "## Example", "## Fix safety"]


@pytest.mark.slow
def test_the_module_passes_the_linter_and_the_type_checker(tmp_path: Path) -> None:
    path = tmp_path / f"{_NAME}.py"
    path.write_text(_MODULE, encoding="utf-8")
    settings = str(PROJECT / "pyproject.toml")
    for command in (
        ("ruff", "check", "--config", settings, str(path)),
        ("ruff", "format", "--check", "--config", settings, str(path)),
        ("mypy", "--config-file", settings, str(path)),
    ):
        done = subprocess.run([sys.executable, "-m", *command], cwd=PROJECT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
