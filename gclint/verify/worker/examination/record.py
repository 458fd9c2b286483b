"""Verdicts with everything that a run showed, to compare two versions of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gclint.verify.worker.examination.case import Case, Symptom
from gclint.verify.worker.examination.causes import explained
from gclint.verify.worker.protocol import Observation, Verdict


def verdict(case: Case, symptoms: Iterable[Symptom]) -> Verdict:
    """Return everything that a run showed.

    Args:
        case: the run, and what it is compared with.
        symptoms: what the checks found.
    """
    run = case.run
    ran = [block.name for block in case.blocks if run.forward[block.name]]
    return Verdict(
        run.conditions.scenario.name,
        run.mode,
        tuple(_observations(case, list(symptoms))),
        case.compared + len(case.vanishing),
        (*(name for name in case.blurred if name not in case.vanishing), *case.changing, *case.not_finite),
        tuple(name for name in ran if name in case.recomputed) if run.error is None else (),
        run.steps[0].saved_bytes + run.steps[0].held_bytes if run.steps else None,
    )


def _observations(case: Case, symptoms: list[Symptom]) -> Iterator[Observation]:
    for group, explanation in explained(case, symptoms):
        for symptom in group:
            about = symptom.about or symptom.parameters or symptom.blocks
            yield Observation(
                symptom.kind or symptom.check, symptom.message, about, explanation.cause, explanation.text
            )
    # The check of the later steps applies only if the first one is right.
    if symptoms and case.later and not any(each.check == "second step" for each in symptoms):
        yield Observation("second step", "a later step has further differences", case.later)
