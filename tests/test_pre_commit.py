"""The hooks, driven by the real pre-commit in a git repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import PROJECT
from tests.sample import BROKEN, DEFECT, REPAIRED

pytestmark = pytest.mark.precommit


class _Repository:
    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        folder.mkdir(exist_ok=True)
        self.run("git", "init", "--quiet")

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self._environment, check=check, capture_output=True, text=True
        )

    def commit(self) -> subprocess.CompletedProcess[str]:
        """Commit everything, as far as the hooks let it."""
        self.run("git", "add", "--all")
        return self.run("git", "commit", "--message", "a change", check=False)

    def commits(self) -> int:
        return len(self.run("git", "log", "--oneline", "--all").stdout.splitlines())

    def use_hook(self, hook: str, source: _Repository) -> None:
        revision = source.run("git", "rev-parse", "HEAD").stdout.strip()
        (self.folder / ".pre-commit-config.yaml").write_text(
            f"repos:\n- repo: {source.folder}\n  rev: {revision}\n  hooks:\n  - id: {hook}\n"
        )


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment in which neither the user's git settings nor pre-commit's cache are seen."""
    person = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Somebody"), ("EMAIL", "somebody@example.com"))
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        **person,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "PRE_COMMIT_HOME": str(tmp_path / "pre-commit"),
    }


@pytest.fixture
def hooks(tmp_path: Path, environment: dict[str, str]) -> _Repository:
    """The working tree, as a repository that offers hooks."""
    folder = tmp_path / "gclint"
    for name in ("gclint", "rules"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, folder)
    repository = _Repository(folder, environment)
    repository.commit()
    return repository


def test_a_commit_is_stopped_one_is_repaired_and_one_passes(
    tmp_path: Path, environment: dict[str, str], hooks: _Repository
) -> None:
    repository = _Repository(tmp_path / "models", environment)
    repository.run(sys.executable, "-m", "pre_commit", "install")
    model = repository.folder / "modeling_sample.py"
    model.write_text(BROKEN)
    (repository.folder / "layers.py").write_text("not python, and none of the hook's business\n")

    repository.use_hook("gclint", hooks)
    stopped = repository.commit()
    assert stopped.returncode, stopped.stderr
    assert DEFECT in stopped.stderr
    assert model.read_text() == BROKEN
    assert repository.commits() == 0

    repository.use_hook("gclint-fix", hooks)
    stopped = repository.commit()
    assert stopped.returncode
    assert "files were modified by this hook" in stopped.stderr
    assert model.read_text() == REPAIRED
    repaired = repository.commit()
    assert repaired.returncode == 0, repaired.stderr
    assert repository.commits() == 1

    repository.use_hook("gclint", hooks)
    model.write_text(f"{REPAIRED}\n\n# Nothing wrong with this.\n")
    passed = repository.commit()
    assert passed.returncode == 0, passed.stderr
    assert repository.commits() == 2
