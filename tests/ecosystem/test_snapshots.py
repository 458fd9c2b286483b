"""What gclint reports on real releases is what somebody has looked at."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ecosystem.regenerate import (
    BEYOND,
    CONVERTED_RELEASE,
    FINDINGS_RELEASES,
    beyond_text,
    converted_by_hand,
    findings_snapshot,
    findings_text,
    reviewed,
)
from tests.ecosystem.reported import Reported, reported
from tests.ecosystem.third_party import UNREVIEWED

_IN_CASE = "if that is right: python3 -m tests.ecosystem.regenerate, and review the difference"


@pytest.mark.releases
def test_what_was_converted_by_hand_is_reported(release: Callable[[str], Path]) -> None:
    found = [each for each in reported(release(CONVERTED_RELEASE)) if each.code in ("GC001", "GC302")]
    keys = {key for each in found for key in each.keys}
    assert len(converted_by_hand()) == 261
    assert len(converted_by_hand() & keys) >= 255


@pytest.mark.releases
def test_what_is_reported_beyond_that_is_reviewed(release: Callable[[str], Path]) -> None:
    found = reported(release(CONVERTED_RELEASE))
    text = BEYOND.read_text(encoding="utf-8")
    assert text.splitlines() == beyond_text(found, converted_by_hand(), reviewed()).splitlines(), _IN_CASE


@pytest.mark.releases
@pytest.mark.parametrize("version", FINDINGS_RELEASES)
def test_findings_are_reviewed(release: Callable[[str], Path], version: str) -> None:
    text = findings_snapshot(version).read_text(encoding="utf-8")
    assert text.splitlines() == findings_text(reported(release(version))).splitlines(), _IN_CASE


def test_nothing_waits_for_a_reason() -> None:
    assert UNREVIEWED not in BEYOND.read_text(encoding="utf-8")


def test_nothing_else_than_a_trunk_is_accepted_as_reviewed() -> None:
    names = [key for table in ("modeling", "modular") for key in reviewed()[table]]
    assert [name for name in names if re.search("Head|HifiGan|Vocoder|Pyramid|FPN|Fusion", name)] == []


def test_reasons_are_kept_and_missing_ones_are_asked_for() -> None:
    found = [
        Reported("GC001", f"x/{name}.py", "Layer", (), "safe fix", "")
        for name in ("modeling_a", "modeling_b", "modeling_c", "modular_c")
    ]
    found.append(Reported("GC003", "x/modeling_d.py", "Layer", ("hidden_states",), "safe fix", ""))
    expected = ["modeling_a.py::Layer", "modeling_e.py::Layer"]
    reasons = {"modeling": {"modeling_b.py::Layer": 'the "b"', "modeling_gone.py::Layer": "old"}}
    text = beyond_text(found, expected, reasons)
    assert [line for line in text.splitlines() if line and not line.startswith("#")] == [
        "[modeling]",
        r'"modeling_b.py::Layer" = "the \"b\""',
        '"modeling_c.py::Layer" = "UNREVIEWED"',
        "[modular]",
        '"modular_c.py::Layer" = "UNREVIEWED"',
        "[not-reported]",
        '"modeling_e.py::Layer" = "UNREVIEWED"',
    ]
