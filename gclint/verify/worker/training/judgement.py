"""Judges the steps of a practice, as a row of the result."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gclint.verify.worker.examination.agreement import Agreement, is_nothing
from gclint.verify.worker.examination.comparison import ENOUGH, UNSETTLED
from gclint.verify.worker.examination.fault import NO_GRADIENT, Fault
from gclint.verify.worker.examination.phrases import described, names
from gclint.verify.worker.practices import LOST, NOTHING_RECOMPUTED, WRONG, Practice
from gclint.verify.worker.protocol import SetUp, SetUpOutcome
from gclint.verify.worker.training.group import PracticeGroup
from gclint.verify.worker.training.practice_run import PracticeRun

NOT_COMPARED = "not compared"
READY_TWICE, UNUSED = "marked as ready twice", "unused parameters"
_SYMPTOMS = (
    (re.compile(r"mark(ed)? (as|a variable) ready (twice|only once)"), READY_TWICE),
    (re.compile(r"Expected to have finished reduction"), UNUSED),
    (re.compile(r"backward through the graph a second time"), "graph freed too early"),
    (re.compile(r"training graph has changed"), "graph changed"),
    (re.compile(r"Timed out waiting|[Cc]onnection closed by peer"), "ranks out of step"),
    (re.compile(r"A different number of tensors was saved|different metadata"), "recomputed otherwise"),
    (re.compile(r"does not require grad|no gradient"), "no gradient"),
    (re.compile(r"The size of tensor a \(\d+\) must match"), "sizes do not match"),
)
"""Messages of libraries, and the symptoms for them."""
_NAMED = re.compile(r"did not receive grad for rank \d+: ([^\n]+)|with name (\S+) has been marked as ready")
"""The parameters that DistributedDataParallel names."""


def judge(
    practice: Practice,
    group: PracticeGroup,
    reference: PracticeRun,
    run: PracticeRun,
    noise: Mapping[tuple[int, str], float],
) -> SetUp:
    """Return the row of a practice, in comparison with a reference.

    The effect of rounding on the gradients of that, as far as it was measured, is known by step and name.
    """
    if run.refusal is not None:
        return _row(practice, run, "not run", run.refusal.symptom, str(run.refusal))
    if run.error is not None:
        is_late = group.is_slow and run.error.kind == "time limit"
        outcome: SetUpOutcome = "not run" if run.error.is_foreign or is_late else "fails"
        about = _named(run.error)
        message = f"{how_it_ended(run)} ({names(about)})" if about else how_it_ended(run)
        return _row(practice, run, outcome, symptom_of(run.error), message, about)
    found = _compared(practice, group, reference, run, noise)
    is_seen = bool(run.recorded) or run.saved_bytes is not None
    is_again = any(run.recomputed.values()) or _saves(reference, run)
    if practice.mode != "plain" and run.gradients and is_seen and not is_again:
        return _row(practice, run, "fails", NOTHING_RECOMPUTED, "no block ran again in a backward pass")
    if run.bad is not None:
        return _row(practice, run, "fails", *run.bad)
    if found.lost:
        message = f"{_counted(found.lost)} a gradient only without checkpointing: {names(found.lost)}"
        return _row(practice, run, "fails", LOST, message, tuple(found.lost))
    if found.wrong:
        message = (
            f"{_counted(found.wrong)} a different gradient than without checkpointing: {names(found.wrong)}"
        )
        return _row(practice, run, "fails", WRONG, message, tuple(found.wrong))
    if len(found.unknown) > (1 - ENOUGH) * len(found.all):
        message = f"the effect of rounding on the gradients of {names(found.unknown)} is too large"
        return _row(practice, run, "not run", NOT_COMPARED, message, tuple(found.unknown))
    if len(found.infinite) > (1 - ENOUGH) * len(found.all):
        message = f"the gradients of {names(found.infinite)} are not finite, so nothing can be compared"
        return _row(practice, run, "not run", NOT_COMPARED, message, tuple(found.infinite))
    if not found.all:
        return _row(practice, run, "not run", NOT_COMPARED, "no parameter has a gradient to compare")
    if practice.mode != "plain" and not is_seen:
        message = "no block was seen to run, so whether any is recomputed is not known"
        return _row(practice, run, "not run", NOT_COMPARED, message)
    return _row(practice, run, "works", message="" if practice.mode == "plain" else _partly(run))


def _saves(reference: PracticeRun, run: PracticeRun) -> bool:
    """Return whether less is kept for the backward pass: what is not a block is recomputed, or lost."""
    before, after = reference.saved_bytes, run.saved_bytes
    return before is not None and after is not None and after < before


def _partly(run: PracticeRun) -> str:
    """Return a message if only some of the blocks that ran were recomputed."""
    ran, again = (sum(map(bool, each.values())) for each in (run.recorded, run.recomputed))
    return f"only {again} of {ran} blocks were recomputed" if 0 < again < ran else ""


def symptom_of(fault: Fault) -> str:
    """Return the kind of an error in two or three words."""
    return next((name for pattern, name in _SYMPTOMS if pattern.search(fault.message)), fault.kind)


def _named(fault: Fault) -> tuple[str, ...]:
    """Return the names of the parameters in an error, if any."""
    found = _NAMED.search(fault.message)
    return tuple(sorted((found[1] or found[2]).split(", "))) if found else ()


def how_it_ended(run: PracticeRun) -> str:
    """Return how steps that failed ended, in words."""
    assert run.error is not None
    if run.error.is_death:
        return f"there was {run.error.message} during {run.stage}"
    if run.error.kind == NO_GRADIENT:
        return f"{run.stage} returns nothing that requires grad"
    return f"{run.stage} raises {described(run.error)}"


@dataclass(frozen=True)
class _Comparison:
    """The names of parameters, each in order and once."""

    all: dict[str, None] = field(default_factory=dict)
    """Those with a gradient in any of the steps."""
    lost: dict[str, None] = field(default_factory=dict)
    wrong: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    """Those that cannot be judged because of rounding."""
    infinite: dict[str, None] = field(default_factory=dict)
    """Those that are not finite in the reference either, so that no mistake could be seen in them."""


def _counted(parameters: Collection[str]) -> str:
    return f"{len(parameters)} parameter{' has' if len(parameters) == 1 else 's have'}"


def _compared(
    practice: Practice,
    group: PracticeGroup,
    reference: PracticeRun,
    run: PracticeRun,
    noise: Mapping[tuple[int, str], float],
) -> _Comparison:
    """Compare the gradients of all steps."""
    result = _Comparison()
    for number, (expected, found) in enumerate(zip(reference.gradients, run.gradients, strict=False)):
        for name in {**expected, **found}:
            one, other = expected.get(name), found.get(name)
            if is_nothing(one) and is_nothing(other):
                continue
            result.all[name] = None
            if one is None or other is None:
                (result.lost if other is None else result.wrong)[name] = None
                continue
            agreement = group.agreement(practice, one, other, noise.get((number, name), 0.0))
            if agreement in UNSETTLED:
                result.unknown[name] = None
            elif agreement is Agreement.DIFFERENT:
                (result.lost if is_nothing(other) else result.wrong)[name] = None
            elif not one.isfinite().all():
                result.infinite[name] = None
    return result


def _row(
    practice: Practice,
    run: PracticeRun,
    outcome: SetUpOutcome,
    symptom: str = "",
    message: str = "",
    parameters: tuple[str, ...] = (),
) -> SetUp:
    message = "; ".join(each for each in (message, run.remark) if each)
    has_run = run.refusal is None and any(run.recorded.values())
    return SetUp(
        practice.group,
        practice.name,
        practice.data,
        outcome,
        symptom,
        message,
        parameters,
        sum(map(bool, run.recomputed.values())) if has_run else None,
        sum(map(bool, run.recorded.values())) if has_run else None,
        run.saved_bytes,
    )
