"""What several tests of the verifier need."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gclint.cli import main
from gclint.verify import process
from tests.environment import PROJECT
from tests.verify import stand_in
from tests.verify.command_line import Gclint, Outcome


@pytest.fixture
def gclint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gclint:
    """Runs the command line in an empty folder, with the stand-in in place of the worker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(process, "_PROGRAM", Path(stand_in.__file__))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))

    def run(*arguments: str, command: tuple[str, ...] = ("verify",)) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["gclint", *command, *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        captured = capsys.readouterr()
        return Outcome(int(str(exit_.value.code)), captured.out, captured.err)

    return run
