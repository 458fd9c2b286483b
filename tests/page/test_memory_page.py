"""The page of an estimate of memory."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from gclint.cli import memory as memory_command
from gclint.report.page.memory import memory_page
from gclint.report.page.render import rendered
from gclint.report.page.view import Page, Trade
from gclint.verify.memory import Estimated
from gclint.verify.sources import target_of
from gclint.verify.worker.estimates import (
    MemoryEstimate,
    ModeEstimate,
)
from tests.estimates import ESTIMATE, GIGA
from tests.page.sample import ENVIRONMENT, ORIGIN


def _page(estimate: MemoryEstimate = ESTIMATE) -> Page:
    return memory_page(Estimated(ENVIRONMENT, estimate), ORIGIN)


def _rows(page: Page, title: str) -> tuple[tuple[str, ...], ...]:
    return next(table.rows for table in page.tables if table.title.startswith(title))


def test_the_first_sentence_is_what_comes_of_it() -> None:
    assert _page().lead == (
        "Gradient checkpointing saves 2.20 GB for the backward pass in place of 10.00 GB: 78.0% less, for "
        "33.3% more FLOPs."
    )


def test_bytes_by_depth_add_up_and_modes_that_are_alike_are_one_line() -> None:
    assert [(each.mode, each.block, each.size) for each in _page().depths] == [
        ("no checkpointing", 1, 4 * GIGA),
        ("no checkpointing", 2, 8 * GIGA),
        ("non-reentrant and reentrant", 1, GIGA // 10),
        ("non-reentrant and reentrant", 2, GIGA // 5),
    ]


def test_options_are_points_between_compute_and_memory() -> None:
    assert [(each.name, round(each.more, 3), each.size) for each in _page().trades] == [
        ("nothing checkpointed", 0.0, 10 * GIGA),
        ("every_n_layers=1", 0.333, GIGA),
        ("every_n_layers=2", 0.167, 3 * GIGA),
        ("offload=True", 0.333, GIGA // 2),
    ]


def test_tables_have_the_numbers() -> None:
    page = _page()
    assert _rows(page, "A step")[0][:4] == ("no checkpointing", "10.00 GB", "8.00 GB", "2.00 GB")
    assert [row[2] for row in _rows(page, "What fits 80.00 GB")] == ["not even 1", "3"]
    assert _rows(page, "Each additional block")[0][2:] == ("64 B", "1 x 8 x 2 = 64 B", "nothing")
    assert _rows(page, "Measured")[0][2:4] == ("10,000,000,000 B", "10,000,000,000 B")
    assert _rows(page, "Measured")[1][3] == "none"
    assert _rows(page, "Most of what is saved, no")[0][-1] == "modeling_toy.py:3"


def test_each_column_has_its_heading() -> None:
    for table in _page().tables:
        assert {len(row) for row in table.rows} <= {len(table.heads)}, table.title


def test_a_mode_that_cannot_be_run_says_why() -> None:
    failed = ModeEstimate("reentrant", error="it raises")
    page = _page(replace(ESTIMATE, modes=(*ESTIMATE.modes[:2], failed)))
    assert page.problems == ("reentrant: it raises",)
    assert len(_rows(page, "A step")) == 2


def test_it_is_drawn() -> None:
    text = rendered(_page())
    for svg in re.findall("<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(svg)
    assert ">offload=True</text>" in text
    assert "Bytes by depth" in text
    assert "Memory against compute" in text
    assert 'aria-label="every_n_layers=2: 3.00 GB, +16.7% FLOPs"' in text
    assert "<dialog" not in text


def test_names_do_not_cover_one_another() -> None:
    crowd = [Trade(f"every_n_layers={number}", 0.1, 1000 - number, "") for number in range(2, 6)]
    text = rendered(replace(_page(), trades=(*crowd, Trade("apart", 0.1, 100, ""))))
    assert [name for name in ("layers=2", "layers=3", "layers=4", "apart") if f"{name}</text>" in text] == [
        "layers=2",
        "apart",
    ]


def test_the_command_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "modeling_toy.py"
    source.write_text("")
    monkeypatch.setattr(memory_command, "subject_of", lambda *_: (target_of(source), None))
    monkeypatch.setattr(memory_command, "ask", lambda *_: Estimated(ENVIRONMENT, ESTIMATE))
    report = tmp_path / "report.html"
    outcome = CliRunner().invoke(memory_command.memory, [str(source), "--report", str(report)])
    assert (outcome.exit_code, outcome.exception) == (0, None)
    assert "<title>Memory of ToyModel</title>" in report.read_text(encoding="utf-8")
