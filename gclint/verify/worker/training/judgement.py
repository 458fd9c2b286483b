"""What the steps of a practice amount to: a row of the result."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gclint.verify.worker.examination.comparison import Agreement, is_nothing
from gclint.verify.worker.examination.fault import NO_GRADIENT, Fault
from gclint.verify.worker.examination.words import described, names
from gclint.verify.worker.practices import Practice
from gclint.verify.worker.protocol import SetUp, SetUpOutcome
from gclint.verify.worker.training.group import Group
from gclint.verify.worker.training.taken import Taken

NOTHING_RECOMPUTED = "nothing recomputed"
LOST = "lost gradients"
WRONG = "wrong gradients"
_SYMPTOMS = (
    (re.compile(r"mark(ed)? (as|a variable) ready (twice|only once)"), "marked as ready twice"),
    (re.compile(r"Expected to have finished reduction"), "unused parameters"),
    (re.compile(r"A different number of tensors was saved|different metadata"), "recomputed otherwise"),
    (re.compile(r"does not require grad|no gradient"), "no gradient"),
)
"""What libraries say, and what it is called."""


def judge(
    practice: Practice, group: Group, reference: Taken, taken: Taken, noise: Mapping[tuple[int, str], float]
) -> SetUp:
    """Return the row of a practice.

    Args:
        practice: what was done.
        group: how it is judged.
        reference: the steps that it is compared with.
        taken: its steps.
        noise: what rounding does to the gradients of the reference, by step and name.
    """
    if taken.refusal is not None:
        return _row(practice, taken, "not run", taken.refusal.symptom, str(taken.refusal))
    if taken.error is not None:
        outcome: SetUpOutcome = "not run" if taken.error.is_foreign else "fails"
        return _row(practice, taken, outcome, symptom_of(taken.error), told(taken))
    if practice.mode != "plain" and not any(taken.recomputed.values()):
        return _row(practice, taken, "fails", NOTHING_RECOMPUTED, "no block ran again in a backward pass")
    if taken.bad is not None:
        return _row(practice, taken, "fails", *taken.bad)
    lost, wrong = _compared(practice, group, reference, taken, noise)
    if lost:
        message = f"{len(lost)} parameters have a gradient without checkpointing only: {names(lost)}"
        return _row(practice, taken, "fails", LOST, message, lost)
    if wrong:
        message = f"{len(wrong)} parameters have other gradients than without checkpointing: {names(wrong)}"
        return _row(practice, taken, "fails", WRONG, message, wrong)
    return _row(practice, taken, "works")


def symptom_of(fault: Fault) -> str:
    """Return the kind of an error in two or three words."""
    return next((name for pattern, name in _SYMPTOMS if pattern.search(fault.message)), fault.kind)


def told(taken: Taken) -> str:
    """Return what steps ended with, in words."""
    assert taken.error is not None
    if taken.error.is_death:
        return f"there was {taken.error.message} during {taken.stage}"
    if taken.error.kind == NO_GRADIENT:
        return f"{taken.stage} returns nothing that requires grad"
    return f"{taken.stage} raises {described(taken.error)}"


def _compared(
    practice: Practice, group: Group, reference: Taken, taken: Taken, noise: Mapping[tuple[int, str], float]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the parameters that lost their gradients, and of those that have other ones."""
    lost: dict[str, None] = {}
    wrong: dict[str, None] = {}
    for number, (expected, found) in enumerate(zip(reference.gradients, taken.gradients, strict=False)):
        for name in {**expected, **found}:
            one, other = expected.get(name), found.get(name)
            if is_nothing(one) and is_nothing(other):
                continue
            if one is None or other is None:
                (lost if other is None else wrong)[name] = None
            elif is_nothing(other):
                lost[name] = None
            elif group.agreement(practice, one, other, noise.get((number, name), 0.0)) is Agreement.DIFFERENT:
                wrong[name] = None
    return tuple(lost), tuple(wrong)


def _row(
    practice: Practice,
    taken: Taken,
    outcome: SetUpOutcome,
    symptom: str = "",
    message: str = "",
    parameters: tuple[str, ...] = (),
) -> SetUp:
    message = "; ".join(each for each in (message, taken.remark) if each)
    has_run = taken.refusal is None and any(taken.recorded.values())
    return SetUp(
        practice.group,
        practice.name,
        practice.data,
        outcome,
        symptom,
        message,
        parameters,
        sum(map(bool, taken.recomputed.values())) if has_run else None,
        sum(map(bool, taken.recorded.values())) if has_run else None,
    )
