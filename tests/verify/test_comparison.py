"""When two tensors count as equal: each is measured by its own size, and by what rounding does to it."""

from __future__ import annotations

from typing import Any

import pytest

from gclint.verify.worker.modes import Mode

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("difference", "noise", "expected"),
    [
        (0.0, 0.0, "SAME"),
        (1e-7, 0.0, "SAME"),
        (1e-2, 0.0, "DIFFERENT"),
        # Rounding explains it, and would hide no error.
        (5e-3, 6e-4, "SAME"),
        # Rounding explains it, and would hide any error.
        (0.5, 0.3, "UNKNOWN"),
        # By more than rounding was seen to do, and by little.
        (5e-3, 1e-4, "NEAR"),
        (2e-2, 1e-4, "DIFFERENT"),
        # As a coarser type would change it, and no rounding of this one.
        (5e-3, 1e-6, "DIFFERENT"),
        # Nothing explains it, however much rounding does.
        (50.0, 0.3, "DIFFERENT"),
    ],
)
@pytest.mark.parametrize("size", [1e-20, 1.0, 1e7])
def test_differences_are_measured_by_the_size_of_what_is_compared(
    difference: float, noise: float, expected: str, size: float
) -> None:
    import torch

    from gclint.verify.worker.examination.agreement import Agreement, compare

    one = torch.tensor([1.0, 0.0]) * size
    assert compare(one, one + difference * size, noise * size) is Agreement[expected]


def test_what_is_below_all_normal_numbers_is_nothing() -> None:
    import torch

    from gclint.verify.worker.examination.agreement import close

    assert close(torch.tensor([1e-42]), torch.tensor([3e-42]))


def test_the_difference_of_complex_numbers_is_their_distance() -> None:
    import torch

    from gclint.verify.worker.examination.agreement import deviation

    one = torch.tensor([1 + 1j, 2 - 1j])
    assert deviation(one, one + torch.tensor([3 + 4j, 0j])) == pytest.approx(5.0)


def test_everything_is_computed_in_double_precision_whatever_is_asked_for() -> None:
    import torch

    from gclint.verify.worker.examination.tensors import DoublePrecision, in_type

    inputs = in_type({"states": [torch.ones(2)], "ids": torch.ones(2, dtype=torch.long)}, torch.float64)
    states = inputs["states"][0]
    with DoublePrecision():
        made: list[Any] = [
            states.float(),
            states.to(torch.float16),
            torch.zeros(2, dtype=torch.float32) + states,
            torch.softmax(states, 0, dtype=torch.float32),
        ]
    assert {each.dtype for each in made} == {torch.float64}
    assert inputs["ids"].dtype == torch.long


def test_a_large_output_does_not_drown_a_small_one() -> None:
    import torch

    from gclint.verify.worker.examination.tensors import total_loss

    small, large = (torch.full((4,), size, requires_grad=True) for size in (1e-3, 1e7))
    scales: dict[str, float] = {}
    loss = total_loss({"small": small * 1, "large": large * 1}, scales)
    assert loss is not None
    loss.backward()
    assert scales == pytest.approx({"small": 1e-3, "large": 1e7})
    effects = [
        float((each.grad * each).detach().abs().max()) for each in (small, large) if each.grad is not None
    ]
    assert 0.01 < effects[0] / effects[1] < 100


def test_outputs_are_measured_as_in_the_run_that_is_compared_with() -> None:
    import torch

    from gclint.verify.worker.examination.tensors import total_loss

    output = torch.ones(3, requires_grad=True)
    scales = {"output": 2.0}
    half, whole = total_loss({"output": output * 1}, scales), total_loss({"output": output * 1}, {})
    assert half is not None
    assert whole is not None
    assert float(half.detach()) == pytest.approx(float(whole.detach()) / 2)


@pytest.mark.parametrize(
    ("expected", "found", "is_nothing"),
    [
        # As of a bias before a normalisation, in another order.
        (1e-8, -2e-8, True),
        # Rounding explains it, and it is something in the run that is judged.
        (1e-8, 2e-3, False),
    ],
)
def test_what_is_zero_but_for_rounding_in_both_runs_is_compared(
    expected: float, found: float, is_nothing: bool
) -> None:
    import torch

    from gclint.verify.worker.examination.comparison import Comparison
    from gclint.verify.worker.examination.reporting import verdict
    from gclint.verify.worker.examination.run import Conditions, Run, TrainingStep
    from gclint.verify.worker.scenarios import scenario_named

    def run(mode: Mode, bias: float) -> Run:
        gradients = {"bias": torch.tensor([bias]), "weight": torch.ones(3), "other": torch.ones(3)}
        step = TrainingStep(1.0, None, {}, gradients, 0, 0.0, None, 0)
        return Run(Conditions(scenario_named("default"), mode), steps=[step])

    comparison = Comparison(
        run("plain", expected), run("reentrant", found), (), noise={("gradient", "bias"): 1.0}
    )
    assert comparison.blurred == ("bias",)
    shown = verdict(comparison, ())
    assert (shown.compared, shown.not_compared) == ((3, ()) if is_nothing else (2, ("bias",)))
