"""Whole releases repaired: the result is Python, as tidy as before, and nothing is left without a reason."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.ecosystem.releases import copy_of_release
from tests.ecosystem.reported import MODELS, Reported, run_gclint

pytestmark = pytest.mark.releases

_RELEASES = ("4.52.4", "4.57.6", "5.23.0")
_LEGACY_CALL = "_gradient_checkpointing_func"
# With transformers' own settings every import of a release is sorted, so that one that is not is seen.
_SETTINGS_OF_TRANSFORMERS = (
    "--config=line-length = 119",
    "--config=lint.isort.lines-after-imports = 2",
    "--config=lint.isort.known-first-party = ['transformers']",
)


@dataclass(frozen=True)
class _Repaired:
    """A release before and after ``--fix --unsafe-fixes``, and after doing that again."""

    before: Path
    after: Path
    changed: tuple[str, ...]
    """What the first run changed, below the models."""
    changed_again: tuple[str, ...]
    left: tuple[Reported, ...]
    left_again: tuple[Reported, ...]


@pytest.fixture(scope="module")
def repaired(
    release: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], _Repaired]:
    """Return a function that repairs a copy of a release, once."""

    @cache
    def repair(version: str) -> _Repaired:
        tree = release(version)
        copy = copy_of_release(version, tmp_path_factory.mktemp(version)).parent
        first = _texts(copy / MODELS)
        left = run_gclint(copy, "--fix", "--unsafe-fixes")
        second = _texts(copy / MODELS)
        left_again = run_gclint(copy, "--fix", "--unsafe-fixes")
        third = _texts(copy / MODELS)
        return _Repaired(
            tree / MODELS,
            copy / MODELS,
            tuple(name for name in first if first[name] != second.get(name)),
            tuple(name for name in second if second[name] != third.get(name)),
            left,
            left_again,
        )

    return repair


@pytest.mark.parametrize("version", _RELEASES)
def test_every_repaired_file_compiles(repaired: Callable[[str], _Repaired], version: str) -> None:
    result = repaired(version)
    assert len(result.changed) > 40
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in result.changed:
            compile((result.after / name).read_bytes(), name, "exec", dont_inherit=True)


@pytest.mark.parametrize("version", _RELEASES)
@pytest.mark.parametrize("options", [(), _SETTINGS_OF_TRANSFORMERS], ids=["ruff", "transformers"])
def test_ruff_finds_nothing_new(
    repaired: Callable[[str], _Repaired], version: str, options: tuple[str, ...]
) -> None:
    result = repaired(version)
    before = _ruff(result.before, result.changed, options)
    after = _ruff(result.after, result.changed, options)
    assert sorted(after - before) == []


@pytest.mark.parametrize("version", _RELEASES)
def test_second_run_changes_nothing(repaired: Callable[[str], _Repaired], version: str) -> None:
    result = repaired(version)
    assert result.changed_again == ()
    assert result.left_again == result.left


@pytest.mark.parametrize("version", _RELEASES)
def test_what_is_left_has_a_reason(repaired: Callable[[str], _Repaired], version: str) -> None:
    left = repaired(version).left
    assert len(left) < 20
    assert [each.line for each in left if not each.outcome.startswith("no fix: ")] == []
    assert [each.line for each in left if each.outcome == "no fix: None"] == []


def test_legacy_calls_that_remain_are_reported(repaired: Callable[[str], _Repaired]) -> None:
    result = repaired("4.52.4")
    remaining = {name: list(_legacy_calls(result.after / name)) for name in _modeling_files(result.after)}
    calls = sum(map(len, remaining.values()))
    assert 0 < calls <= 10
    explained = {each.file for each in result.left if each.code == "GC001"}
    assert {name for name, found in remaining.items() if found} <= explained


def _texts(models: Path) -> dict[str, bytes]:
    return {path.relative_to(models).as_posix(): path.read_bytes() for path in models.rglob("*.py")}


def _modeling_files(models: Path) -> list[str]:
    return [path.relative_to(models).as_posix() for path in models.rglob("mod*.py")]


def _legacy_calls(path: Path) -> Iterator[ast.Attribute]:
    """Yield the model's checkpoint function wherever a file calls it."""
    text = path.read_text(encoding="utf-8")
    if _LEGACY_CALL in text:
        for node in ast.walk(ast.parse(text)):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr == _LEGACY_CALL:
                yield called


def _ruff(models: Path, names: tuple[str, ...], options: tuple[str, ...]) -> Counter[tuple[str, str, str]]:
    """Return what ruff says about files: the file, the rule and the message, each as often as it says so.

    Ruff reports what is not Python whatever is selected.
    """
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--isolated", "--ignore-noqa"]
    command += ["--exit-zero", "--select=I001,F401,F811,F821", "--output-format=json", *options, *names]
    run = subprocess.run(command, cwd=models, capture_output=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    return Counter(
        (Path(said["filename"]).relative_to(models.resolve()).as_posix(), str(said["code"]), said["message"])
        for said in json.loads(run.stdout)
    )
