"""The answer to whether a trainer's run is fine, from the rows of its set-ups."""

from __future__ import annotations

from collections.abc import Sequence

from gclint.verify.worker.practices import (
    AS_IT_IS,
    BUFFER,
    INPUTS,
    LOST,
    NOTHING_RECOMPUTED,
    OFF,
    REENTRANT,
    TRAINER,
    WRONG,
    TrainerPractice,
)
from gclint.verify.worker.protocol import Advice, SetUp


def answer(practices: Sequence[TrainerPractice], rows: Sequence[SetUp], how: str = "") -> Advice:
    """Return whether the run is fine, and the lines of the setting to use instead; it has run, and works.

    Words that follow "fine" say how that is known, if it is not the trainer's own model that has run.
    """
    by_name = {each.name: each for each in rows}
    own, without = by_name[AS_IT_IS], by_name.get(OFF)
    good = [each for each in practices[1:] if each.mode != "plain" and _works(by_name.get(each.name))]
    # What was not seen in two steps, such as a batch without images, is left as it is.
    best = min(good, key=lambda each: len(_changes(practices[0], each)), default=None)
    lines = "\n".join(best.lines()) if best is not None else ""
    if own.outcome == "works":
        return _of_working(practices[0], own, without, by_name.get(best.name) if best else None, lines, how)
    if own.outcome == "not run":
        return Advice(TRAINER, lines, f"Whether your run is fine is not known: {own.message}.")
    why = _why(practices[0], good)
    if not good and without is not None and without.outcome == "works":
        lines = "\n".join(next(each for each in practices if each.name == OFF).lines())
        why += ". Of the ways to checkpoint that were tried, none works"
    return Advice(TRAINER, lines, f"{_what_happens(own, how)}{why}.")


def saved_share(row: SetUp, without: SetUp | None) -> float | None:
    """Return the share of what a step keeps for its backward pass that a set-up saves; None if unknown."""
    if without is None or row.saved_bytes is None or not without.saved_bytes:
        return None
    return 1 - row.saved_bytes / without.saved_bytes


def _works(row: SetUp | None) -> bool:
    return row is not None and row.outcome == "works"


def _of_working(
    practice: TrainerPractice, own: SetUp, without: SetUp | None, other: SetUp | None, lines: str, how: str
) -> Advice:
    if practice.mode == "plain":
        sentence = f"Your run is fine{how}, and does not checkpoint"
        share = saved_share(other, own) if other is not None else None
        if share is not None:
            sentence += f". With checkpointing, a step would keep {share:.0%} less for its backward pass"
        return Advice(TRAINER, lines, f"{sentence}.")
    count = f"{own.recomputed} of {own.blocks} blocks are" if own.recomputed else "what it checkpoints is"
    recomputed = f"{count} recomputed"
    share = saved_share(own, without)
    saves = "" if share is None else f", and a step keeps {share:.0%} less for its backward pass"
    same = f"all gradients are those without checkpointing{saves}"
    if own.recomputed and own.recomputed != own.blocks:
        with_these = "".join(f" with `{name}={value}`" for name, value in practice.others)
        less = f"Your run is right{how}, but only {recomputed}{with_these}; {same}."
        return Advice(TRAINER, "", less)
    return Advice(TRAINER, "", f"Your run is fine{how}: {recomputed}, {same}.")


def _what_happens(own: SetUp, how: str) -> str:
    buffers = [each.removeprefix(BUFFER) for each in own.parameters if each.startswith(BUFFER)]
    if own.symptom == WRONG and len(buffers) == len(own.parameters):
        return f"Your run does not update {_counted(buffers, 'buffers')}, as without checkpointing{how}"
    if own.parameters and own.symptom == WRONG:
        return f"Your run trains on wrong gradients of {_counted(own.parameters)}{how}"
    if loses(own):
        return f"Your run loses the gradients of {_counted(own.parameters)}{how}"
    if own.symptom == NOTHING_RECOMPUTED:
        return f"Your run saves no memory{how}, since no block is recomputed"
    return f"Your run fails ({own.symptom}){how}: {own.message}"


def loses(row: SetUp) -> bool:
    """Return whether parameters have no gradient, without an error that says so."""
    return row.symptom == LOST


def _counted(parameters: Sequence[str], kind: str = "parameters") -> str:
    if len(parameters) == 1:
        return f"`{parameters[0]}`"
    return f"{len(parameters)} {kind}, such as `{parameters[0]}`"


def _changes(own: TrainerPractice, other: TrainerPractice) -> dict[str, object]:
    """Return what is otherwise in another practice, with what it is in its own."""
    before, after = own.settings(), other.settings()
    return {name: value for name, value in before.items() if value != after.get(name)}


def _why(own: TrainerPractice, good: Sequence[TrainerPractice]) -> str:
    """Return which of its settings have to do with it: it works with any one of them changed."""
    found: dict[str, object] = {}
    for each in good:
        changes = _changes(own, each)
        found |= changes if len(changes) == 1 else {}
    if not found:
        return ""
    is_frozen = found.pop(INPUTS, None) is not None
    found |= {REENTRANT: own.settings()[REENTRANT]} if is_frozen else {}
    with_these = " and ".join(f"`{name}={value}`" for name, value in found.items())
    rest = " and a frozen base, nothing that enters the blocks requires grad" if is_frozen else ""
    return f": with {with_these}{rest}"
