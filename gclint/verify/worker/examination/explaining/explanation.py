"""Explanations of failures, and the wording that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.block_calls import BlockCall
from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
from gclint.verify.worker.examination.inspection.difference import FirstDifference
from gclint.verify.worker.examination.inspection.inspector import Checkpointed
from gclint.verify.worker.examination.inspection.tape import Event, Input
from gclint.verify.worker.examination.phrases import line
from gclint.verify.worker.protocol import Divergence, SourcePlace

VALUES = frozenset(("error", "missing gradients", "gradients", "values", "loss", "outputs", "second step"))
GRADIENTS = frozenset(("error", "missing gradients", "gradients", "second step", "warning"))
FROZEN = frozenset(("frozen base",))
SIDE_EFFECTS = VALUES | FROZEN
COUNTS = frozenset(("recomputation", "double recomputation", "saved bytes"))
_LONGEST = 40
_SINGULAR = {"checkpoint": "checkpoints", "pass": "passes", "run": "runs"}
"""Verbs that calls are the subject of, with their form for a single call."""


@dataclass(frozen=True)
class Diagnosis:
    """The explanation of failures."""

    cause: Cause | None
    text: str = ""
    places: tuple[SourcePlace, ...] = ()
    difference: Divergence | None = None


@dataclass(frozen=True)
class PossibleCause:
    """A possible cause."""

    explains: frozenset[str]
    """The checks whose failures it may cause."""
    find: Callable[[Comparison, Sequence[FailedCheck]], Diagnosis | None]
    """Returns the explanation if there is evidence, or None."""


def places(seen: Iterable[BlockCall | Checkpointed]) -> tuple[SourcePlace, ...]:
    """Return the places of calls of blocks, or of checkpoints."""
    return tuple(dict.fromkeys(each.place for each in seen if each.place is not None))


def where(calls: Iterable[BlockCall], verb: str) -> str:
    """Return the places of calls with a verb, such as "the calls at a.py:1 and b.py:2 pass"."""
    return at(places(calls), verb)


def at(lines: Iterable[SourcePlace], verb: str = "") -> str:
    """Return the places of calls, in words, with a verb of :data:`_SINGULAR` if there is one."""
    shown = list(dict.fromkeys(map(line, lines)))
    if len(shown) > 1:
        return f"the calls at {' and '.join(shown)} {verb}".rstrip()
    words = f"the call at {shown[0]}" if shown else "a call"
    return f"{words} {_SINGULAR[verb]}" if verb else words


def checkpoint_at(checkpointed: Checkpointed) -> str:
    """Return the place of a checkpoint's call, in words."""
    return f"the checkpoint at {line(checkpointed.place)}" if checkpointed.place else "the checkpoint"


def difference(origin: FirstDifference) -> Divergence:
    """Return where two passes begin to differ, for the result."""
    return Divergence(_operation(origin.kind, origin.name or origin.other), origin.stack, origin.other_stack)


def first_operation(
    origin: FirstDifference, second: str = "the recomputation", first: str = "the forward pass"
) -> str:
    """Return where two passes begin to differ, in a sentence."""
    mine, yours = _operation(origin.kind, origin.name), _operation(origin.kind, origin.other)
    here, there = _line(origin.stack), _line(origin.other_stack)
    if origin.what in ("path", "module"):
        if not origin.name or not origin.other:
            only, which, stack = (mine, first, here) if origin.name else (yours, second, there)
            return f"the first difference is {only}{stack}, which only {which} runs"
        return f"the first difference is that {first} runs {mine}{here} and {second} {yours}{there}"
    if origin.kind == "checkpoint":
        return f"the first difference is in what the checkpoint is passed: {_inputs(origin, first, second)}"
    elsewhere = "" if here == there else f" ({second}:{there})"
    seen = f": {_inputs(origin, first, second)}" if origin.inputs else ", whose result differs"
    return f"the first difference is {mine}{here}{elsewhere}{seen}"


def _inputs(origin: FirstDifference, first: str, second: str) -> str:
    one, other = origin.inputs[0]
    known = one or other
    assert known is not None
    mine, yours = _value(one), _value(other)
    what = f"argument {known.name}" if known.name[:1].isdigit() else f"`{known.name}`"
    if known.source == "argument":
        what = f"argument {known.held} of the checkpoint"
    elif known.held and one is not None and other is not None and one.held == other.held:
        what = f"`{known.held}`"
    if mine == yours:
        return f"{what} ({mine}) has different values in {second} and in {first}"
    return f"{what} is {mine} in {first} and {yours} in {second}"


def _value(given: Input | None) -> str:
    if given is None:
        return "not given"
    text = given.digest.text
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _operation(kind: str, name: str) -> str:
    if kind == "module":
        return f"the module `{name}`" if name else "the model"
    return name if kind == "question" else f"`{name}`"


def _line(stack: Sequence[SourcePlace]) -> str:
    return f" at {line(stack[0])}" if stack else ""


def writers(event: Event, position: str) -> Iterable[SourcePlace]:
    """Yield the lines that change an argument of a checkpoint in place."""
    for each in event.events:
        if position in each.written:
            yield from each.stack[:1]
        yield from writers(each, position)
