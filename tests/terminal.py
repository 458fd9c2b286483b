"""The command line, run in this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from gclint.cli.main import main


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Tell that it is one."""
        return True


class Outcome(NamedTuple):
    """What came of a run."""

    status: int
    out: str
    err: str


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Return what runs gclint with arguments."""

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["gclint", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Outcome(stopped.value.code, printed.out, printed.err)

    return run
