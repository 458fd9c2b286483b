"""What is written down of set-ups speaks of those that there are, and of many model types."""

from __future__ import annotations

import pytest

from gclint.verify.worker.practices import PRACTICES
from tests.ecosystem.regenerate import SNAPSHOTS
from tests.ecosystem.setups import RELEASE


@pytest.mark.parametrize("group", ["peft", "wrapper", "autocast"])
def test_a_snapshot_speaks_of_the_rows_that_there_are(group: str) -> None:
    text = (SNAPSHOTS / f"setups-{group}-{RELEASE}.txt").read_text(encoding="utf-8")
    lines = [line.split(" | ") for line in text.splitlines()]
    usual = {each.name for each in PRACTICES if each.group == group and each.is_usual}
    assert {line[1] for line in lines} == usual | {"use"}
    assert len({line[0] for line in lines}) >= 40
