"""The pictures in the README show what is there, and can be taken again."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.chromium import NoChromium
from tests.environment import PROJECT
from tests.screenshots import IMAGES, REPORT, TERMINAL, NoPicture, main, take_report, take_terminal

_SVG = "{http://www.w3.org/2000/svg}"
_LARGEST = 150_000
"""Bytes of a picture: they stay in the history of the repository for ever."""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_the_terminal_shows_what_gclint_prints(tmp_path: Path) -> None:
    take_terminal(tmp_path / TERMINAL)
    taken, shown = (folder / TERMINAL for folder in (tmp_path, IMAGES))
    assert taken.read_text("utf-8") == shown.read_text("utf-8"), "run python3 -m tests.screenshots"
    lines = [
        "".join(line.itertext()).replace("\N{NO-BREAK SPACE}", " ")
        for line in ElementTree.parse(taken).iter(f"{_SVG}text")
    ]
    assert lines[0] == "$ gclint modeling_otter.py"
    assert re.match(r"modeling_otter\.py:\d+:\d+: warning: GC001 `OtterEncoderLayer`", lines[1])
    assert any(re.match(r" {6}\| +\^+$", line) for line in lines)


def test_the_pictures_are_small_and_load_nothing() -> None:
    for path in IMAGES.iterdir():
        assert path.stat().st_size < _LARGEST, path.name
    picture = (IMAGES / TERMINAL).read_text(encoding="utf-8")
    assert not re.search(r"url\(|href|@import|<script", picture)


def test_the_readme_shows_all_pictures() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (PROJECT / "README.md").read_text(encoding="utf-8"))
    assert {*shown} == {path.relative_to(PROJECT).as_posix() for path in IMAGES.iterdir()}


@pytest.mark.browser
@pytest.mark.torch
def test_the_report_can_be_photographed(tmp_path: Path) -> None:
    try:
        take_report(tmp_path / REPORT)
    except NoChromium as error:
        pytest.skip(str(error))
    assert (tmp_path / REPORT).read_bytes().startswith(b"\x89PNG")


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(path: Path) -> None:
        raise NoPicture("there is no Chromium")

    monkeypatch.setattr("tests.screenshots.take_terminal", fail)
    assert main() == 1
    assert capsys.readouterr().err == "error: there is no Chromium\n"
