"""What several tests of the verifier need."""

from __future__ import annotations

from pathlib import Path

import pytest

from gclint.verify import process
from tests.environment import PROJECT
from tests.terminal import runner
from tests.verify import stand_in
from tests.verify.command_line import Gclint, Outcome


@pytest.fixture
def gclint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gclint:
    """Runs the command line in an empty folder, with the stand-in in place of the worker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(process, "_PROGRAM", Path(stand_in.__file__))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))

    run_here = runner(monkeypatch, capsys)

    def run(*arguments: str, command: tuple[str, ...] = ("verify",)) -> Outcome:
        return Outcome(*run_here(*command, *arguments))

    return run
