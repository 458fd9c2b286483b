"""What a repository carries is never run: by git, by Python's search for modules, or by the action."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gclint import git as git_module
from gclint.code.changes import ChangesUnknown, changed_files, staged_files
from gclint.git import git
from gclint.programs import interpreter
from tests.repository import Repository
from tests.sample import BROKEN

_posix = pytest.mark.skipif(os.name != "posix", reason="the planted programs are scripts of a shell")


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """What a planted program creates."""
    return tmp_path / "was run"


@pytest.fixture
def planted(tmp_path: Path, marker: Path) -> Path:
    """A program that a repository names."""
    path = tmp_path / "planted"
    path.write_text(f"#!/bin/sh\necho \"$0 $@\" >> '{marker}'\ncat\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository in which one file has changed in each way."""
    repository = Repository.at(tmp_path / "repository")
    repository.write("same.py", "committed.py", "staged.py", "unstaged.py", "data.bin")
    repository.branch()
    repository.write("committed.py", text="y = 1\n")
    repository.commit()
    repository.write("staged.py", text="y = 1\n")
    repository.git("add", "staged.py")
    repository.write("unstaged.py", "untracked.py", text="y = 1\n")
    return repository


_CHANGED = {"committed.py", "staged.py", "unstaged.py", "untracked.py"}


def _changed(repository: Repository) -> set[str]:
    found = changed_files([repository.folder / "same.py"], "origin/main")
    return {path.relative_to(repository.folder.resolve()).as_posix() for path in found}


def _staged(repository: Repository) -> set[str]:
    found = staged_files([repository.folder / "same.py"])
    return {path.relative_to(repository.folder.resolve()).as_posix() for path in found}


_KEYS = (
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.askPass",
    "core.sshCommand",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "credential.helper",
    "diff.external",
    "diff.planted.command",
    "diff.planted.textconv",
    "filter.planted.clean",
    "filter.planted.smudge",
    "filter.planted.process",
    "merge.planted.driver",
    "gpg.program",
    "interactive.diffFilter",
    "pager.ls-files",
    "pager.rev-parse",
    "uploadpack.packObjectsHook",
    "remote.origin.uploadpack",
    "alias.ls-files",
    "hook.planted.command",
)


def _plant(repository: Repository, program: Path) -> None:
    """Have the configuration of a repository name a program wherever it can."""
    for key in _KEYS:
        repository.git("config", key, f"!{program}" if key.startswith("alias.") else str(program))
    repository.git("config", "hook.planted.event", "post-index-change")
    for name in ("post-index-change", "reference-transaction"):
        (repository.folder / ".git" / "hooks" / name).symlink_to(program)
    attributes = repository.folder / ".git" / "info" / "attributes"
    attributes.write_text("* filter=planted diff=planted merge=planted\n")


@_posix
def test_git_runs_nothing_that_a_configuration_names(
    repository: Repository, planted: Path, marker: Path
) -> None:
    _plant(repository, planted)
    # A file as old as the index has to be compared, not only looked at.
    index = repository.folder / ".git" / "index"
    for path in repository.folder.glob("*.py"):
        os.utime(path, ns=(index.stat().st_mtime_ns,) * 2)
    assert _changed(repository) == _CHANGED
    assert _staged(repository) == {"staged.py"}
    assert not marker.exists(), marker.read_text()


@_posix
def test_git_starts_no_process_at_all(
    repository: Repository, planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = Repository.at(repository.folder / "inner")
    inner.write("a.py")
    inner.branch()
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "./inner", "inner")
    for each in (repository, inner):
        _plant(each, planted)
    events = tmp_path / "events"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(events))
    inner.write("a.py", text="y = 1\n")
    changed_files([repository.folder / "same.py", inner.folder / "a.py"], "origin/main")
    staged_files([repository.folder / "same.py", inner.folder / "a.py"])
    said = [json.loads(line) for line in events.read_text().splitlines()]
    assert sum(each["event"] == "start" for each in said) > 10
    assert [each for each in said if each["event"] in ("child_start", "exec")] == []


@_posix
def test_what_a_submodule_s_configuration_names_is_not_run(
    repository: Repository, planted: Path, marker: Path
) -> None:
    inner = Repository.at(repository.folder / "inner")
    inner.write("a.py")
    inner.branch()
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "./inner", "inner")
    repository.git("commit", "-q", "-m", "a submodule")
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    _plant(inner, planted)
    assert _changed(repository) == {"staged.py", "unstaged.py", "untracked.py"} - {"staged.py"}
    inner.write("b.py")
    inner.git("add", "b.py")
    inner.git("-c", "core.hooksPath=", "-c", "core.fsmonitor=", "commit", "-q", "-m", "more")
    marker.unlink(missing_ok=True)
    assert "inner" in _changed(repository)
    assert not marker.exists(), marker.read_text()


@_posix
@pytest.mark.parametrize(
    "url", ["ext::{program}", "ssh://host/x", "file://{folder}", "planted::x", "{folder}"]
)
def test_objects_that_a_partial_clone_lacks_are_not_fetched(
    url: str, repository: Repository, planted: Path, marker: Path, tmp_path: Path
) -> None:
    url = url.format(program=planted, folder=repository.folder)
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": url,
        "remote.origin.uploadpack": str(planted),
        "core.sshCommand": str(planted),
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
        "protocol.file.allow": "always",
    }.items():
        repository.git("config", key, value)
    tree = git(repository.folder, ["rev-parse", "origin/main^{tree}"]).stdout.decode().strip()
    (repository.folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(ChangesUnknown, match="'git ls-tree' fails"):
        _changed(repository)
    assert not marker.exists(), marker.read_text()


def test_a_filter_only_makes_more_files_changed(repository: Repository, tmp_path: Path) -> None:
    # What git-lfs keeps elsewhere has another content in the repository, so it counts as changed.
    (repository.folder / ".git" / "info" / "attributes").write_text("data.bin filter=upper\n")
    repository.git("config", "filter.upper.clean", "tr a-z A-Z")
    repository.git("add", "--renormalize", "data.bin")
    repository.git("commit", "-q", "-m", "filtered", "data.bin")
    repository.git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert "data.bin" in _changed(repository)


@pytest.mark.parametrize("ends", ["\r\n", "\n"])
def test_line_ends_that_git_converts_are_no_change(ends: str, repository: Repository) -> None:
    repository.git("config", "core.autocrlf", "true")
    (repository.folder / "same.py").write_bytes(f"x = 1{ends}".encode())
    assert "same.py" not in _changed(repository)
    (repository.folder / "same.py").write_bytes(f"x = 2{ends}".encode())
    assert "same.py" in _changed(repository)


def test_a_repository_does_not_name_another_working_tree(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for where in (tmp_path / "elsewhere", tmp_path, Path("/")):
        repository.git("config", "core.worktree", str(where))
        for ask in (_changed, _staged):
            with pytest.raises(ChangesUnknown, match="belongs to another working tree"):
                ask(repository)


def test_a_folder_that_looks_like_a_bare_repository_is_only_a_folder(
    repository: Repository, tmp_path: Path, planted: Path, marker: Path
) -> None:
    bare = repository.folder / "bare"
    repository.git("clone", "-q", "--bare", ".", "bare")
    for key, value in {
        "core.bare": "false",
        "core.worktree": str(bare),
        "core.fsmonitor": str(planted),
    }.items():
        subprocess.run(["git", "--git-dir", bare, "config", key, value], check=True)
    (bare / "modeling_a.py").write_text("x = 1\n")
    # It belongs to the repository around it, in which it is untracked.
    changed = changed_files([bare / "modeling_a.py"], "origin/main")
    assert any((bare / "modeling_a.py").resolve().is_relative_to(each) for each in changed)
    (repository.folder / ".git").rename(tmp_path / "away")
    with pytest.raises(ChangesUnknown, match="not in the working tree of a git repository"):
        staged_files([bare / "modeling_a.py"])
    assert not marker.exists()


@_posix
def test_what_git_would_wait_for_ends(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_module, "_SECONDS", 0.5)
    os.mkfifo(repository.folder / ".git" / "included")
    with (repository.folder / ".git" / "config").open("a") as config:
        config.write("[include]\n\tpath = included\n")
    with pytest.raises(ChangesUnknown, match="did not answer in"):
        _changed(repository)


def test_what_git_prints_is_limited(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_module, "_MOST", 500)
    repository.write(*(f"{number}.py" for number in range(100)))
    with pytest.raises(ChangesUnknown, match="printed more than"):
        _changed(repository)


def test_git_is_never_found_in_the_working_directory(
    repository: Repository, planted: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "git.exe" if sys.platform == "win32" else "git"
    (repository.folder / name).symlink_to(planted)
    monkeypatch.chdir(repository.folder)
    monkeypatch.setenv("PATH", os.pathsep.join(("", ".", "bin", os.environ["PATH"])))
    assert _staged(repository) == {"staged.py"}
    assert not marker.exists()


def test_a_merge_s_other_side_is_a_commit_or_nothing(repository: Repository) -> None:
    path = repository.folder / ".git" / "MERGE_HEAD"
    path.write_text("--help\n")
    assert _staged(repository) == {"staged.py"}
    if os.name == "posix":
        path.unlink()
        os.mkfifo(path)
        assert _staged(repository) == {"staged.py"}


def test_only_commands_that_run_nothing_are_given_to_git(repository: Repository) -> None:
    for command in ("diff", "status", "diff-files", "hash-object"):
        with pytest.raises(AssertionError):
            git(repository.folder, [command])


# -- modules


_FOREIGN = ("click", "libcst", "platformdirs", "rich", "tomli", "torch", "transformers", "venv", "pip", "ray")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a module of every name that a program may import; they say when they are."""
    folder = tmp_path_factory.mktemp("workspace")
    text = f"open({str(folder / 'was run')!r}, 'a').write(__name__ + '\\n')\nraise SystemExit(3)\n"
    for name in {*sys.stdlib_module_names, *_FOREIGN, "sitecustomize", "usercustomize"}:
        (folder / f"{name}.py").write_text(text)
    for name in ("multiprocessing", "importlib", "pip", "transformers", "collections", "gclint"):
        (folder / name).mkdir()
        for file in ("__init__.py", "__main__.py", "util.py", "spawn.py"):
            (folder / name / file).write_text(text)
    (folder / "src").mkdir()
    (folder / "src" / "modeling_sample.py").write_text(BROKEN)
    return folder


@pytest.fixture(autouse=True)
def _nothing_was_run(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "workspace" in request.fixturenames:
        marked = request.getfixturevalue("workspace") / "was run"
        text = marked.read_text() if marked.exists() else ""
        marked.unlink(missing_ok=True)
        assert text == ""


def _run(workspace: Path, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=workspace,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def test_the_planted_modules_are_ones_that_python_would_import(workspace: Path) -> None:
    for arguments in (["-m", "venv", "--help"], ["-c", "import multiprocessing.spawn"], ["-m", "gclint"]):
        assert _run(workspace, sys.executable, *arguments).returncode == 3
        (workspace / "was run").unlink()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 itself imports runpy from there")
def test_python_m_imports_nothing_else_from_the_working_directory(workspace: Path, tmp_path: Path) -> None:
    (workspace / "gclint").rename(tmp_path / "gclint")
    (workspace / "gclint.py").unlink(missing_ok=True)
    try:
        done = _run(workspace, sys.executable, "-m", "gclint", "src")
    finally:
        (tmp_path / "gclint").rename(workspace / "gclint")
    assert done.returncode == 1, done.stderr
    assert "GC001" in done.stdout


_LINT = """
import sys
sys.path.remove("")
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
from gclint.run import jobs
starts = []
original = jobs._fresh
jobs._fresh = lambda work: starts.append(1) or original(work)
sys.argv = ["gclint", "check", "--no-cache", "--jobs", "2", *sys.argv[1:]]
from gclint.launch import main
try:
    main()
finally:
    print(len(starts), "started", file=sys.stderr)
"""


def test_processes_that_are_not_forked_import_nothing_from_there(workspace: Path) -> None:
    (workspace / "src" / "modeling_other.py").write_text(BROKEN.replace("Sample", "Other"))
    done = _run(workspace, sys.executable, "-c", _LINT, "src")
    assert done.returncode == 1, done.stderr
    assert "2 started" in done.stderr
    assert "modeling_other.py" in done.stdout


def _transformers(folder: Path) -> Path:
    """Make a folder with a package that has a model."""
    model = folder / "transformers" / "models" / "bert"
    model.mkdir(parents=True)
    for each in (model, model.parent, model.parent.parent):
        (each / "__init__.py").write_text("")
    (model / "modeling_bert.py").write_text(BROKEN)
    return folder


@pytest.mark.parametrize("way", ["PYTHONPATH", "relative PYTHONPATH", "--user"])
def test_transformers_is_found_where_the_user_has_it(way: str, workspace: Path, tmp_path: Path) -> None:
    from gclint.verify.sources import installed_models

    variables = {}
    if way == "--user":
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        folder = _transformers(tmp_path / "base" / "lib" / version / "site-packages")
        variables["PYTHONUSERBASE"] = os.path.relpath(tmp_path / "base", workspace)
    else:
        folder = _transformers(tmp_path / "mine")
        relative = os.path.relpath(folder, workspace)
        variables["PYTHONPATH"] = f"{os.pathsep}{folder if way == 'PYTHONPATH' else relative}"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(workspace)
        for name, value in variables.items():
            patch.setenv(name, value)
        (found,) = installed_models(Path(sys.base_prefix, "bin", "python3"), ["bert"])
    assert found.samefile(folder / "transformers" / "models" / "bert" / "modeling_bert.py")


_WORKER = """
import json, os, sys
print(json.dumps([os.getcwd(), os.listdir(), sys.path]), file=sys.stderr)
"""


def test_a_worker_starts_in_an_empty_folder(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gclint.verify.home import independent
    from gclint.verify.process import converse
    from gclint.verify.worker.protocol import Unusable

    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", "src", str(tmp_path))))
    (message,) = converse([sys.executable, "-c", _WORKER], "", independent(os.environ), "it")
    assert isinstance(message, Unusable)
    folder, entries, path = json.loads(message.message.partition("ended: ")[2])
    assert (Path(folder) != workspace, entries) == (True, [])
    assert path[:3] == ["", str(workspace / "src"), str(tmp_path)]
    assert str(workspace) not in path


def test_the_driver_of_a_cluster_imports_nothing_from_there(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gclint.verify import process
    from gclint.verify.worker.protocol import Request, Unusable

    monkeypatch.chdir(workspace)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    messages = list(process.work_on_cluster(Path(sys.executable), Request((), ())))
    assert len(messages) == 1
    assert isinstance(messages[0], Unusable)
    assert "Ray" in messages[0].message


def test_an_interpreter_is_never_found_in_the_working_directory(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "python3.exe" if sys.platform == "win32" else "python3"
    (workspace / name).write_text("#!/bin/sh\nexit 3\n")
    (workspace / name).chmod(0o755)
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PATH", os.pathsep.join(("", ".", os.environ["PATH"])))
    assert interpreter(Path("python3")).parent != workspace
    assert interpreter(Path("./python3")) != workspace / name  # It is the name alone for pathlib.
    assert interpreter(Path("src/python3")) == workspace / "src" / "python3"


@pytest.mark.torch
@pytest.mark.parametrize(
    ("arguments", "model"), [(("verify", "--model"), "mamba"), (("memory", "--batch=1", "--seq=8"), "bert")]
)
def test_a_named_model_imports_nothing_from_there(
    arguments: tuple[str, ...], model: str, workspace: Path
) -> None:
    program = Path(sys.executable).with_name("gclint")
    settings = workspace / "pyproject.toml"
    settings.write_text('[tool.gclint.verify.models.MambaModel]\ninputs = "click.py:make"\n')
    try:
        done = _run(workspace, program, *arguments, model)
    finally:
        settings.unlink()
    assert done.returncode in (0, 1), done.stderr
    assert model in done.stdout.lower(), done.stderr
