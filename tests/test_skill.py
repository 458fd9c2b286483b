"""The skill file for coding agents: every command in it runs, and JSON has the shape that it shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environment import PROJECT
from tests.server.models import BAD

_SKILL = PROJECT / "skills" / "gclint" / "SKILL.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[str]:
    return [text for name, text in _BLOCK.findall(_SKILL.read_text(encoding="utf-8")) if name == language]


def _commands() -> Iterator[object]:
    for command in "".join(_blocks("console")).splitlines():
        runs_models = "verify" in command
        yield pytest.param(command, marks=[pytest.mark.torch, pytest.mark.slow] if runs_models else [])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with a model that has a defect."""
    model = tmp_path / "src" / "models" / "otter" / "modeling_otter.py"
    model.parent.mkdir(parents=True)
    model.write_text(BAD, encoding="utf-8")
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Add a model"),
    ):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    gclint = f"'{sys.executable}' -m gclint"
    line = re.sub(r"^gclint\b", lambda _: gclint, command)
    return subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False)


def test_it_has_the_front_matter_that_agents_look_for() -> None:
    match = re.match(r"---\nname: gclint\ndescription: (.+)\n---\n", _SKILL.read_text(encoding="utf-8"))
    assert match is not None
    assert 100 < len(match[1]) < 1024


@pytest.mark.skipif(shutil.which("git") is None or sys.platform == "win32", reason="needs git and a shell")
@pytest.mark.parametrize("command", list(_commands()))
def test_every_command_runs(command: str, repository: Path) -> None:
    assert command.startswith("gclint ")
    run = _run(command, repository)
    expected = (0, 1, 2) if "verify" in command else (0, 1)
    assert run.returncode in expected, run.stderr
    assert "Usage:" not in run.stderr
    assert "Traceback" not in run.stderr
    if "json" in command:
        json.loads(run.stdout or run.stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_json_has_the_shape_that_it_shows(repository: Path) -> None:
    (shown,) = json.loads(_blocks("json")[0])
    (found,) = json.loads(_run("gclint --output-format json src/models", repository).stdout)
    assert _keys(shown) <= _keys(found)
    for name in ("code", "name", "symbol", "filename", "location", "end_location", "reason"):
        assert found[name] == shown[name]
    assert found["fix"]["applicability"] == shown["fix"]["applicability"]


def _keys(value: object, prefix: str = "") -> set[str]:
    if isinstance(value, list):
        return {key for each in value for key in _keys(each, prefix)}
    if not isinstance(value, dict):
        return set()
    return {f"{prefix}{key}" for key in value} | {
        key for name, each in value.items() for key in _keys(each, f"{prefix}{name}.")
    }
