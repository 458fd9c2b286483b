"""The interface of a group of practices, and what most groups share."""

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

from gclint.verify.worker.examination.agreement import Agreement, compare
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.model_under_test import ModelUnderTest
from gclint.verify.worker.practices import MISSING_LIBRARY, Practice
from gclint.verify.worker.protocol import Advice, SetUp
from gclint.verify.worker.scenarios import scenario_named


class DoesNotApply(Exception):
    """A practice does not apply to this class, or cannot be run here; the message says why."""

    def __init__(self, symptom: str, message: str) -> None:
        super().__init__(message)
        self.symptom = symptom
        """The kind of the reason in two or three words, such as ``no embeddings``."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.symptom, str(self))


class BadPractice(Exception):
    """A requirement of a practice is not met, such as a disabled cache, so it has failed.

    The message says which, and the symptom says it in two or three words.
    """

    def __init__(self, symptom: str, message: str) -> None:
        super().__init__(message)
        self.symptom = symptom


@dataclass(frozen=True)
class Rank:
    """The rank of a process among those that train together."""

    number: int = 0
    count: int = 1
    rendezvous: str = ""
    """The path of a file through which they connect, which does not exist yet."""


ALONE = Rank()


@dataclass(frozen=True)
class Seen:
    """Which blocks ran."""

    recorded: Counter[str]
    """Runs in forward passes that recorded a gradient, by the names of the blocks."""
    recomputed: Counter[str]
    """Runs in backward passes."""


@dataclass(frozen=True)
class Announce:
    """What those who take all steps themselves call meanwhile."""

    stage: Callable[[str], None]
    """Called with the name of each stage when it begins."""
    backward: Callable[[bool], None]
    """Called when a backward pass begins, and when it ends."""
    done: Callable[[], None]
    """Called after each step; takes the gradients."""


@dataclass(frozen=True)
class Driven:
    """What is known of steps that something else has taken."""

    blocks: tuple[Block, ...]
    """The blocks that were found, if they were looked for."""
    saved_bytes: int | None
    """Bytes that autograd saved for the backward pass of one step."""
    buffers: Mapping[str, Tensor]
    """The buffers that have changed, by name."""


@dataclass(frozen=True)
class Prepared:
    """A model prepared for the steps of a practice, in a process of its own."""

    model: nn.Module
    """The model to call."""
    parameters: Callable[[], Mapping[str, Tensor]]
    """Returns the trained parameters, by the names that they have in the reference."""
    batches: Callable[[int], Sequence[Mapping[str, Any]]]
    """Returns the batches of a step, from 0: each has a forward pass, then all have one backward pass."""
    parts: Mapping[str, nn.Module] = field(default_factory=dict)
    """Parts of blocks that are recomputed instead of the whole, by name."""
    seen: Callable[[], Seen] | None = None
    """Called at the end if hooks cannot count the runs of blocks; returns the counts."""
    in_loss: Callable[[dict[str, Tensor]], Mapping[str, Tensor]] = lambda outputs: outputs
    """Returns the outputs that are part of the loss."""
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Returns the context manager around each forward pass."""
    inspect: Callable[[], None] = lambda: None
    """Called after the steps; raises :class:`BadPractice` if a requirement is not met."""
    remark: Callable[[], str] = lambda: ""
    """Called at the end in any case; returns a remark for the row, such as the reason."""
    drive: Callable[[int, Announce], Driven] | None = None
    """Takes so many steps itself, without ``batches``, as a trainer does."""


Prepare = Callable[[Practice, ModelUnderTest, Sequence[Block], Rank], Prepared]
"""Prepares a model for a practice; without checkpointing if its mode is ``plain``.

Raises:
    DoesNotApply: this is impossible; any other exception is the failure of the practice.
"""


def library(name: str, extra: str) -> Any:
    """Import an optional library, which gclint's ``extra`` installs; raise DoesNotApply if it cannot be."""
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
class PracticeGroup:
    """How the practices of a group are run and judged."""

    prepare: Prepare
    advise: Callable[[Sequence[SetUp]], Advice | None]
    """Returns which of them to use, from the rows of one class; None for no advice."""
    agreement: Callable[[Practice, Tensor, Tensor, float], Agreement] = _agreement
    """Compares a gradient with that of the reference; the last argument is the effect of rounding."""
    rounding: torch.dtype | None = None
    """The type to which numbers are rounded, if not that of the parameters."""
    exists: Callable[[Practice, ModelUnderTest], bool] = lambda _practice, _under_test: True
    """Whether a practice applies to this model; if not, there is no row for it."""
    load: Callable[[], object] = lambda: None
    """Imports what each practice needs, once for all of them."""
    scenario: str = "default"
    """The scenario that says what is dropped at random."""
    finds_blocks: bool = False
    """Whether the blocks are found by the reference, since the model is not called with batches."""
    is_slow: bool = False
    """Whether it may exceed its time limit although nothing is wrong."""
    steps: int = 2


def preferring(group: str, where: str, setting: str, failing: Sequence[SetUp]) -> Advice:
    """Return the advice to use a setting, such as "With adapters", with the failures that it avoids."""
    instead = f"; this fails: {listed(failing)}" if failing else ""
    return Advice(group, setting, f"{where}, use {setting}{instead}.")


def listed(failing: Sequence[SetUp]) -> str:
    """Return the names of rows, each with how it fails."""
    return ", ".join(f"{each.name} ({each.symptom})" for each in failing)


def trained_parameters(model: nn.Module) -> Callable[[], Mapping[str, Tensor]]:
    """Return a function that returns the parameters of a model that require grad."""
    parameters = {name: each for name, each in model.named_parameters() if each.requires_grad}
    return lambda: parameters


def batches(
    under_test: ModelUnderTest, forwards: int = 1, *, sets_cache: bool = True
) -> Callable[[int], Sequence[Mapping[str, Any]]]:
    """Return a function that returns the batches of each step; two lengths alternate.

    ``use_cache=False`` is passed unless it is left at its default.
    """
    usual = scenario_named("default")
    return lambda step: [
        under_test.inputs(usual, step * forwards + each, sets_cache=sets_cache) for each in range(forwards)
    ]


def calls_with(
    holds: Callable[[Any, Any], bool], model: nn.Module, blocks: Sequence[Block]
) -> dict[str, list[bool]]:
    """Return a record, by block, of whether the arguments of each of its calls from now on hold something."""
    found: dict[str, list[bool]] = {}
    for block in blocks:

        def hook(_block: nn.Module, args: Any, kwargs: Any, name: str = block.name) -> None:
            found.setdefault(name, []).append(holds(args, kwargs))

        model.get_submodule(block.name).register_forward_pre_hook(hook, with_kwargs=True)
    return found


class CachesReturned:
    """Records whether a model returns caches that layers have written to."""

    def __init__(self, model: nn.Module) -> None:
        self._filled = False
        model.register_forward_hook(self._observe)

    def check(self) -> None:
        """Raise :class:`BadPractice` if it did."""
        if self._filled:
            raise BadPractice("cache on", "the layers write to a cache although checkpointing is enabled")

    def _observe(self, _model: nn.Module, _args: Any, outputs: Any) -> None:
        caches = vars(outputs).values() if hasattr(outputs, "__dict__") else ()
        self._filled = self._filled or any(map(_is_filled, caches))


def _is_filled(value: Any) -> bool:
    length = getattr(value, "get_seq_length", None)
    return length is not None and bool(length())
