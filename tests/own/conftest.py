"""A repository with a model, and rules outside of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gclint.rule import set_own_rules
from tests.own.team import RULE, Run
from tests.repository import Repository
from tests.sample import BROKEN
from tests.terminal import runner


@pytest.fixture(autouse=True)
def _no_rules() -> Iterator[None]:
    """Let no other test see what is loaded here."""
    path = [*sys.path]
    yield
    set_own_rules(())
    assert sys.path == path


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there once a module with the rule has been run."""
    path = tmp_path / "was run"
    monkeypatch.setenv("GCLINT_TEST_MARKER", str(path))
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, which is a repository with a model."""
    repository = Repository.at(tmp_path / "repository")
    repository.write("modeling_sample.py", text=BROKEN)
    monkeypatch.chdir(repository.folder)
    return repository.folder


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A file with a rule, outside of the repository."""
    path = tmp_path / "mine" / "our_rules.py"
    path.parent.mkdir()
    path.write_text(RULE, encoding="utf-8")
    return path


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own settings file, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "gclint").mkdir(parents=True, mode=0o700)
    return tmp_path / "config" / "gclint" / "gclint.toml"


@pytest.fixture
def gclint(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)
