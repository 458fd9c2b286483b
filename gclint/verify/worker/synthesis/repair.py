"""What to change after an attempt that failed, told from its error."""

from __future__ import annotations

from collections.abc import Callable

from gclint.verify.worker.synthesis import (
    repair_configuration,
    repair_images,
    repair_inputs,
    repair_modalities,
    repair_sound,
)
from gclint.verify.worker.synthesis.failure import Failure
from gclint.verify.worker.synthesis.plan import Plan, Situation
from gclint.verify.worker.synthesis.repair_layers import fit_layer
from gclint.verify.worker.synthesis.switches import switched_on

_REPAIRS: tuple[Callable[[Situation, Failure], Plan | None], ...] = (
    *repair_images.REPAIRS,
    *repair_sound.REPAIRS,
    *repair_modalities.EXACT,
    *repair_inputs.EXACT,
    fit_layer,
    switched_on,
    *repair_configuration.REPAIRS,
    *repair_inputs.GUESSES,
    *repair_modalities.GUESSES,
    *repair_configuration.LAST,
    *repair_images.LAST,
)


def repair(situation: Situation, error: BaseException, tried: list[Plan]) -> Plan | None:
    """Return a plan that is not among those ``tried``, or None where the error says nothing that helps."""
    failure = Failure(error)
    for learn in _REPAIRS:
        plan = learn(situation, failure)
        if plan is not None and plan not in tried:
            return plan
    return None
