"""The answer to whether a trainer's run is fine, from the rows of its set-ups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gclint.verify.worker.practices import (
    AS_IT_IS,
    LOST,
    NOTHING_RECOMPUTED,
    OFF,
    TRAINER,
    WRONG,
    TrainerPractice,
)
from gclint.verify.worker.protocol import Advice, SetUp

_NAMED = 2
"""How many parameters are named."""


def answer(practices: Sequence[TrainerPractice], rows: Sequence[SetUp]) -> Advice:
    """Return whether the run is fine, and the lines of the setting to use instead; it has run, and works."""
    by_name = {each.name: each for each in rows}
    own, without = by_name[AS_IT_IS], by_name.get(OFF)
    best = next((each for each in practices[1:] if _is_good(by_name.get(each.name))), None)
    lines = "\n".join(best.lines()) if best is not None else ""
    if own.outcome == "works":
        return _of_working(practices[0], own, without, by_name.get(best.name) if best else None, lines)
    if own.outcome == "not run":
        return Advice(TRAINER, lines, f"Whether your run is fine is not known: {own.message}.")
    why = "".join(f": {each}" for each in _why(practices, by_name))
    if not lines and without is not None and without.outcome == "works":
        lines = "\n".join(next(each for each in practices if each.name == OFF).lines())
        why += ". Of the ways to checkpoint that were tried, none works"
    return Advice(TRAINER, lines, f"{_what_happens(own)}{why}.")


def saved_share(row: SetUp, without: SetUp | None) -> float | None:
    """Return the share of what a step keeps for its backward pass that a set-up saves; None if unknown."""
    if without is None or row.saved_bytes is None or not without.saved_bytes:
        return None
    return 1 - row.saved_bytes / without.saved_bytes


def _is_good(row: SetUp | None) -> bool:
    return row is not None and row.outcome == "works" and bool(row.recomputed)


def _of_working(
    practice: TrainerPractice, own: SetUp, without: SetUp | None, other: SetUp | None, lines: str
) -> Advice:
    if practice.mode == "plain":
        sentence = "Your run is fine, and does not checkpoint"
        share = saved_share(other, own) if other is not None else None
        if share is not None:
            sentence += f". With checkpointing, a step would keep {share:.0%} less for its backward pass"
        return Advice(TRAINER, lines, f"{sentence}.")
    recomputed = f"{own.recomputed} of {own.blocks} blocks are recomputed"
    share = saved_share(own, without)
    saves = "" if share is None else f", and a step keeps {share:.0%} less for its backward pass"
    same = f"all gradients are those without checkpointing{saves}"
    if own.recomputed != own.blocks:
        return Advice(TRAINER, "", f"Your run is right, but saves less than it could: only {recomputed}; {same}.")
    return Advice(TRAINER, "", f"Your run is fine: {recomputed}, {same}.")


def _what_happens(own: SetUp) -> str:
    if own.parameters and own.symptom == WRONG:
        return f"Your run trains on wrong gradients of {_counted(own.parameters)}"
    if own.parameters and loses(own):
        return f"Your run loses the gradients of {_counted(own.parameters)}"
    if own.symptom == NOTHING_RECOMPUTED:
        return "Your run saves no memory, since no block is recomputed"
    return f"Your run fails ({own.symptom}): {own.message}"


def loses(row: SetUp) -> bool:
    """Return whether parameters have no gradient, without an error that says so."""
    return bool(row.parameters) and row.symptom in (LOST, NOTHING_RECOMPUTED)


def _counted(parameters: Sequence[str]) -> str:
    if len(parameters) == 1:
        return f"`{parameters[0]}`"
    named = ", ".join(f"`{each}`" for each in parameters[:_NAMED])
    return f"{len(parameters)} parameters, such as {named}"


def _why(practices: Sequence[TrainerPractice], rows: Mapping[str, SetUp]) -> Iterator[str]:
    """Yield what its own setting has to do with it: a change of it alone works."""
    own = practices[0]
    if "without checkpointing as well" in rows[AS_IT_IS].message:
        yield "checkpointing is not the cause"
        return
    working = {replace(each, name=AS_IT_IS) for each in practices[1:] if _is_good(rows.get(each.name))}
    reentrant = f"with `use_reentrant={own.mode == 'reentrant'}`"
    if replace(own, requires_inputs=True) in working:
        yield f"{reentrant} and a frozen base, nothing that enters the blocks requires grad"
    elif any(each.mode == own.mode and each.requires_inputs == own.requires_inputs for each in working):
        yield f"{reentrant} and {', '.join(f'`{name}={value}`' for name, value in own.options)}"
    elif any(each.mode != own.mode for each in working):
        yield reentrant
