"""No check is there for nothing: without it, something that is wrong goes unnoticed."""

from __future__ import annotations

import pytest

from gclint.verify.worker.scenarios import SCENARIOS
from tests.verify.planted import examine_planted

_ONLY_SEEN_BY = {
    "error": "keyword_shared",
    "switches": "never_off",
    "recomputation": "stack_left_out",
    "missing gradients": "nested_output",
    "gradients": "dictionary_shared",
    "loss": "loss_only",
    "outputs": "output_only",
    "values": "values_only",
    "saved bytes": "nothing_saved",
    "double recomputation": "checkpoint_in_checkpoint",
    "buffers": "batch_norm",
    "second step": "alternating",
    "state": "counter_on_self",
    "cache": "cache_written_only",
    "warning": "warning_only",
    "frozen base": "frozen_images",
}
"""For each check a planted model in which no other sees that anything is wrong, but for that of values."""


@pytest.mark.torch
@pytest.mark.parametrize("check", _ONLY_SEEN_BY)
def test_without_a_check_a_defect_goes_unnoticed(check: str) -> None:
    planted = _ONLY_SEEN_BY[check]
    found = examine_planted(planted).failures
    assert {failure.check for failure in found} == {check}
    # What is recomputed as something else is seen there as well, unless it is not recomputed at all.
    assert examine_planted(planted, without={check, "values"}).failures == ()


@pytest.mark.torch
def test_every_check_is_tried_and_made_in_a_scenario() -> None:
    from gclint.verify.worker.examination.checks import CHECKS

    assert set(CHECKS) == set(_ONLY_SEEN_BY)
    assert {name for scenario in SCENARIOS for name in scenario.checks} == set(CHECKS)
