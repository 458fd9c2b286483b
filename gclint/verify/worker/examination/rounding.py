"""Distinguishes wrong results from rounding, by runs that differ only in rounding."""

from __future__ import annotations

from dataclasses import replace

from gclint.verify.worker.examination.case import Case
from gclint.verify.worker.examination.noise import Key, differences, noise
from gclint.verify.worker.examination.run import Conditions, Run
from gclint.verify.worker.examination.runner import Runner

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
