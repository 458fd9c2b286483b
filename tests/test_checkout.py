"""``python -m gclint`` in a checkout, where gclint is not installed, and perhaps not what it needs either."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.environment import PROJECT
from tests.sample import BROKEN, DEFECT, REPAIRED

_DECLARED = re.search(
    r"^dependencies = \[\n(.*?)^\]", (PROJECT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL
)
assert _DECLARED is not None
_NEEDED = [
    name
    for name, condition in re.findall(r'"(\w+)[^";]*(;[^"]*)?"', _DECLARED[1])
    if not condition or sys.version_info < (3, 11)
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("gclint", "rules"):
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "modeling_sample.py").write_text(BROKEN)
    return tmp_path


def _folder_of(package: str) -> str:
    """Return what has to be on Python's path so that ``package`` can be imported."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    return str(Path(spec.origin).parent.parent)


def _gclint(checkout: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    # Without `site`, Python sees no installed package, and reads no file that would lead to this checkout.
    return subprocess.run(
        [sys.executable, "-S", "-m", "gclint", *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def dependencies() -> str:
    return os.pathsep.join(dict.fromkeys(map(_folder_of, _NEEDED)))


def test_gclint_runs_where_it_is_not_installed(checkout: Path, dependencies: str) -> None:
    listed = _gclint(checkout, "rules", path=dependencies)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert [line[:5] for line in listed.stdout.splitlines()][:2] == ["GC000", "GC001"]
    found = _gclint(checkout, "modeling_sample.py", path=dependencies)
    assert (found.returncode, found.stderr) == (1, "")
    assert found.stdout.startswith(DEFECT)
    assert _gclint(checkout, "--fix", "modeling_sample.py", path=dependencies).returncode == 0
    assert (checkout / "modeling_sample.py").read_text() == REPAIRED


def test_the_rules_of_the_checkout_are_used_and_not_those_of_an_installation(checkout: Path) -> None:
    (checkout / "rules" / "gc002_positional_cache.py").unlink()
    listed = subprocess.run(
        [sys.executable, "-m", "gclint", "rules"], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert "GC001" in listed.stdout
    assert "GC002" not in listed.stdout


def test_an_installed_gclint_has_its_rules_inside(checkout: Path, dependencies: str) -> None:
    shutil.move(checkout / "rules", checkout / "gclint" / "rules")
    (checkout / "rules").mkdir()
    (checkout / "rules" / "__init__.py").write_text("raise Exception('this is another package')\n")
    assert _gclint(checkout, "rules", path=dependencies).stdout.startswith("GC000")


@pytest.mark.parametrize("missing", [_NEEDED, ["libcst"]])
def test_what_is_missing_is_told_in_a_sentence(checkout: Path, missing: list[str]) -> None:
    for name in set(_NEEDED) - set(missing):
        (checkout / name).mkdir()
        (checkout / name / "__init__.py").touch()
    run = _gclint(checkout, path="")
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"Error: gclint needs {', '.join(missing)}, ")
    assert f"-m pip install {' '.join(missing)}'" in line
