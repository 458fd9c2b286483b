"""The option ``--upstream`` with a model that has a defect: its script is run before and after the repair."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.verify.planted import FOLDER

pytestmark = pytest.mark.torch


def _gclint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gclint", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)


def _run(script: Path) -> tuple[int, str]:
    """Run a script, and return its exit status and its last line."""
    done = subprocess.run([sys.executable, str(script)], capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout.splitlines()[-1]


def test_the_script_of_a_page_shows_the_defect_until_it_is_repaired(tmp_path: Path) -> None:
    package = tmp_path / "package"
    shutil.copytree(FOLDER / "keyword_stream", package)
    (package / "__init__.py").touch()
    run = _gclint(tmp_path, "verify", "--device", "cpu", "--jobs", "1", "--upstream", "up", "package")
    assert run.returncode == 1, run.stderr
    assert run.stderr.endswith("up has 1 defect; scripts show 1 of them.\n")
    (path,) = (tmp_path / "up" / "activations-by-keyword").iterdir()
    page = path.read_text(encoding="utf-8")
    assert "With it, the script exits with 0.\n" in page
    assert "- transformers " in page.partition("## Releases")[2]
    script = tmp_path / "script.py"
    found = re.search(r"^```python\n(\"\"\".*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    script.write_text(found[1], encoding="utf-8")
    assert len(found[1].splitlines()) <= 75
    status, last = _run(script)
    assert status == 1
    assert " parameters get no gradient: " in last
    # The diff of the page is the repair that gclint makes.
    before = (package / "modeling_toy.py").read_text(encoding="utf-8")
    (tmp_path / "repair.diff").write_text(
        re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0], encoding="utf-8"
    )
    subprocess.run(["patch", "-p0", "-i", "repair.diff"], cwd=tmp_path, check=True, capture_output=True)
    by_page = (package / "modeling_toy.py").read_text(encoding="utf-8")
    assert by_page != before
    (package / "modeling_toy.py").write_text(before, encoding="utf-8")
    _gclint(tmp_path, "--fix", "--unsafe-fixes", "package")
    assert (package / "modeling_toy.py").read_text(encoding="utf-8") == by_page
    assert _run(script) == (0, "the failure does not show")
