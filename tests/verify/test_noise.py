"""Where two runs of the same steps differ, also where only one of them has something."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch


def _run(*steps: dict[str, Any], **attributes: Any) -> Any:
    """Return a run with a step for each dictionary of outputs."""
    from gclint.verify.worker.examination.run import Conditions, Run, TrainingStep
    from gclint.verify.worker.scenarios import scenario_named

    taken = [TrainingStep(0.0, None, outputs, {}, 0, 0.0, None) for outputs in steps]
    return Run(Conditions(scenario_named("default"), "plain"), taken, attributes=attributes)


def test_an_output_or_attribute_that_only_one_run_has_is_a_difference() -> None:
    import torch

    from gclint.verify.worker.examination.run import differences

    ones = torch.ones(2)
    one = _run({"both": ones, "first": ones}, kept=ones, same=1)
    other = _run({"both": ones.clone(), "second": ones}, kept=None, same=1)
    assert differences(one, other) == {("output", "first"), ("output", "second"), ("attribute", "kept")}
    assert differences(other, one) == differences(one, other)


def test_noise_is_the_largest_difference_of_all_runs() -> None:
    import torch

    from gclint.verify.worker.examination.run import noise

    def run(output: float, count: int = 1) -> Any:
        return _run({"output": torch.tensor([output]), "same": torch.ones(1)}, count=count)

    found = noise(run(1.0), [run(1.5), run(0.0), run(1.25, count=2)])
    assert found == {("output", "output"): 1.0, ("attribute", "count"): float("inf")}


def test_what_only_some_runs_have_may_differ_by_any_amount() -> None:
    import torch

    from gclint.verify.worker.examination.run import noise

    with_both = _run({"first": torch.ones(1), "second": torch.ones(1)}, kept=torch.ones(1), same=None)
    with_one = _run({"first": torch.ones(1)}, kept=None, same=None)
    for one, other in ((with_both, with_one), (with_one, with_both)):
        found = noise(one, [one, other])
        assert found == {("output", "second"): float("inf"), ("attribute", "kept"): float("inf")}


def test_a_gradient_that_one_run_lacks_counts_as_zero_and_only_common_steps_are_compared() -> None:
    import torch

    from gclint.verify.worker.examination.run import noise

    one, other = _run({}, attribute=1), _run({}, {"output": torch.ones(1)}, attribute=2)
    one.steps[0].gradients.update(first=torch.ones(1), both=torch.ones(1), none=None)
    other.steps[0].gradients.update(second=torch.full((1,), 2.0), both=torch.ones(1), none=torch.zeros(1))
    expected = {("gradient", "first"): 1.0, ("gradient", "second"): 2.0}
    assert noise(one, [other]) == expected
    assert noise(other, [one]) == expected
