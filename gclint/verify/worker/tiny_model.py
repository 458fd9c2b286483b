"""Tiny models with inputs, which the synthesis makes for the examination."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

from gclint.verify.worker.protocol import SourcePlace

EXTRA_LIBRARY = "extra library"
"""The category of reasons for libraries that are not installed."""
_OWN = ("torch", "transformers")
"""Libraries that are always installed: only a part of them can be missing."""


class NotSynthesisable(Exception):
    """No configuration or no inputs were found with which a model class runs; the message says why."""

    def __init__(self, category: str, message: str) -> None:
        super().__init__(message)
        self.category = category
        """A word or two, such as ``extra library``, by which reasons are counted."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.category, str(self))

    @classmethod
    def for_import(cls, error: ImportError) -> NotSynthesisable:
        """Return the reason for a missing library, which says what to install."""
        # transformers writes "requires the timm library", and may go on about how to install it.
        named = re.search(r"requires the ([\w. -]{1,60}?) library", str(error))
        library = error.name or (named[1].lower() if named else None)
        message = " ".join(str(error).split())[:200]
        install = f"; it needs {library}: pip install {library}" if library and library not in _OWN else ""
        raised = cls(EXTRA_LIBRARY, f"{type(error).__name__}: {message}{install}")
        raised.__cause__ = error
        return raised


class BrokenModel(NotSynthesisable):
    """A model that cannot run with any inputs: the defect is its own."""

    def __init__(self, message: str, reason: str, place: SourcePlace) -> None:
        super().__init__("model", message)
        self.reason = reason
        """Why other inputs do not help."""
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.reason, self.place)


class BatchVariants(Protocol):
    """Batches that can be derived from the usual one."""

    @property
    def modalities(self) -> frozenset[str]:
        """Those of ``image``, ``video`` and ``audio`` that can be left out of the usual batch."""

    def inputs(self, kept: Collection[str]) -> dict[str, Any]:
        """Return a batch of text and of the modalities in ``kept``; the class may fail on it."""


@dataclass(frozen=True)
class TinyModel:
    """A tiny model with its inputs; its forward and backward passes have been tried.

    It can be sent to another process.
    """

    scenario: str
    """``default``, or the enabled feature, such as ``cross-attention``."""
    config: Any
    """The ``PretrainedConfig`` from which it was made."""
    build: Callable[[], Any]
    """Returns a new ``PreTrainedModel`` in training mode on the CPU, with the same weights each time."""
    inputs: Callable[[], dict[str, Any]]
    """Returns new keyword arguments for ``forward``, the same values each time."""
    not_covered: tuple[str, ...] = ()
    """Parts of the model that these inputs do not run."""
    other_inputs: Callable[[], dict[str, Any]] | None = None
    """Returns inputs of another length, if the class takes them."""
    refused: tuple[str, ...] = ()
    """The optional inputs of training with which the class could not be run."""
    keeps_cache: bool = False
    """Whether it can be run only with its own cache."""
    variants: BatchVariants | None = None
    """Makes batches without some modalities, if the class takes any besides text."""
    wanted: frozenset[str] | None = None
    """The names of the scenarios to run in addition to the first of its feature; None for all that apply."""
    least_dropout: float = 0.5
    """The least probability of dropping something in scenarios with dropout, where many are zero by default:
    high, since what is dropped as a whole, such as a layer, is dropped rarely in a tiny model."""
    without: tuple[Callable[[], TinyModel], ...] = ()
    """Functions that make the tiny models with one option less, if it has several."""
    deeper: Callable[[], TinyModel | None] | None = None
    """Makes one that has as many layers as the default configuration, if that runs."""

    def modalities(self) -> frozenset[str]:
        """Return the modalities besides text that batches can leave out."""
        return frozenset() if self.variants is None else self.variants.modalities
