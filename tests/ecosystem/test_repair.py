"""Whole releases repaired: the result is Python, as tidy as before, and nothing is left without a reason."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ecosystem.conftest import each_release
from tests.ecosystem.repaired import Repaired

pytestmark = pytest.mark.releases

_LEGACY_CALL = "_gradient_checkpointing_func"
# With transformers' own settings every import of a release is sorted, so that one that is not is seen.
_SETTINGS_OF_TRANSFORMERS = (
    "--config=line-length = 119",
    "--config=lint.isort.lines-after-imports = 2",
    "--config=lint.isort.known-first-party = ['transformers']",
)


@each_release
def test_every_repaired_file_compiles(repaired: Callable[[str], Repaired], version: str) -> None:
    result = repaired(version)
    assert len(result.changed) > 40
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in result.changed:
            compile((result.after / name).read_bytes(), name, "exec", dont_inherit=True)


@each_release
@pytest.mark.parametrize("options", [(), _SETTINGS_OF_TRANSFORMERS], ids=["ruff", "transformers"])
def test_ruff_finds_nothing_new(
    repaired: Callable[[str], Repaired], version: str, options: tuple[str, ...]
) -> None:
    result = repaired(version)
    before = _ruff(result.before, result.changed, options)
    after = _ruff(result.after, result.changed, options)
    assert sorted(after - before) == []


@each_release
def test_second_run_changes_nothing(repaired: Callable[[str], Repaired], version: str) -> None:
    result = repaired(version)
    assert result.changed_again == ()
    assert result.left_again == result.left


@each_release
def test_what_is_left_has_a_reason(repaired: Callable[[str], Repaired], version: str) -> None:
    left = repaired(version).left
    # The base class of 4.52 disables no cache, so nothing can be done about those there.
    assert len([each for each in left if "does not disable" not in each.outcome]) < 40
    # What only a run can prove is not made without one.
    assert [
        each.line for each in left if not each.outcome.startswith(("no fix: ", "fix with --verify: "))
    ] == []
    assert [each.line for each in left if each.outcome == "no fix: None"] == []


@pytest.mark.nightly
def test_legacy_calls_that_remain_are_reported(repaired: Callable[[str], Repaired]) -> None:
    result = repaired("4.52.4")
    remaining = {name: list(_legacy_calls(result.after / name)) for name in _modeling_files(result.after)}
    calls = sum(map(len, remaining.values()))
    # Three hang on the configuration, which enables no checkpointing layer.
    assert 0 < calls <= 13
    explained = {
        key.partition("::")[0] for each in result.left if each.code in ("GC001", "GC302") for key in each.keys
    }
    assert {Path(name).name for name, found in remaining.items() if found} <= explained


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
