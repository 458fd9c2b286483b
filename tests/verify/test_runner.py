"""Whether a run that came to no end hangs, or only the machine is slow."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.verify.worker.ending import HANGS, Cause, End

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("cause", "plain_seconds", "is_foreign"),
    [
        # Nothing is known of how long the steps usually take.
        ("time limit", None, True),
        ("time limit", 2.0 / HANGS, True),
        # More than HANGS times as long as without checkpointing.
        ("time limit", 0.9 / HANGS, False),
        ("crash", None, False),
        ("crash", 2.0 / HANGS, False),
        ("killed", 0.9 / HANGS, True),
    ],
)
def test_only_what_takes_far_longer_than_without_checkpointing_hangs(
    cause: Cause, plain_seconds: float | None, is_foreign: bool
) -> None:
    from gclint.verify.worker.examination.run import Conditions
    from gclint.verify.worker.examination.runner import Runner
    from gclint.verify.worker.scenarios import scenario_named
    from gclint.verify.worker.watch import Watch

    nothing: Any = None
    runner = Runner(nothing, Watch())
    if plain_seconds is not None:
        runner._longest["default"] = plain_seconds
    fault = runner._fault(End(cause, seconds=1.0), Conditions(scenario_named("default"), "reentrant"))
    assert (fault.kind, fault.is_foreign) == (cause, is_foreign)
