"""What is built and installed is complete, and runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from gclint import __version__
from tests.environment import PROJECT, fresh_environment
from tests.sample import BROKEN, DEFECT

pytestmark = pytest.mark.wheel


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, PROJECT], check=True)
    (source,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return source, wheel


def _files() -> set[str]:
    package = {
        path.relative_to(PROJECT).as_posix()
        for pattern in ("*.py", "*.json", "*.html", "*.css", "*.js", "py.typed")
        for path in (PROJECT / "gclint").rglob(pattern)
    }
    return package | {f"gclint/rules/{path.name}" for path in (PROJECT / "rules").glob("*.py")}


def test_the_wheel_holds_every_file_and_nothing_else(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        licenses = [name for name in wheel.namelist() if name.endswith("/LICENSE")]
    assert names == _files()
    assert licenses


def test_the_source_distribution_holds_what_the_wheel_is_built_from(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[0]) as source:
        names = {file.name.partition("/")[2] for file in source.getmembers() if file.isfile()}
    code = {name.replace("gclint/rules/", "rules/") for name in _files()}
    about = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    assert {name for name in names if not name.startswith("gclint.egg-info/")} == code | about


@pytest.mark.parametrize("command", [("twine", "check", "--strict"), ("check_wheel_contents",)], ids=" ".join)
def test_checkers_of_distributions_complain_of_nothing(
    command: tuple[str, ...], distributions: tuple[Path, Path]
) -> None:
    files = distributions if command[0] == "twine" else distributions[1:]
    checked = subprocess.run(
        [sys.executable, "-m", *command, *files], capture_output=True, text=True, env=_plain_environment()
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_uv_runs_the_wheel_as_a_tool(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "modeling_sample.py").write_text(BROKEN)
    tool = [
        sys.executable,
        "-m",
        "uv",
        "tool",
        "run",
        "--isolated",
        "--from",
        str(distributions[1]),
        "gclint",
    ]

    def gclint(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**_plain_environment(), "UV_CACHE_DIR": str(tmp_path / "cache")}
        return subprocess.run(
            [*tool, *arguments], cwd=tmp_path, capture_output=True, text=True, env=environment
        )

    assert gclint("--version").stdout == f"gclint {__version__}\n"
    assert gclint().stdout.startswith(DEFECT)


def _plain_environment() -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}


def test_the_wheel_runs_where_nothing_else_is_installed(
    distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    python = fresh_environment(tmp_path / "environment", str(distributions[1]))
    (tmp_path / "modeling_sample.py").write_text(BROKEN)
    command = python.with_name("gclint.exe" if os.name == "nt" else "gclint")

    def gclint(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *arguments], cwd=tmp_path, capture_output=True, text=True)

    assert gclint("--version").stdout.startswith("gclint ")
    assert "GC001  missing-checkpointing-layer" in gclint("rules").stdout
    found = gclint()
    assert found.stdout.startswith(DEFECT), found.stderr
    assert found.returncode == 1
    fixed = gclint("--fix")
    assert fixed.returncode == 0, fixed.stdout + fixed.stderr
