"""The examples of the documentation: what a page shows is the file, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documented import DOCS, EXAMPLES

_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROBLEM = [match.groups() for match in _BLOCK.finditer((DOCS / "problem.md").read_text(encoding="utf-8"))]
_RUNS = [
    pytest.param(EXAMPLES / name, code, output, id=name)
    for name, (_, code), (_, output) in zip(
        ("ten_lines.py", "modeling_seal.py"), _PROBLEM[::2], _PROBLEM[1::2], strict=True
    )
]


@pytest.mark.parametrize(("path", "code", "output"), _RUNS)
def test_the_page_shows_the_file(path: Path, code: str, output: str) -> None:
    assert path.read_text(encoding="utf-8") == code
    assert output


def test_ten_lines_are_ten() -> None:
    code = (EXAMPLES / "ten_lines.py").read_text(encoding="utf-8")
    assert sum(bool(line) for line in code.splitlines()) <= 10


@pytest.mark.torch
@pytest.mark.parametrize(("path", "code", "output"), _RUNS)
def test_it_fails_as_the_page_says(path: Path, code: str, output: str) -> None:
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, output), done.stderr
    assert "None of the inputs have requires_grad=True" in done.stderr


@pytest.mark.torch
def test_the_fix_gives_every_parameter_its_gradient(tmp_path: Path) -> None:
    model = tmp_path / "modeling_seal.py"
    model.write_bytes((EXAMPLES / model.name).read_bytes())
    fixed = subprocess.run([sys.executable, "-m", "gclint", "--fix", model], capture_output=True, text=True)
    assert fixed.returncode == 0, fixed.stdout
    assert "layer(hidden_states)  # the mistake" in model.read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, model], capture_output=True, text=True)
    assert done.stdout.count("7 of 7 parameters get a gradient") == 3
