"""What a group of practices has to say about itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.comparison import Agreement, compare
from gclint.verify.worker.examination.subject import Subject
from gclint.verify.worker.practices import Practice
from gclint.verify.worker.protocol import Advice, SetUp


class DoesNotApply(Exception):
    """A practice is none for this class, or cannot be run here; the message says why."""

    def __init__(self, symptom: str, message: str) -> None:
        super().__init__(message)
        self.symptom = symptom
        """The kind of the reason in two or three words, such as ``no linear layers``."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.symptom, str(self))


class BadPractice(Exception):
    """What a practice has to see to is not so, such as a cache that is on; it has failed.

    The message says what, and the symptom in two or three words.
    """

    def __init__(self, symptom: str, message: str) -> None:
        super().__init__(message)
        self.symptom = symptom


@dataclass(frozen=True)
class Dressed:
    """A model made ready for the steps of a practice, in a process of its own."""

    model: nn.Module
    """What is called."""
    parameters: Callable[[], Mapping[str, Tensor]]
    """Returns what is trained, by names that are the same in the reference."""
    batches: Callable[[int], Sequence[Mapping[str, Any]]]
    """Returns the batches of a step, from 0: each has a forward pass, then all go backward at once."""
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Returns what is entered around each forward pass."""
    inspect: Callable[[], None] = lambda: None
    """Called after the steps; raises :class:`BadPractice` for what is not as it has to be."""


Dress = Callable[[Practice, Subject, Sequence[Block]], Dressed]
"""Makes a subject ready as a practice has it; without checkpointing where its mode is ``plain``.

Raises:
    DoesNotApply: it cannot be; any other exception is the practice's failure.
"""


def _agreement(_practice: Practice, expected: Tensor, found: Tensor, noise: float) -> Agreement:
    return compare(expected, found, noise)


@dataclass(frozen=True)
class Group:
    """How the practices of a group are run and judged."""

    dress: Dress
    advise: Callable[[Sequence[SetUp]], Advice | None]
    """Returns which of them to use, from the rows of one class; None where there is nothing to say."""
    agreement: Callable[[Practice, Tensor, Tensor, float], Agreement] = _agreement
    """Compares a gradient with that of the reference; the last argument is what rounding does to it."""
    steps: int = 2
