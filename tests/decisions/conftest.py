"""What the tests of decisions share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.decisions.outside import Outside


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outside:
    """Return the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Outside(tmp_path)
