"""Telling what is wrong from what rounding makes of it, by runs that differ in nothing but rounding."""

from __future__ import annotations

from dataclasses import replace

from gclint.verify.worker.examination.case import Case
from gclint.verify.worker.examination.noise import Key, differences, noise
from gclint.verify.worker.examination.run import Conditions, Run
from gclint.verify.worker.examination.runner import Runner

_TIMES = 2
"""How often the last bits of all parameters are changed."""


class Rounding:
    """Makes the further runs that it takes, once for each reference."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._known: dict[Conditions, tuple[frozenset[Key], dict[Key, float]]] = {}

    def sharpened(self, case: Case) -> Case:
        """Return a case that knows what is others in each plain run, and what rounding changes.

        What that leaves nothing to judge of, or finds nearly right, is run in double precision, where the
        model can be: there rounding changes far less, and what is wrong stays as wrong as it was. That would
        not help gradients that are zero but for rounding, as of a bias in front of a normalisation.
        """
        case = self._measured(case)
        if not _is_worth(case):
            return case
        reference, run = (self._again(each, exact=True) for each in (case.reference, case.run))
        if reference.error is not None or run.error is not None:
            return case
        return replace(case, exact=self._measured(replace(case, reference=reference, run=run)))

    def _measured(self, case: Case) -> Case:
        reference = case.reference
        if reference.conditions not in self._known:
            again = self._again(reference)
            others = (again, *(self._again(reference, shaken=number + 1) for number in range(_TIMES)))
            self._known[reference.conditions] = (
                differences(reference, again),
                noise(reference, (each for each in others if each.error is None)),
            )
        unstable, noises = self._known[reference.conditions]
        return replace(case, unstable=case.unstable | unstable, noise=noises)

    def _again(self, run: Run, *, shaken: int = 0, exact: bool = False) -> Run:
        """Repeat a run, but for the rounding in it."""
        conditions = replace(
            run.conditions, shaken=shaken, exact=exact or run.conditions.exact, dissected=False
        )
        return self._runner.run(conditions, run.scales)


def _is_worth(case: Case) -> bool:
    """Return whether there is more to find in double precision than that a gradient is zero."""
    return bool(case.near or set(case.blurred).difference(case.vanishing))
