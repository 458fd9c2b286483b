"""An estimate of memory as text, on a terminal and in a pipe."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from gclint.report.memory import write
from gclint.verify.memory import Estimated
from gclint.verify.worker.estimates import Help, ModeEstimate
from tests.estimates import ESTIMATE, GIGA
from tests.page.sample import ENVIRONMENT
from tests.terminal import Terminal


def _written(stream: io.StringIO, *, error: str = "") -> list[str]:
    estimate = ESTIMATE
    if error:
        estimate = replace(estimate, modes=(*estimate.modes[:2], ModeEstimate("reentrant", error=error)))
    write(Estimated(ENVIRONMENT, estimate), stream)
    return stream.getvalue().splitlines()


def test_a_terminal_gets_no_line_that_is_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    lines = _written(Terminal(), error="RuntimeError: what stands in the way of it, in many words")
    assert [line for line in lines if len(line.rstrip()) > 60] == []
    place = next(number for number, line in enumerate(lines) if line.startswith("reentrant cannot"))
    assert lines[place : place + 2] == [
        "reentrant cannot be run: RuntimeError: what stands in the",
        "    way of it, in many words",
    ]


def test_a_pipe_gets_one_line_for_each_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = _written(io.StringIO(), error="RuntimeError: no")
    head = next(number for number, line in enumerate(lines) if line.startswith("checkpointing"))
    assert lines[head].split("  ")[-1].strip() == "more"
    assert "saved for backward" in lines[head]
    assert [line.split("  ")[0] for line in lines[head + 1 : head + 4]] == [
        "no checkpointing",
        "non-reentrant",
        "reentrant",
    ]
    assert lines[head + 4] == "reentrant cannot be run: RuntimeError: no"


def test_what_fits_is_the_first_thing() -> None:
    stream = io.StringIO()
    write(Estimated(ENVIRONMENT, ESTIMATE), stream)
    first = "80.00 GB fits a batch of 3 of 4,096 tokens with checkpointing; without it, not even 1."
    assert stream.getvalue().splitlines()[0] == first
    fits = tuple(replace(each, largest=0) for each in ESTIMATE.fits)
    helps = (Help("--lora r=16", 70 * GIGA), Help("--shard zero3:8", 90 * GIGA))
    stream = io.StringIO()
    write(Estimated(ENVIRONMENT, replace(ESTIMATE, fits=fits, helps=helps)), stream)
    assert stream.getvalue().splitlines()[:3] == [
        "80.00 GB fits no batch of 4,096 tokens, also with checkpointing: 1 needs 70.00 GB.",
        "    --lora r=16: 1 needs 70.00 GB, which fits",
        "    --shard zero3:8: 1 needs 90.00 GB, which does not fit either",
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "its boundary, 1 x 8 x 2 = 64 B, and nothing else."),
        ({"recomputed": False}, "64 B: it is not checkpointed."),
        ({"added_bytes": 96}, "96 B: its boundary, 1 x 8 x 2 = 64 B, and in addition"),
    ],
)
def test_what_another_block_adds_is_said(change: dict[str, Any], words: str) -> None:
    (addition,) = ESTIMATE.additions
    stream = io.StringIO()
    write(Estimated(ENVIRONMENT, replace(ESTIMATE, additions=(replace(addition, **change),))), stream)
    what = "2 blocks of Layer in model.layers; with checkpointing, each additional block adds"
    assert f"{what} {words}" in stream.getvalue().splitlines()
