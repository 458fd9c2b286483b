"""The hooks, driven by the real pre-commit in git repositories, one of them a part of a release."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.environment import PROJECT
from tests.sample import BROKEN, DEFECT, REPAIRED

pytestmark = pytest.mark.precommit

_BASE = """\
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer


class BaseLayer({base}):
    def __init__(self, config):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(8, 2)

    def forward(self, hidden_states):
        return self.self_attn(hidden_states, hidden_states, hidden_states)[0]
"""
_USER = """\
from torch import nn
from transformers import PreTrainedModel

from .modeling_base import BaseLayer


class UserLayer(BaseLayer):
    pass


class UserModel(PreTrainedModel):
    supports_gradient_checkpointing = True

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList([UserLayer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, hidden_states):
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
"""


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

    def commit(self, *options: str, everything: bool = True) -> subprocess.CompletedProcess[str]:
        """Commit everything or what is staged, as far as the hooks let it."""
        if everything:
            self.run("git", "add", "--all")
        return self.run("git", "commit", "--message", "a change", *options, check=False)

    def commits(self) -> int:
        return len(self.run("git", "log", "--oneline", "--all").stdout.splitlines())

    def use_hook(self, hook: str, source: _Repository, *lines: str) -> None:
        revision = source.run("git", "rev-parse", "HEAD").stdout.strip()
        (self.folder / ".pre-commit-config.yaml").write_text(
            f"repos:\n- repo: {source.folder}\n  rev: {revision}\n  hooks:\n  - id: {hook}\n"
            + "".join(f"    {line}\n" for line in lines)
        )
        self.run(sys.executable, "-m", "pre_commit", "install")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def hooked(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the hooks without a commit."""
        return self.run(sys.executable, "-m", "pre_commit", "run", *options, check=False)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
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
        "PRE_COMMIT_HOME": str(tmp_path_factory.mktemp("pre-commit")),
    }


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> _Repository:
    """The working tree, as a repository that offers hooks; pre-commit installs it once."""
    folder = tmp_path_factory.mktemp("source") / "gclint"
    for name in ("gclint", "rules"):
        shutil.copytree(PROJECT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, folder)
    repository = _Repository(folder, environment)
    repository.commit()
    return repository


@pytest.fixture
def repository(tmp_path: Path, environment: dict[str, str]) -> _Repository:
    return _Repository(tmp_path / "models", environment)


def _named(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Return the files that findings are about, in what pre-commit printed."""
    return set(re.findall(r"^(\S+\.py):\d+:\d+: \w+: GC\d+", done.stdout + done.stderr, re.MULTILINE))


def test_the_hooks_say_where_they_run() -> None:
    declared = yaml.safe_load((PROJECT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [each["id"] for each in declared] == ["gclint", "gclint-fix", "gclint-changed"]
    for each in declared:
        assert "pre-commit" in each["stages"]
        assert each["minimum_pre_commit_version"] == "3.2.0"
        assert each["require_serial"]
        assert each["entry"].split()[0] == "gclint"
    assert declared[-1]["pass_filenames"] is False
    assert declared[-1]["always_run"] is True


def test_a_commit_is_stopped_one_is_repaired_and_one_passes(
    repository: _Repository, hooks: _Repository
) -> None:
    model = repository.write("modeling_sample.py", BROKEN)
    repository.write("layers.py", "not python, and none of the hook's business\n")

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
    # What a run keeps is no part of the repository.
    assert repository.run("git", "status", "--porcelain", "--ignored=no").stdout == ""


def test_what_is_excluded_is_left_out_though_it_is_handed_over(
    repository: _Repository, hooks: _Repository
) -> None:
    repository.write("legacy/modeling_old.py", BROKEN)
    repository.use_hook("gclint", hooks, "args: [--exclude, legacy]")
    assert repository.commit().returncode == 0
    repository.write("legacy/modeling_old.py", f"{BROKEN}\n")
    repository.use_hook("gclint", hooks)
    repository.write("pyproject.toml", "[tool.gclint]\nexclude = ['legacy']\n")
    assert repository.commit().returncode == 0
    repository.write("legacy/modeling_old.py", BROKEN)
    repository.write("pyproject.toml", "[tool.gclint]\nexclude = ['nothing']\n")
    assert _named(repository.commit()) == {"legacy/modeling_old.py"}
    broken = repository.write("pyproject.toml", "[tool.gclint]\nexclude = 1\n")
    stopped = repository.commit()
    assert f"Error: {broken}:2:1: exclude must be a list of strings" in stopped.stderr


def test_only_what_is_staged_counts(repository: _Repository, hooks: _Repository) -> None:
    repository.write("modeling_a.py", REPAIRED)
    repository.write("modeling_b.py", REPAIRED)
    for hook in ("gclint", "gclint-changed"):
        repository.use_hook(hook, hooks)
        repository.run("git", "add", "--all")
        repository.run("git", "commit", "--quiet", "--no-verify", "--allow-empty", "-m", "start")
        # A defect that is not staged stands beside a change that is, in the same file and in another.
        repository.write("modeling_a.py", f"{REPAIRED}\n# {hook}\n")
        repository.run("git", "add", "modeling_a.py")
        repository.write("modeling_a.py", BROKEN)
        repository.write("modeling_b.py", BROKEN)
        done = repository.commit(everything=False)
        assert done.returncode == 0, done.stderr
        assert (repository.folder / "modeling_a.py").read_text() == BROKEN
        # The other way round: what is staged has the defect, and the working tree has not.
        repository.run("git", "add", "modeling_a.py")
        repository.write("modeling_a.py", REPAIRED)
        repository.write("modeling_b.py", REPAIRED)
        done = repository.commit(everything=False)
        assert _named(done) == {"modeling_a.py"}, done.stderr
        assert (repository.folder / "modeling_a.py").read_text() == REPAIRED


def test_a_staged_file_is_repaired_where_more_is_edited_and_not_staged(
    repository: _Repository, hooks: _Repository
) -> None:
    repository.use_hook("gclint-fix", hooks)
    repository.write("modeling_a.py", BROKEN)
    repository.write("notes.txt", "one\n")
    repository.run("git", "add", "--all")
    repository.write("notes.txt", "two\n")
    stopped = repository.commit(everything=False)
    assert "files were modified by this hook" in stopped.stderr
    assert (repository.folder / "modeling_a.py").read_text() == REPAIRED
    assert (repository.folder / "notes.txt").read_text() == "two\n"


def test_a_change_is_followed_into_files_that_depend_on_it(
    repository: _Repository, hooks: _Repository
) -> None:
    repository.use_hook("gclint-changed", hooks)
    repository.write("models/__init__.py", "")
    repository.write("models/modeling_base.py", _BASE.format(base="GradientCheckpointingLayer"))
    repository.write("models/modeling_user.py", _USER)
    repository.write("models/modeling_other.py", BROKEN)
    repository.run("git", "add", "--all")
    repository.run("git", "commit", "--quiet", "--no-verify", "-m", "start")
    repository.write("README", "no model\n")
    assert repository.commit().returncode == 0
    # The defect is in a file that is not part of the commit.
    repository.write("models/modeling_base.py", _BASE.format(base="nn.Module"))
    stopped = repository.commit()
    assert stopped.returncode
    assert "models/modeling_other.py" not in _named(stopped)
    assert "models/modeling_user.py" in _named(stopped)
    repository.write("models/modeling_base.py", _BASE.format(base="GradientCheckpointingLayer"))
    # A file that is renamed is changed, one that is gone has what depends on it looked at.
    repository.run("git", "mv", "models/modeling_other.py", "models/modeling_new.py")
    assert _named(repository.commit()) == {"models/modeling_new.py"}
    repository.run("git", "rm", "--quiet", "--force", "models/modeling_new.py")
    assert repository.commit().returncode == 0


def test_a_commit_that_only_deletes_is_looked_at(repository: _Repository, hooks: _Repository) -> None:
    repository.use_hook("gclint-changed", hooks)
    repository.write("models/modeling_base.py", _BASE.format(base="nn.Module"))
    repository.write("pyproject.toml", '[tool.gclint]\nfail-level = "note"\n')
    comment = "class UserLayer(BaseLayer):  # gclint: ignore[GC001]"
    repository.write("models/modeling_user.py", _USER.replace("class UserLayer(BaseLayer):", comment))
    assert repository.commit().returncode == 0
    # Of the base nothing is known any more, so nothing is left to suppress.
    repository.run("git", "rm", "--quiet", "models/modeling_base.py")
    stopped = repository.commit()
    assert _named(stopped) == {"models/modeling_user.py"}, stopped.stderr
    repository.run("git", "rm", "--quiet", "models/modeling_user.py")
    assert repository.commit().returncode == 0
    repository.write("notes.txt", "no model left\n")
    assert repository.commit().returncode == 0


def test_a_merge_reports_what_differs_from_both_sides(repository: _Repository, hooks: _Repository) -> None:
    repository.use_hook("gclint-changed", hooks)
    repository.write("modeling_a.py", REPAIRED)
    repository.write("modeling_known.py", BROKEN)
    repository.run("git", "add", "--all")
    repository.run("git", "commit", "--quiet", "--no-verify", "-m", "start")
    repository.run("git", "checkout", "--quiet", "-b", "side")
    repository.write("modeling_known.py", f"{BROKEN}\n# side\n")
    repository.write("modeling_a.py", f"{REPAIRED}\n# side\n")
    repository.run("git", "commit", "--quiet", "--no-verify", "--all", "-m", "side")
    repository.run("git", "checkout", "--quiet", "-")
    repository.write("modeling_a.py", f"{REPAIRED}\n# main\n")
    repository.run("git", "commit", "--quiet", "--no-verify", "--all", "-m", "main")
    assert repository.run("git", "merge", "side", check=False).returncode
    repository.write("modeling_a.py", BROKEN)
    repository.run("git", "add", "--all")
    stopped = repository.commit("--no-edit", everything=False)
    assert _named(stopped) == {"modeling_a.py"}, stopped.stderr
    repository.write("modeling_a.py", f"{REPAIRED}\n# both\n")
    merged = repository.commit("--no-edit")
    assert merged.returncode == 0, merged.stderr


@pytest.mark.releases
def test_in_a_checkout_of_a_release(
    repository: _Repository, hooks: _Repository, release: Callable[[str], Path]
) -> None:
    source = release("4.57.6") / "transformers"
    models = "src/transformers/models"
    names = sorted(each.name for each in (source / "models").iterdir() if each.is_dir())[:120]
    for name in (*names, "llama"):
        shutil.copytree(source / "models" / name, repository.folder / models / name, dirs_exist_ok=True)
    for path in source.glob("*.py"):
        shutil.copy(path, repository.folder / "src/transformers")
    repository.use_hook("gclint", hooks)
    repository.run("git", "add", "--all")
    repository.run("git", "commit", "--quiet", "--no-verify", "-m", "the release")
    files = [*(repository.folder / models).rglob("model*.py")]
    everything = repository.hooked("--all-files")
    assert "Traceback" not in everything.stdout + everything.stderr
    own = repository.run(sys.executable, "-m", "gclint", "-q", models, check=False)
    # Several batches, for all that fits on a command line, find the same as one run.
    assert _named(everything) == {
        line.partition(":")[0] for line in own.stdout.splitlines() if not line.startswith(" ")
    }
    assert len(files) > 150
    assert _named(everything)

    repository.use_hook("gclint-changed", hooks, f"args: [{models}]")
    llama = repository.folder / models / "llama" / "modeling_llama.py"
    text = llama.read_text(encoding="utf-8")
    llama.write_text(
        text.replace(
            "class LlamaDecoderLayer(GradientCheckpointingLayer)", "class LlamaDecoderLayer(nn.Module)"
        ),
        encoding="utf-8",
    )
    stopped = repository.commit()
    assert f"{models}/llama/modeling_llama.py" in _named(stopped)
    llama.write_text(f"{text}\n", encoding="utf-8")
    # What inherits from it is looked at as well, and has findings of its own; the rest of the tree is not.
    left = _named(repository.commit())
    assert f"{models}/llama/modeling_llama.py" not in left
    assert left < _named(everything)
