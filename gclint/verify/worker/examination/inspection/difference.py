"""Finds the first difference between two passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Literal

from gclint.verify.worker.examination.inspection.parts import Digest
from gclint.verify.worker.examination.inspection.tape import Event, Input, events_within
from gclint.verify.worker.protocol import SourcePlace

CUTS = frozenset(("detach", "detach_", "data"))
"""Operations that end a graph."""
What = Literal["input", "output", "path", "module", "argument"]


@dataclass(frozen=True)
class FirstDifference:
    """The first event that differs although nothing before it differs."""

    what: What
    """An ``input`` of an operation, its ``output`` alone, the ``path`` (other operations run), the ``module``
    that is called, or an ``argument`` of a module or of the checkpoint."""
    kind: str
    name: str
    """The event in the first pass."""
    other: str
    """The event in the second one; the same unless it is the path or the module."""
    stack: tuple[SourcePlace, ...]
    other_stack: tuple[SourcePlace, ...]
    inputs: tuple[tuple[Input | None, Input | None], ...] = ()
    """The inputs that differ, in the first pass and in the second one."""
    is_rounding: bool = False
    """Whether results are the same but for rounding: another kernel, or another path, computed them."""
    module: str = ""
    """The innermost module in which it happened."""
    question: str = ""
    """What was queried before, if the answer was not the same."""
    question_stack: tuple[SourcePlace, ...] = ()
    is_asked_elsewhere: bool = False
    """Whether another module did so."""

    @property
    def is_of_results(self) -> bool:
        """Whether the difference comes from earlier operations."""
        given = [each for pair in self.inputs for each in pair if each is not None]
        return all(each.source in ("result", "argument", "parameter") for each in given)


def first_difference(one: Event, other: Event) -> FirstDifference | None:
    """Return where two passes begin to differ, or None if they do not.

    A difference beyond rounding takes precedence over an earlier one that is only rounding.
    """
    rounding = None
    walk = _PassComparison()
    for origin in walk.differences(one, other, ""):
        if not origin.is_rounding:
            return walk.with_question(origin)
        rounding = rounding or origin
    return rounding


def only_cut(one: Event, other: Event) -> Event | None:
    """Return what detaches a tensor from its graph in the second pass, but not in the first."""
    for mine, yours in _aligned(one, other):
        if mine is None and yours is not None and yours.name in CUTS and yours.stack and yours.takes_graph:
            return yours
        if mine is not None and yours is not None and (found := only_cut(mine, yours)) is not None:
            return found
    return None


def only_unrecorded(one: Event, again: Event) -> Event | None:
    """Return the first operation that records no gradient in a recomputation, but does so in a plain pass."""
    plain = [(each.name, each.stack[:1], each.has_graph) for each in events_within(one) if each.takes_graph]
    recorded = {(name, stack) for name, stack, has_graph in plain if has_graph}
    recorded -= {(name, stack) for name, stack, has_graph in plain if not has_graph}
    return next(
        (
            each
            for each in events_within(again)
            if each.takes_graph
            and not each.has_graph
            and each.stack
            and (each.name, each.stack[:1]) in recorded
        ),
        None,
    )


class _PassComparison:
    """Goes through two passes side by side."""

    def __init__(self) -> None:
        self._is_rounded = False
        """Whether results are no longer bit for bit the same, so that a difference may be inherited."""
        self._asked: dict[str, Event] = {}
        """The last query in each module that had another answer."""

    def with_question(self, origin: FirstDifference) -> FirstDifference:
        """Return the origin with what its module queried before, or else another one."""
        own = self._asked.get(origin.module)
        asked = own or next(reversed(self._asked.values()), None)
        if asked is None:
            return origin
        return replace(
            origin, question=asked.name, question_stack=asked.stack, is_asked_elsewhere=own is None
        )

    def differences(self, one: Event, other: Event, module: str) -> Iterator[FirstDifference]:
        """Yield the differences between two events, including those inside them."""
        if one.kind == "module":
            module = one.name
        asked = dict(self._asked)
        changed = self._changed(one, other)
        if changed:
            yield _origin("argument", one, other, module, changed)
        path: FirstDifference | None = None
        for mine, yours in _aligned(one, other):
            if mine is None or yours is None:
                known = mine or yours
                # A query alone changes nothing; what follows from it does.
                if path is None and known is not None and known.kind != "question":
                    path = _path(one, other, mine, yours, module)
            else:
                for found in self._inside(mine, yours, module):
                    if path is not None and not found.is_rounding and found.is_of_results:
                        yield path
                    yield found
        is_same = bool(one.outputs) and _close(one.outputs, other.outputs)
        if path is not None:
            yield replace(path, is_rounding=is_same)
        if is_same:
            # What was queried meanwhile has changed nothing.
            self._asked = asked

    def _inside(self, one: Event, other: Event, module: str) -> Iterator[FirstDifference]:
        if one.kind == "module":
            yield from self.differences(one, other, module)
        else:
            found = self._of_events(one, other, module)
            if found is not None:
                yield found

    def _of_events(self, one: Event, other: Event, module: str) -> FirstDifference | None:
        """Return the difference of two operations or answers, unless it is inherited."""
        if one.kind == "question":
            if one.outputs != other.outputs:
                self._asked.pop(module, None)
                self._asked[module] = one
            return None
        changed = self._changed(one, other)
        if changed:
            return _origin("input", one, other, module, changed)
        is_cut_short = not (one.is_complete and other.is_complete)
        saved = list(zip(one.saved, other.saved, strict=False))
        if (is_cut_short or one.outputs == other.outputs) and all(mine == yours for mine, yours in saved):
            return None
        inherited = self._is_rounded and any(
            mine.digest != yours.digest for mine, yours in zip(one.inputs, other.inputs, strict=False)
        )
        self._is_rounded = True
        return None if inherited else _origin("output", one, other, module)

    def _changed(self, one: Event, other: Event) -> tuple[tuple[Input | None, Input | None], ...]:
        """Return the inputs that differ, and do not come from earlier operations."""
        mine, yours = ({each.name: each for each in event.inputs} for event in (one, other))
        pairs = ((mine.get(name), yours.get(name)) for name in {**mine, **yours})
        return tuple(pair for pair in pairs if self._is_changed(*pair))

    def _is_changed(self, one: Input | None, other: Input | None) -> bool:
        if one is None or other is None:
            # A default may also be passed explicitly.
            return any(each.digest.bits for each in (one, other) if each is not None)
        if self._is_rounded and "result" in (one.source, other.source):
            return False
        return not one.digest.is_close(other.digest)


def _aligned(one: Event, other: Event) -> Iterator[tuple[Event | None, Event | None]]:
    """Yield the corresponding events of two lists; a recomputation may stop before the end."""
    mine, yours = list(_flat(one.events)), list(_flat(other.events))
    keys, other_keys = [each.key for each in mine], [each.key for each in yours]
    shorter = min(len(keys), len(other_keys))
    if keys[:shorter] == other_keys[:shorter]:
        yield from zip(mine, yours, strict=False)
        if other.is_complete:
            yield from ((each, None) for each in mine[shorter:])
        if one.is_complete:
            yield from ((None, each) for each in yours[shorter:])
        return
    matcher = SequenceMatcher(None, keys, other_keys, autojunk=False)
    for tag, start, stop, other_start, other_stop in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(mine[start:stop], yours[other_start:other_stop], strict=True)
        elif other_start == len(yours) and not other.is_complete:
            return
        else:
            yield from ((each, None) for each in mine[start:stop])
            yield from ((None, each) for each in yours[other_start:other_stop])


def _flat(events: Sequence[Event]) -> Iterator[Event]:
    """Yield events with those in checkpoints, which a pass without checkpointing does not have."""
    for event in events:
        if event.kind == "checkpoint":
            yield from _flat(event.events)
        else:
            yield event


def _path(one: Event, other: Event, mine: Event | None, yours: Event | None, module: str) -> FirstDifference:
    """Return that two passes do different things, of which one is known here."""
    if mine is not None:
        yours = _at_position_of(mine, one, other)
    elif yours is not None:
        mine = _at_position_of(yours, other, one)
    known = mine or yours or one
    modules = mine is not None and yours is not None and mine.kind == yours.kind == "module"
    return FirstDifference(
        "module" if modules else "path",
        known.kind,
        mine.name if mine else "",
        yours.name if yours else "",
        mine.stack if mine else (),
        yours.stack if yours else (),
        module=module,
    )


def _at_position_of(event: Event, one: Event, other: Event) -> Event | None:
    """Return the event of the other pass at the position of one of the first, if it runs something else."""
    index = next(index for index, each in enumerate(_flat(one.events)) if each is event)
    found = next(islice(_flat(other.events), index, None), None)
    return found if found is not None and found.kind == event.kind and found.name != event.name else None


def _close(one: Sequence[Digest], other: Sequence[Digest]) -> bool:
    return len(one) == len(other) and all(
        mine.is_close(yours) for mine, yours in zip(one, other, strict=True)
    )


def _origin(
    what: What,
    one: Event,
    other: Event,
    module: str,
    inputs: tuple[tuple[Input | None, Input | None], ...] = (),
) -> FirstDifference:
    is_rounding = what == "output" and (
        _close(one.outputs, other.outputs)
        if one.is_complete and other.is_complete
        else all(mine.is_close(yours) for mine, yours in zip(one.saved, other.saved, strict=False))
    )
    return FirstDifference(
        what, one.kind, one.name, other.name, one.stack, other.stack, inputs, is_rounding, module
    )
