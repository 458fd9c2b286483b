"""Distinguishes wrong results from rounding, and measures what rounding does to a mixture of experts.

A little noise can route a token to another expert. Then recomputed tensors have different shapes, or the
gradients are those of other experts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torch import nn

from gclint.verify.worker.examination.case import Case
from gclint.verify.worker.examination.noise import Key, differences, noise
from gclint.verify.worker.examination.phases import expert_implementations
from gclint.verify.worker.examination.run import Conditions, Run
from gclint.verify.worker.examination.runner import Runner
from gclint.verify.worker.examination.words import described
from gclint.verify.worker.protocol import Stability
from gclint.verify.worker.scenarios import scenario_named

_TIMES = 2
"""How many runs with perturbed parameters are made."""


class Rounding:
    """Makes the necessary runs, once for each reference."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._known: dict[Conditions, tuple[frozenset[Key], dict[Key, float]]] = {}

    def sharpened(self, case: Case) -> Case:
        """Return the case with what differs between plain runs, and with the effect of rounding.

        If gradients cannot be compared then, or differ only slightly, the run is repeated in double
        precision, if the model allows it: there, the effect of rounding is far smaller, and errors are as
        large as before. This would not help with gradients that are zero except for rounding, such as that
        of a bias before a normalisation.
        """
        case = self._measured(case)
        if not _is_worthwhile(case):
            return case
        reference, run = (self._again(each, exact=True) for each in (case.reference, case.run))
        if reference.error is not None or run.error is not None:
            return case
        return replace(case, exact=self._measured(replace(case, reference=reference, run=run)))

    def _measured(self, case: Case) -> Case:
        reference = case.reference
        if reference.conditions not in self._known:
            again = self._again(reference)
            others = (again, *(self._again(reference, perturbed=number + 1) for number in range(_TIMES)))
            self._known[reference.conditions] = (
                differences(reference, again),
                noise(reference, (each for each in others if each.error is None)),
            )
        unstable, noises = self._known[reference.conditions]
        return replace(case, unstable=case.unstable | unstable, noise=noises)

    def _again(self, run: Run, *, perturbed: int = 0, exact: bool = False) -> Run:
        """Repeat a run with other rounding."""
        conditions = replace(
            run.conditions, perturbed=perturbed, exact=exact or run.conditions.exact, finds_blocks=False
        )
        return self._runner.run(conditions, run.scales)


def _is_worthwhile(case: Case) -> bool:
    """Return whether double precision can show more than that a gradient is zero."""
    return bool(case.near or set(case.blurred).difference(case.vanishing))


_SEEDS = (1, 2, 3, 4)
_AMPLIFIED = 0.05
"""Noise counts as amplified if gradients change by more than this share of their norm; those of models
without experts change by less than 0.01."""
_FAINT = 1e-3
"""Gradients below this share of the largest one are left out: rounding changes them, too."""


def stability(model: nn.Module, runner: Runner, scales: Mapping[str, float]) -> Iterator[Stability]:
    """Yield how a model with experts reacts to noise, for each implementation of the experts."""
    once = replace(scenario_named("default"), steps=1)
    for implementation in expert_implementations(model):
        conditions = Conditions(once, "non-reentrant", experts=implementation)
        quiet = runner.run(conditions, scales)
        if quiet.error is None:
            noisy = [runner.run(replace(conditions, noise=seed), scales) for seed in _SEEDS]
            yield _graded(implementation or "the only one", quiet, noisy)


def _graded(implementation: str, quiet: Run, noisy: list[Run]) -> Stability:
    moved = [_moved(quiet, each) for each in noisy if each.error is None]
    furthest = max(moved, default=0.0)
    error = next((each.error for each in noisy if each.error is not None), None)
    if error is not None:
        return Stability(implementation, "raises", furthest, described(error))
    return Stability(implementation, "amplifies" if furthest > _AMPLIFIED else "stable", furthest)


def _moved(quiet: Run, noisy: Run) -> float:
    """Return the largest change of the gradient of a parameter, relative to its norm."""
    expected, found = quiet.steps[0].gradients, noisy.steps[0].gradients
    norms = {name: float(each.double().norm()) for name, each in expected.items() if each is not None}
    faint = _FAINT * max(norms.values(), default=0.0)
    shares = []
    for name, norm in norms.items():
        mine, yours = expected[name], found.get(name)
        if norm > faint and mine is not None:
            apart = norm if yours is None else float((mine.double() - yours.double()).norm())
            shares.append(apart / norm)
    return max(shares, default=0.0)
