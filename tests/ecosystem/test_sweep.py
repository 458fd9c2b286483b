"""What the verifier says about a release is what somebody has looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ecosystem.environments import release_environment
from tests.ecosystem.sweep import RELEASE, read_sweep, snapshot, sweep, sweep_text
from tests.environment import EnvironmentUnavailable

pytestmark = [pytest.mark.releases, pytest.mark.torch]

_SHARDS = ("1/32", "9/32", "17/32", "25/32")
"""All of it takes half an hour: ``python3 -m tests.ecosystem.sweep``."""
_CLASSES = 1600
"""That say that they can be checkpointed."""
_RUN = 0.99
"""Of these."""
_WHOLE = 0.94
"""Of those that are run, how many with all parts of some size."""


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each class and what is said of it."""
    for block in re.split(r"\n(?=\S)", text.strip()):
        yield block.partition(":")[0], block


@pytest.mark.sweep
@pytest.mark.drawn(full=1)
@pytest.mark.parametrize("shard", _SHARDS)
def test_a_part_of_the_models_does_what_is_written_down(shard: str, tmp_path: Path) -> None:
    try:
        python = release_environment(RELEASE)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    results = tmp_path / "results.jsonl"
    # 2 is for a file that cannot be imported.
    assert sweep(python, results, "--shard", shard, "--device", "cpu") in (0, 1, 2)
    found = dict(_blocks(sweep_text(read_sweep(results))))
    assert len(found) > _CLASSES / 64
    known = dict(_blocks(snapshot(RELEASE).read_text(encoding="utf-8")))
    assert found == {name: known.get(name) for name in found}


def test_nearly_all_models_are_run() -> None:
    known = dict(_blocks(snapshot(RELEASE).read_text(encoding="utf-8")))
    supporting = [block for block in known.values() if ": not run (no support flag)" not in block]
    assert len(supporting) == _CLASSES
    run = [block for block in supporting if ": not run (" not in block]
    assert len(run) >= _RUN * _CLASSES
    whole = [block for block in run if "; without " not in block]
    assert len(whole) >= _WHOLE * len(run)
