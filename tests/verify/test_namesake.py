"""A folder beside the models that is called like the library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.torch
def test_a_namesake_of_the_library_is_told_with_its_place(tmp_path: Path) -> None:
    package = tmp_path / "transformers"
    model = package / "models" / "otter" / "modeling_otter.py"
    model.parent.mkdir(parents=True)
    for folder in (package, package / "models", model.parent):
        (folder / "__init__.py").touch()
    text = "from transformers import PreTrainedModel\n\n\nclass OtterModel(PreTrainedModel): ...\n"
    model.write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "gclint", "verify", "."], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert f"error: {package} is called transformers, but is not the library" in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
