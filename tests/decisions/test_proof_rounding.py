"""Whether a difference is rounding: which runs are made to find out, and what they decide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from tests.decisions import proofs
from tests.decisions.proofs import comparison, failing, tensor

pytestmark = pytest.mark.torch

_REST = {"rest": [1.0, 1.0], "other": [2.0, 2.0]}
_SLIGHTLY = 1.003
"""A gradient that differs from 1 by more than ten times the noise, and too little to be an error for sure."""
_NOISE = 5e-5


class _Runner:
    """Returns what steps would give, and remembers how they were asked for.

    Without checkpointing, the gradient of ``w`` is 1, and with it ``found``. ``exactly`` is what it is in
    double precision with checkpointing, and ``noise`` what the last bits of the parameters change.
    """

    def __init__(
        self,
        found: float = _SLIGHTLY,
        exactly: float = 1.0,
        noise: float = _NOISE,
        *,
        exact_noise: float = 0.0,
        fails: str = "",
    ) -> None:
        self.asked: list[tuple[str, int, bool]] = []
        self.facts: list[Any] = []
        self._values = {("plain", False): 1.0, ("reentrant", False): found, ("plain", True): 1.0}
        self._values["reentrant", True] = exactly
        self._noise = {False: noise, True: exact_noise}
        self._fails = fails

    def run(self, conditions: Any, scales: Mapping[str, float]) -> Any:
        mode, exact = conditions.mode, conditions.exact
        self.asked.append((mode, conditions.perturbed, exact))
        self.facts.append((conditions, scales))
        kind = "exact" if exact else "perturbed" if conditions.perturbed else "again"
        error = ("RuntimeError", "in the second step") if f"{kind} {mode}" == self._fails else None
        value = self._values[mode, exact] + conditions.perturbed * self._noise[exact]
        run = proofs.run(mode, [self.step(value, exact)], error=error)
        run.conditions, run.scales = conditions, dict(scales)
        return run

    def step(self, value: float, exact: bool = False) -> Any:
        gradients = {**_REST, "w": [value, 1.0]}
        dtype = "float64" if exact else "float32"
        return {"gradients": {name: tensor(each, dtype) for name, each in gradients.items()}}

    def comparison(self) -> Any:
        """Return the comparison of the first two runs."""
        plain, found = (self._values[mode, False] for mode in ("plain", "reentrant"))
        return comparison({"steps": [self.step(plain)]}, {"steps": [self.step(found)]})


def _sharpened(runner: _Runner) -> Any:
    from gclint.verify.worker.examination.runner import Rounding

    return Rounding(runner).sharpened(runner.comparison())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("runner", "fails"),
    [
        # Another kernel, whose rounding nothing has measured.
        ({}, False),
        # The same difference is there however exactly is computed.
        ({"exactly": _SLIGHTLY}, True),
        # Rounding hides whether it is right: double precision shows it.
        ({"found": 1.05, "noise": 0.01}, False),
        ({"found": 1.05, "noise": 0.01, "exactly": 1.05}, True),
        # Nothing is so slight without any noise.
        ({"noise": 0.0}, True),
        # A model that cannot be run in double precision is judged by what there is.
        ({"fails": "exact plain"}, True),
        ({"fails": "exact reentrant"}, True),
    ],
)
def test_double_precision_decides_where_rounding_may_explain_a_difference(
    runner: dict[str, Any], fails: bool
) -> None:
    compared = _sharpened(_Runner(**runner))
    assert failing(compared) == ({"gradients": ("w",)} if fails else {})
    assert compared.is_meaningful


@pytest.mark.parametrize(
    ("runner", "is_asked"),
    [
        ({}, True),
        ({"found": 1.05, "noise": 0.01}, True),
        # What is the same, or an error for sure, needs no further run.
        ({"found": 1.0}, False),
        ({"found": 2.0}, False),
    ],
)
def test_double_precision_is_asked_only_if_it_can_show_more(runner: dict[str, Any], is_asked: bool) -> None:
    made = _Runner(**runner)
    compared = _sharpened(made)
    assert ("reentrant", 0, True) in made.asked or not is_asked
    assert any(exact for _, _, exact in made.asked) is is_asked
    assert (compared.exact is not None) is is_asked


def test_what_is_zero_but_for_rounding_is_not_computed_more_exactly() -> None:
    runner = _Runner(noise=1e-6)
    steps = [runner.step(each) for each in (1.0, 1.0)]
    for step, value in zip(steps, (2e-6, -2e-6), strict=True):
        step["gradients"]["bias"] = tensor([value, value])
    compared = comparison(
        *({"steps": [step]} for step in steps), noise={("gradient", "bias"): 1e-6}, unstable=frozenset()
    )
    from gclint.verify.worker.examination.runner import Rounding

    class Perturbing(_Runner):
        def run(self, conditions: Any, scales: Mapping[str, float]) -> Any:
            run = super().run(conditions, scales)
            value = 2e-6 * (1 - conditions.perturbed)
            run.steps[0].gradients["bias"] = tensor([value, value])
            return run

    made = Perturbing(noise=0.0)
    sharper = Rounding(made).sharpened(compared)  # type: ignore[arg-type]
    assert sharper.vanishing == ("bias",)
    assert not any(exact for _, _, exact in made.asked)


def test_noise_is_measured_once_for_each_reference_and_with_several_perturbations() -> None:
    from dataclasses import replace

    from gclint.verify.worker.examination.runner import Rounding

    runner = _Runner(found=1.0)
    rounding = Rounding(runner)  # type: ignore[arg-type]
    first = rounding.sharpened(runner.comparison())
    assert runner.asked == [("plain", 0, False), ("plain", 1, False), ("plain", 2, False)]
    # The larger of both effects.
    assert first.noise["gradient", "w"] == pytest.approx(2 * _NOISE, rel=1e-2)
    assert rounding.sharpened(runner.comparison()).noise == first.noise
    assert len(runner.asked) == 3
    # Other steps have a noise of their own.
    other = comparison(scenario="two forwards")
    rounding.sharpened(replace(other, reference=replace(other.reference, steps=first.reference.steps)))
    assert len(runner.asked) == 6


def test_a_run_that_cannot_be_perturbed_gives_no_noise() -> None:
    compared = _sharpened(_Runner(fails="perturbed plain"))
    assert compared.noise == {}
    assert failing(compared) == {"gradients": ("w",)}


def test_what_differs_between_plain_runs_is_no_error() -> None:
    class Unsteady(_Runner):
        def run(self, conditions: Any, scales: Mapping[str, float]) -> Any:
            run = super().run(conditions, scales)
            run.steps[0].gradients["w"] = tensor([2.0, 1.0])
            return run

    compared = _sharpened(Unsteady(found=3.0))
    assert compared.unstable == {("gradient", "w")}
    assert failing(compared) == {}
    assert compared.changing == ("w",)


def test_what_was_known_to_differ_still_does() -> None:
    from dataclasses import replace

    from gclint.verify.worker.examination.runner import Rounding

    runner = _Runner(found=3.0)
    known = frozenset({("gradient", "w")})
    compared = Rounding(runner).sharpened(replace(runner.comparison(), unstable=known))  # type: ignore[arg-type]
    assert compared.unstable == known


def test_a_run_is_repeated_with_the_scales_of_its_first_and_without_looking_for_blocks() -> None:
    from dataclasses import replace

    from gclint.verify.worker.examination.runner import Rounding

    runner = _Runner()
    compared = runner.comparison()
    for run, scale in ((compared.reference, 1.0), (compared.run, 4.0)):
        run.scales = {"hidden": scale}
        run.conditions = replace(run.conditions, finds_blocks=True)
    Rounding(runner).sharpened(compared)  # type: ignore[arg-type]
    assert {scales["hidden"] for conditions, scales in runner.facts if conditions.mode == "plain"} == {1.0}
    assert {scales["hidden"] for conditions, scales in runner.facts if conditions.mode != "plain"} == {4.0}
    assert not any(conditions.finds_blocks for conditions, _ in runner.facts)


def test_what_is_computed_exactly_from_the_start_is_repeated_exactly() -> None:
    from dataclasses import replace

    from gclint.verify.worker.examination.runner import Rounding

    runner = _Runner(found=1.0)
    compared = runner.comparison()
    compared.reference.conditions = replace(compared.reference.conditions, exact=True)
    steps = [proofs.step(**runner.step(1.0, exact=True))]
    exact = replace(compared, reference=replace(compared.reference, steps=steps), run=compared.run)
    Rounding(runner).sharpened(exact)  # type: ignore[arg-type]
    assert {exact for _, _, exact in runner.asked[:3]} == {True}


def test_in_double_precision_rounding_is_measured_again() -> None:
    runner = _Runner(found=1.05, noise=0.01, exactly=1 + 1e-5, exact_noise=2e-6)
    compared = _sharpened(runner)
    assert compared.exact.noise["gradient", "w"] == pytest.approx(4e-6)
    assert failing(compared) == {}
    # Without any effect of rounding there, the same is an error.
    other = _Runner(found=1.05, noise=0.01, exactly=1 + 1e-5)
    assert failing(_sharpened(other)) == {"gradients": ("w",)}


def test_infinite_noise_is_left_to_the_checks() -> None:
    compared = _sharpened(_Runner(found=math.inf, noise=0.01))
    assert failing(compared) == {"gradients": ("w",)}
