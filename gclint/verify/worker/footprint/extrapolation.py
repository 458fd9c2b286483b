"""Steps of models that loop over the positions of a sequence, which long sequences would take hours for.

Bytes and FLOPs of such a model are polynomials in the length: each position adds the same. So a few short
sequences show those of a long one, if all numbers at one more length are what the others predict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any, TypeVar

from gclint.verify.worker.footprint.building import Trainee
from gclint.verify.worker.footprint.kept import Kept
from gclint.verify.worker.footprint.step import Step, take_step
from gclint.verify.worker.modes import Mode
from gclint.verify.worker.synthesis.configurations.tree import descendants, fields_of, is_whole

_Seen = TypeVar("_Seen")

SHORT = (7, 9, 11, 17)
"""The lengths that are run. Three show what is linear, and four what is quadratic; few sizes are the same."""
_LINEAR = 3
_THRESHOLD = re.compile(r"window|chunk")
_NOTE = (
    "The model loops over positions, so bytes and FLOPs are extrapolated from sequences of at most "
    f"{SHORT[-1]} tokens, whose numbers lie exactly on a line or a parabola."
)


class NoLaw(Exception):
    """What was seen at short lengths does not follow from each other."""


class MeasuredSteps:
    """Takes the steps of a question, each of them once."""

    def __init__(self, trainee: Trainee, names: Collection[str], *, is_extrapolated: bool) -> None:
        """Take steps in which ``names`` are the blocks."""
        self.trainee = trainee
        self.names = names
        self.is_extrapolated = is_extrapolated
        """Whether steps are extrapolated where they follow a law, since the model loops over positions."""
        self.notes: list[str] = []
        """Remarks on the numbers, in sentences."""
        self._needs: dict[object, int] = {}
        self._short: dict[object, Step[Any]] = {}

    def take(self, mode: Mode, evaluate: Callable[[Kept], _Seen], **options: Any) -> Step[_Seen]:
        """Take a step at the size of the question."""
        step = self._taken(self.trainee, mode, evaluate, options)
        if not options:
            self._needs[_key(self.trainee, mode)] = step.needed_bytes
        return step

    def need(self, trainee: Trainee, mode: Mode) -> int:
        """Return the peak of a step of another size or way to train, with the optimizer's state."""
        key = _key(trainee, mode)
        if key not in self._needs:
            self._needs[key] = self._taken(trainee, mode, _nothing, {}).needed_bytes
        return self._needs[key]

    def _taken(
        self, trainee: Trainee, mode: Mode, evaluate: Callable[[Kept], _Seen], options: Mapping[str, Any]
    ) -> Step[_Seen]:
        names = () if evaluate is _nothing else self.names
        is_short = trainee.situation.plan.length <= SHORT[-1]
        if self.is_extrapolated and not is_short and not has_threshold(trainee):
            try:
                return self._extrapolated(trainee, mode, names, evaluate, options)
            except NoLaw:
                self.is_extrapolated = False
        return take_step(trainee, mode, names, evaluate, **options)

    def _extrapolated(
        self,
        trainee: Trainee,
        mode: Mode,
        names: Collection[str],
        evaluate: Callable[[Kept], _Seen],
        options: Mapping[str, Any],
    ) -> Step[_Seen]:
        seen: list[Step[_Seen]] = []
        for count, length in enumerate(SHORT, 1):
            short = trainee.sized(sequence=length)
            key = (_key(short, mode), evaluate, tuple(options.items()))
            if key not in self._short:
                self._short[key] = take_step(short, mode, names, evaluate, is_in_parts=True, **options)
            seen.append(self._short[key])
            if count > 1 and seen[-1].operations == seen[-2].operations:
                raise NoLaw  # It does not loop.
            if count >= _LINEAR:
                with suppress(NoLaw):
                    found = extrapolated(SHORT[:count], seen, trainee.situation.plan.length)
                    if not self.notes:
                        self.notes.append(_NOTE)
                    return found
        raise NoLaw


def has_threshold(trainee: Trainee) -> bool:
    """Return whether the configuration has a window or a chunk that only the long sequence fills."""
    return any(
        _THRESHOLD.search(str(name)) and is_whole(value) and SHORT[-1] < value < trainee.situation.plan.length
        for part in descendants(trainee.situation.config)
        for name, value in fields_of(part).items()
    )


def extrapolated(lengths: Sequence[int], seen: Sequence[_Seen], length: int) -> _Seen:
    """Return what would be seen at another length, where each number is a polynomial in the length.

    It has the lowest degree that the number of lengths can show to be enough.

    Raises:
        NoLaw: the last of several values is not what the others predict, or something else differs.
    """
    found: _Seen = _extrapolated(lengths, seen, length)
    return found


def _extrapolated(lengths: Sequence[int], seen: Sequence[Any], length: int) -> Any:
    first = seen[0]
    if isinstance(first, int) and not isinstance(first, bool):
        value = _predicted(lengths[:-1], seen[:-1], length)
        if _predicted(lengths[:-1], seen[:-1], lengths[-1]) != seen[-1] or value.denominator != 1:
            raise NoLaw
        return int(value)
    if isinstance(first, (tuple, list)):
        if len({len(each) for each in seen}) > 1:
            raise NoLaw
        return type(first)(_extrapolated(lengths, each, length) for each in zip(*seen, strict=True))
    if isinstance(first, dict):
        if any(each.keys() != first.keys() for each in seen):
            raise NoLaw
        return {key: _extrapolated(lengths, [each[key] for each in seen], length) for key in first}
    if is_dataclass(first):
        parts = _extrapolated(lengths, [dict(_fields(each)) for each in seen], length)
        return replace(first, **parts)  # type: ignore[type-var]
    if any(each != first for each in seen):
        raise NoLaw
    return first


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    yield from ((each.name, getattr(value, each.name)) for each in fields(value))


def _predicted(lengths: Sequence[int], values: Sequence[int], length: int) -> Fraction:
    """Return the value at a length of the polynomial through some others."""
    total = Fraction(0)
    for own, value in zip(lengths, values, strict=True):
        factors = (Fraction(length - other, own - other) for other in lengths if other != own)
        total += value * prod(factors, start=Fraction(1))
    return total


def _nothing(_kept: Kept) -> None:
    """Evaluate nothing."""


def _key(trainee: Trainee, mode: Mode) -> object:
    plan = trainee.situation.plan
    return plan.batch, plan.length, mode, repr(trainee.question)
