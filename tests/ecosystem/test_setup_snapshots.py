"""What is written down of set-ups speaks of those that there are, and of many model types."""

from __future__ import annotations

import pytest

from gclint.verify.worker.practices import PRACTICES
from tests.ecosystem.regenerate import SNAPSHOTS
from tests.ecosystem.setups import RELEASE


@pytest.mark.parametrize("group", ["ddp", "peft", "wrapper", "autocast"])
def test_a_snapshot_speaks_of_the_rows_that_there_are(group: str) -> None:
    text = (SNAPSHOTS / f"setups-{group}-{RELEASE}.txt").read_text(encoding="utf-8")
    lines = [line.split(" | ") for line in text.splitlines()]
    usual = {each.name for each in PRACTICES if each.group == group and each.is_usual}
    assert {line[1] for line in lines} == usual | {"use"}
    assert len({line[0] for line in lines}) >= 40


def test_the_laws_of_distributed_data_parallel_hold_for_all_that_was_run() -> None:
    text = (SNAPSHOTS / f"setups-ddp-{RELEASE}.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        _, name, *cells = line.split(" | ")
        if name == "N/find-unused":
            assert "works" in cells, line
        elif name == "R/find-unused":
            assert "marked as ready twice" in cells, line
        elif name == "R/plain" and "two forwards" in cells:
            assert "fails" in cells, line
        elif name.startswith("N/") and "fails" in cells:
            # It is not checkpointing that fails; without it, the Trainer would choose another setting.
            assert "unused parameters" in cells, line
            assert name == "N/Trainer" or line.endswith("without checkpointing as well"), line
        elif name.endswith("Trainer/LoRA"):
            assert "find_unused_parameters=True" in line
