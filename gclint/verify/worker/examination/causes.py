"""Finds the causes of symptoms: those of one cause become one failure, which says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gclint.verify.worker.examination.case import Case, Symptom
from gclint.verify.worker.examination.explaining import passing, recomputing, switching
from gclint.verify.worker.examination.explaining.explanation import Explanation, places
from gclint.verify.worker.examination.words import capitalised, line
from gclint.verify.worker.protocol import Failure


def diagnose(case: Case, symptoms: Iterable[Symptom]) -> list[Failure]:
    """Return the failures that the symptoms, the gravest first, amount to."""
    return [_failure(case, group, explanation) for group, explanation in explained(case, symptoms)]


def explained(case: Case, symptoms: Iterable[Symptom]) -> list[tuple[list[Symptom], Explanation]]:
    """Return the symptoms in groups of one cause each, with what it is."""
    left = list(symptoms)
    found = []
    for possible in _POSSIBLE_CAUSES:
        group = [each for each in left if each.check in possible.explains]
        explanation = possible.find(case, group) if group else None
        if explanation is not None:
            left = [each for each in left if each not in group]
            found.append((group, explanation))
    return found + [([each], Explanation(each.cause)) for each in left]


def _failure(case: Case, symptoms: Sequence[Symptom], explanation: Explanation) -> Failure:
    first, *others = symptoms
    blocks = {name for each in symptoms for name in each.blocks}
    text = capitalised(explanation.text)
    return Failure(
        first.check,
        case.run.mode,
        case.run.conditions.scenario.name,
        "; ".join([first.message, *(each.message for each in others)]),
        tuple(dict.fromkeys(name for each in symptoms for name in each.parameters)),
        explanation.places
        or tuple(dict.fromkeys(place for each in symptoms for place in each.places))
        or places(call for call in case.run.calls if call.block in blocks),
        explanation.cause,
        " ".join(each for each in (text, _hard_coded(case)) if each),
        explanation.difference,
        blocks=tuple(sorted(blocks)),
    )


def _hard_coded(case: Case) -> str:
    """Return a sentence about checkpoints that ignore the requested mode; empty if there are none."""
    others = [
        each
        for each in case.checkpoints
        if each.place is not None and each.is_reentrant and case.run.mode == "non-reentrant"
    ]
    if not others:
        return ""
    lines = dict.fromkeys(line(each.place) for each in others if each.place is not None)
    return (
        f"The checkpoint at {' and '.join(lines)} is reentrant although `use_reentrant=False` was "
        "requested: the call sets `use_reentrant=True`, or does not set it. Pass on the arguments of "
        "`gradient_checkpointing_enable`, or call `self._gradient_checkpointing_func`."
    )


_POSSIBLE_CAUSES = (
    *switching.SWITCHES,
    *passing.CACHES,
    *passing.RECORDED,
    *recomputing.CLOSURES,
    *switching.EMBEDDINGS,
    *recomputing.DETACHED,
    *passing.LOST,
    *passing.DICTIONARIES,
    *recomputing.RECOMPUTED,
    *recomputing.FORWARD,
    *passing.UNSEEN,
    *switching.STATISTICS,
    *switching.NESTED,
    *switching.NOTHING,
    *switching.STATE,
    *recomputing.UNKNOWN,
)
"""The known causes; the first one that is found explains all symptoms that it may cause."""
