"""What the tests of decisions share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.decisions.outside import Outside

_LIBRARY = {
    "__init__.py": "from .modeling_utils import PreTrainedModel\n",
    "modeling_layers.py": "class GradientCheckpointingLayer: ...\n",
    "modeling_utils.py": "class PreTrainedModel: ...\n",
}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with as much of the library as models import, whatever is installed."""
    folder = tmp_path_factory.mktemp("library")
    for name, text in _LIBRARY.items():
        path = folder / "transformers" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def outside(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> Outside:
    """Return the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Outside(tmp_path, library)
