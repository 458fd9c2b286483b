"""The right safe fixes of before are still made, or it is written down which promise each one broke."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ecosystem.reported import reported
from tests.ecosystem.safe_fixes import RELEASES, lost, reasons, recorded, unexplained

_COUNTS = {"4.52.4": 306, "4.57.6": 56}
_REASON = re.compile(r"(?:promise [1-4]|not whole|not a defect): \w")
_IN_CASE = "either repair the rule, or write into safe-fixes-lost.toml which promise the fix broke"


@pytest.mark.parametrize("version", RELEASES)
def test_the_record_is_complete(version: str) -> None:
    assert recorded(version).total() == _COUNTS[version]


@pytest.mark.parametrize("version", RELEASES)
def test_each_reason_is_of_a_known_kind_and_about_a_recorded_fix(version: str) -> None:
    known = reasons(version)
    assert known.keys() <= recorded(version).keys()
    assert [entry for entry, reason in known.items() if not _REASON.match(reason)] == []


@pytest.mark.releases
@pytest.mark.parametrize("version", RELEASES)
def test_no_safe_fix_is_lost_without_a_reason(release: Callable[[str], Path], version: str) -> None:
    found = reported(release(version))
    assert unexplained(version, found) == [], _IN_CASE
    assert reasons(version).keys() <= lost(version, found).keys(), "these are made again"
