"""What a group of practices has to say about itself."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.comparison import Agreement, compare
from gclint.verify.worker.examination.subject import Subject
from gclint.verify.worker.practices import MISSING_LIBRARY, Practice
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
class Rank:
    """Which of the processes that train together one is."""

    number: int = 0
    count: int = 1
    meeting: str = ""
    """The path of a file by which they find one another; nobody has made it yet."""


ALONE = Rank()


@dataclass(frozen=True)
class Seen:
    """Which blocks ran."""

    recorded: Counter[str]
    """In forward passes that recorded a gradient, by the blocks' names."""
    recomputed: Counter[str]
    """In backward passes."""


@dataclass(frozen=True)
class Dressed:
    """A model made ready for the steps of a practice, in a process of its own."""

    model: nn.Module
    """What is called."""
    parameters: Callable[[], Mapping[str, Tensor]]
    """Returns what is trained, by names that are the same in the reference."""
    batches: Callable[[int], Sequence[Mapping[str, Any]]]
    """Returns the batches of a step, from 0: each has a forward pass, then all go backward at once."""
    parts: Mapping[str, nn.Module] = field(default_factory=dict)
    """Parts of blocks that are recomputed in place of the whole, by names."""
    seen: Callable[[], Seen] | None = None
    """Called at the end where no hook can see which blocks run; returns what was seen in another way."""
    goes_back: Callable[[dict[str, Tensor]], Mapping[str, Tensor]] = lambda outputs: outputs
    """Returns those of the outputs that go backward."""
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Returns what is entered around each forward pass."""
    inspect: Callable[[], None] = lambda: None
    """Called after the steps; raises :class:`BadPractice` for what is not as it has to be."""
    remark: Callable[[], str] = lambda: ""
    """Called at the end, whatever it was; returns what the row has to say besides, such as the reason."""


Dress = Callable[[Practice, Subject, Sequence[Block], Rank], Dressed]
"""Makes a subject ready as a practice has it; without checkpointing where its mode is ``plain``.

Raises:
    DoesNotApply: it cannot be; any other exception is the practice's failure.
"""


def library(name: str, extra: str) -> Any:
    """Import a library that not everybody has.

    Args:
        name: what to import.
        extra: gclint's extra that installs it.

    Raises:
        DoesNotApply: it cannot be imported.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        missing = isinstance(error, ModuleNotFoundError) and error.name == package
        what = "is not installed" if missing else f"cannot be imported ({error})"
        raise DoesNotApply(
            MISSING_LIBRARY,
            f"{package} {what} for {sys.executable}; install it there (pip install {package}), "
            f"which gclint's extra {extra!r} does for gclint's own interpreter",
        ) from error


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
    rounding: torch.dtype | None = None
    """The type that numbers are rounded to, if not that of the parameters."""
    exists: Callable[[Practice, Subject], bool] = lambda _practice, _subject: True
    """Whether a practice is one for this model; there is no row for what nobody can do."""
    load: Callable[[], object] = lambda: None
    """Imports what each practice needs, once for all of them."""
    is_slow: bool = False
    """Whether it may come to no end in its time though nothing is wrong."""
    steps: int = 2
