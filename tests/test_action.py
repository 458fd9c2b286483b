"""The action and the workflows: their structure, and each of their steps run as plain commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tests.environment import PROJECT
from tests.sample import BROKEN

_ACTION = PROJECT / "action.yml"
_EXAMPLE = PROJECT / "docs" / "examples" / "workflow.yml"
_WORKFLOWS = [_EXAMPLE, *sorted((PROJECT / ".github" / "workflows").glob("*.yml"))]
_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")

_needs_bash = pytest.mark.skipif(os.name != "posix" or shutil.which("bash") is None, reason="needs bash")


def _load(path: Path) -> Any:
    # YAML 1.1 takes the key `on` for a truth value, and GitHub does not.
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in document.items()}


def _jobs(path: Path) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", _load(path)["jobs"])


def _all_steps() -> Iterator[tuple[str, Any]]:
    for step in _load(_ACTION)["runs"]["steps"]:
        yield "action", step
    for path in _WORKFLOWS:
        for name, job in _jobs(path).items():
            for step in job["steps"]:
                yield f"{path.name}, {name}", step


def test_no_expression_is_part_of_a_script() -> None:
    scripts = [(where, step["run"]) for where, step in _all_steps() if "run" in step]
    assert len(scripts) > 5
    assert [where for where, script in scripts if "${{" in script] == []


def test_steps_and_jobs_have_the_form_that_github_takes() -> None:
    for where, step in _all_steps():
        assert ("run" in step) != ("uses" in step), where
        known = {"name", "id", "if", "run", "uses", "with", "env", "shell", "working-directory"}
        assert step.keys() <= known, where
        if where == "action" and "run" in step:
            assert step["shell"] == "bash", "a composite action has to name the shell"
        if "uses" in step and not step["uses"].startswith("./"):
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[\w./-]+", step["uses"]), where
    for path in _WORKFLOWS:
        document = _load(path)
        assert {"name", "on", "permissions", "jobs"} <= document.keys(), path
        for job in document["jobs"].values():
            assert set(_listed(job.get("needs", []))) <= document["jobs"].keys()


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def test_every_input_is_described_used_and_documented() -> None:
    action = _load(_ACTION)
    text = _ACTION.read_text(encoding="utf-8")
    documentation = (PROJECT / "docs" / "ci.md").read_text(encoding="utf-8")
    for name, each in action["inputs"].items():
        assert each["description"].endswith(("'false').", ".", "several."))
        assert isinstance(each["default"], str), "what is not a string arrives as one anyway"
        assert f"inputs.{name}" in text
        assert f"`{name}`" in documentation
    for name in action["outputs"]:
        assert f"`{name}`" in documentation
    with_ = [step["with"] for _, step in _all_steps() if str(step.get("uses")).startswith(("gclint/", "./"))]
    assert with_
    assert set().union(*with_) <= action["inputs"].keys()


def test_the_documentation_shows_the_workflow_that_is_tested() -> None:
    documentation = (PROJECT / "docs" / "ci.md").read_text(encoding="utf-8")
    assert "examples/workflow.yml" in documentation


class _Runner:
    """What of GitHub's runner the steps need."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self.temporary = folder / "runner temp"
        self.commands = folder / "commands"
        for each in (self.temporary, self.commands):
            each.mkdir()
        self.workspace = workspace
        self.installed = folder / "installed"
        self.environment: dict[str, str] = {}
        self.outputs: dict[str, str] = {}
        self.values: dict[str, str] = {"github.action_path": str(PROJECT)}
        self.command("gclint", f'exec "{sys.executable}" -m gclint "$@"')
        self.command("python", f'printf "%s\\n" "$@" >> "{self.installed}"')
        self.command(
            "python3",
            f"""
            mkdir -p "$3/bin"
            cp "{self.commands / "gclint"}" "$3/bin/gclint"
            cp "{self.commands / "python"}" "$3/bin/python"
            """,
        )

    def command(self, name: str, script: str) -> None:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def expanded(self, text: object) -> str:
        """Return a value with its expressions replaced; each has to be known."""
        if isinstance(text, bool):
            return str(text).lower()
        return _EXPRESSION.sub(lambda match: self.values[match[1]], str(text))

    def run(self, step: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        """Run the script of a step."""
        files = {name: self.temporary / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT")}
        for path in files.values():
            path.write_text("")
        environment = {
            **os.environ,
            **self.environment,
            **{name: str(path) for name, path in files.items()},
            **{name: self.expanded(value) for name, value in step.get("env", {}).items()},
            "PATH": f"{self.commands}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.temporary),
        }
        options = ["-eo", "pipefail"] if step.get("shell") == "bash" else ["-e"]
        folder = self.workspace / self.expanded(step.get("working-directory", "."))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", *options, "-c", step["run"]],
            cwd=folder,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )
        self.environment.update(_assignments(files["GITHUB_ENV"]))
        self.outputs.update(_assignments(files["GITHUB_OUTPUT"]))
        return done

    def act(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the scripts of the action with these inputs, until one fails; returns the last that ran."""
        action = _load(_ACTION)
        for name, each in action["inputs"].items():
            self.values[f"inputs.{name}"] = inputs.get(name.replace("-", "_"), each["default"])
        self.values["inputs.working-directory || '.'"] = self.values["inputs.working-directory"] or "."
        for step in action["runs"]["steps"]:
            if "run" in step:
                done = self.run(step)
                if done.returncode:
                    break
        return done


def _assignments(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a model on main, and a branch that adds one."""
    folder = tmp_path / "a repository"
    source = folder / "src"
    source.mkdir(parents=True)
    (source / "modeling_old.py").write_text(BROKEN.replace("Sample", "Old"))
    _git(folder, "init", "--quiet", "--initial-branch", "main")
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message", "One")
    _git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    (source / "modeling_sample.py").write_text(BROKEN)
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message", "Two")
    return folder


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)


@pytest.fixture
def runner(tmp_path: Path, repository: Path) -> _Runner:
    return _Runner(tmp_path, repository)


def _annotated(done: subprocess.CompletedProcess[str]) -> list[str]:
    return re.findall(r"^::(?:error|warning) .*?file=([^,]*),", done.stdout, re.MULTILINE)


@_needs_bash
def test_the_action_without_inputs_checks_the_repository(runner: _Runner, tmp_path: Path) -> None:
    done = runner.act()
    assert done.returncode == 1, done.stderr
    assert _annotated(done) == ["src/modeling_old.py", "src/modeling_sample.py"]
    assert runner.installed.read_text().splitlines()[-1] == str(PROJECT)
    assert runner.outputs["exit-status"] == "1"
    results = json.loads(Path(runner.outputs["sarif"]).read_text())["runs"][0]["results"]
    assert len(results) == 2


@_needs_bash
def test_the_action_takes_paths_arguments_and_a_folder(runner: _Runner, repository: Path) -> None:
    shutil.copy(repository / "src" / "modeling_old.py", repository / "src" / "modeling_with space.py")
    done = runner.act(
        paths="\nmodeling_with space.py\r\n\n  \n",
        arguments="--select=GC001\n--exit-zero\n",
        working_directory="src",
        version="0.2.0",
    )
    assert done.returncode == 0, done.stderr
    assert _annotated(done) == ["src/modeling_with space.py"]
    assert runner.installed.read_text().splitlines()[-1] == "gclint==0.2.0"


@_needs_bash
def test_findings_of_an_earlier_step_are_not_uploaded_again(runner: _Runner) -> None:
    runner.act()
    assert runner.outputs.pop("sarif")
    done = runner.act(arguments="--no-such-option")
    assert done.returncode == 2
    assert "sarif" not in runner.outputs


@pytest.mark.drawn(first=2)
@_needs_bash
@pytest.mark.parametrize(
    "text", ["$(touch hacked)", "`touch hacked`", '"; touch hacked; "', "a; touch hacked", "*"]
)
def test_an_input_is_never_a_command(text: str, runner: _Runner, repository: Path) -> None:
    for name in ("paths", "arguments", "version"):
        done = runner.act(**{name: text})
        assert done.returncode == 2, name
    assert not list(repository.rglob("hacked"))


@_needs_bash
@pytest.mark.parametrize("version", ["--index-url=x", "@ https://x.org/x", "-r x", "main", "0.2 --pre"])
def test_a_version_is_nothing_else(version: str, runner: _Runner) -> None:
    done = runner.act(version=version)
    assert done.returncode == 2
    assert "::error title=gclint::The input 'version' has to be" in done.stdout
    assert not runner.installed.exists()


@_needs_bash
@pytest.mark.parametrize(("version", "requirement"), [(">=0.2,<0.3", "gclint>=0.2,<0.3"), ("", str(PROJECT))])
def test_a_version_becomes_a_requirement(version: str, requirement: str, runner: _Runner) -> None:
    runner.act(version=version)
    assert runner.installed.read_text().splitlines()[-2:] == ["--", requirement]


@_needs_bash
def test_nothing_of_the_workspace_is_imported(runner: _Runner, repository: Path, tmp_path: Path) -> None:
    # The real Python, as far as it goes without the network: pip only says which version it is.
    marker = tmp_path / "imported"
    planted = f"open({str(marker)!r}, 'a').write(__name__)\nraise SystemExit(3)\n"
    for name in (
        "venv.py",
        "click.py",
        "runpy.py",
        "sitecustomize.py",
        "gclint/__init__.py",
        "pip/__init__.py",
    ):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text(planted)
    (repository / "pip" / "__main__.py").write_text(planted)
    for name in ("python", "python3"):
        (runner.commands / name).unlink()
        short = 'case "$2" in pip) set -- -m pip --version ;; venv) set -- "$@" --without-pip ;; esac'
        runner.command(name, f'{short}; exec "{sys.executable}" "$@"')
    runner.values["github.action_path"] = str(PROJECT)
    install, *_ = (step for step in _load(_ACTION)["runs"]["steps"] if "run" in step)
    runner.values["inputs.version"] = ""
    script = install["run"].replace('"$bin/python" -m pip', "python -m pip")
    steps = [
        {**install, "run": script},
        *(step for job in ("verify", "report") for step in _scripts(job)[:1]),
    ]
    for step in steps:
        done = runner.run(step)
        assert done.returncode == 0, done.stderr
        assert not marker.exists(), step["name"]
    assert (runner.temporary / "gclint" / "bin" / "python").exists()


def test_python_m_is_run_in_an_empty_folder_only() -> None:
    steps = [
        *_load(_ACTION)["runs"]["steps"],
        *(step for job in _jobs(_EXAMPLE).values() for step in job["steps"]),
    ]
    scripts = [step["run"] for step in steps if re.search(r"python\"? -[mc]", step.get("run", ""))]
    assert len(scripts) == 3
    for script in scripts:
        before = re.split(r"python\"? -[mc]", script)[0]
        assert 'cd "$(mktemp -d)"' in before


_PULL_REQUEST = {
    "github.base_ref": "main",
    "github.event_name == 'pull_request' && '--changed-only' || ''": "--changed-only",
    "github.event_name == 'pull_request' && format('--base-ref=origin/{0}', github.base_ref) || ''": (
        "--base-ref=origin/main"
    ),
    "github.event_name == 'push'": "false",
}
_PUSH = {
    **dict.fromkeys(_PULL_REQUEST, ""),
    "github.event_name == 'push'": "true",
}


@_needs_bash
@pytest.mark.parametrize(
    ("event", "annotated"),
    [(_PULL_REQUEST, ["src/modeling_sample.py"]), (_PUSH, ["src/modeling_old.py", "src/modeling_sample.py"])],
    ids=["pull request", "push"],
)
def test_the_workflow_annotates_what_a_pull_request_changes(
    event: Mapping[str, str], annotated: list[str], runner: _Runner
) -> None:
    runner.values.update(event)
    (step,) = [each for each in _jobs(_EXAMPLE)["lint"]["steps"] if "gclint/" in each["uses"]]
    inputs = {name.replace("-", "_"): runner.expanded(value) for name, value in step["with"].items()}
    done = runner.act(**inputs)
    assert done.returncode == 1, done.stderr
    assert _annotated(done) == annotated


def _scripts(job: str) -> list[Any]:
    return [each for each in _jobs(_EXAMPLE)[job]["steps"] if "run" in each]


@_needs_bash
def test_the_workflow_ends_well_where_no_model_has_changed(runner: _Runner, repository: Path) -> None:
    _git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    runner.values.update({**_PULL_REQUEST, "matrix.shard": "1", "strategy.job-total": "4"})
    for step in (*_scripts("verify"), *_scripts("report")):
        done = runner.run(step)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "No model has changed.\n"


@_needs_bash
@pytest.mark.torch
def test_the_workflow_verifies_the_changed_models_and_reports(runner: _Runner, repository: Path) -> None:
    shards = _jobs(_EXAMPLE)["verify"]["strategy"]["matrix"]["shard"]
    for shard in shards:
        runner.values.update(
            {**_PULL_REQUEST, "matrix.shard": str(shard), "strategy.job-total": str(len(shards))}
        )
        for step in _scripts("verify"):
            done = runner.run(step)
            assert done.returncode == 0, done.stderr
    assert sorted(each.name for each in (repository / "results").iterdir()) == [f"{n}.jsonl" for n in shards]
    *_, last = [runner.run(step) for step in _scripts("report")]
    assert last.returncode == 1, last.stderr
    assert set(_annotated(last)) == {"src/modeling_sample.py"}
    assert "SampleModel failed" in last.stdout
    assert (repository / "report" / "verify.xml").read_text().startswith("<?xml")
    assert "SampleModel" in (repository / "report" / "index.html").read_text()


@_needs_bash
@pytest.mark.wheel
def test_the_action_installs_itself(runner: _Runner) -> None:
    for name in ("python", "python3", "gclint"):
        (runner.commands / name).unlink()
    runner.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = runner.act()
    assert done.returncode == 1, done.stderr
    assert len(_annotated(done)) == 2
