"""A model class made concrete: what the synthesis hands to the examination."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

from gclint.verify.worker.protocol import Place

EXTRA_LIBRARY = "extra library"
"""The category of the reasons that are libraries which are not installed."""
_OWN = ("torch", "transformers")
"""Libraries that are there: what is missing is only a part of them."""


class NotSynthesisable(Exception):
    """No configuration or no inputs were found with which a model class runs; the message says why."""

    def __init__(self, category: str, message: str) -> None:
        super().__init__(message)
        self.category = category
        """A word or two, such as ``extra library``, to count reasons by."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.category, str(self))

    @classmethod
    def for_import(cls, error: ImportError) -> NotSynthesisable:
        """Return the reason for a library that is missing, which says what to install."""
        # transformers writes "requires the timm library", and may go on about how to install it.
        named = re.search(r"requires the ([\w. -]{1,60}?) library", str(error))
        library = error.name or (named[1].lower() if named else None)
        said = " ".join(str(error).split())[:200]
        install = f"; it needs {library}: pip install {library}" if library and library not in _OWN else ""
        told = cls(EXTRA_LIBRARY, f"{type(error).__name__}: {said}{install}")
        told.__cause__ = error
        return told


class BrokenModel(NotSynthesisable):
    """A model that cannot run whatever it is given: the defect is its own."""

    def __init__(self, message: str, reason: str, place: Place) -> None:
        super().__init__("model", message)
        self.reason = reason
        """Why nothing else helps."""
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.reason, self.place)


class Variants(Protocol):
    """Batches that can be made of the usual one."""

    @property
    def modalities(self) -> frozenset[str]:
        """Those of ``image``, ``video`` and ``audio`` that can be left out of the usual batch."""

    def inputs(self, kept: Collection[str]) -> dict[str, Any]:
        """Return a batch of text and of the modalities that are ``kept``; nobody has tried it."""


@dataclass(frozen=True)
class Specimen:
    """One way to build and feed a tiny model; forward and backward have been tried.

    It can be sent to another process.
    """

    scenario: str
    """``default``, or the feature that is switched on, such as ``cross-attention``."""
    config: Any
    """The ``PretrainedConfig`` that it was made of."""
    build: Callable[[], Any]
    """Returns a new ``PreTrainedModel`` in training mode on the CPU, with the same weights each time."""
    inputs: Callable[[], dict[str, Any]]
    """Returns new keyword arguments for ``forward``, the same values each time."""
    not_covered: tuple[str, ...] = ()
    """Parts of the model that these inputs do not run."""
    other_inputs: Callable[[], dict[str, Any]] | None = None
    """Returns inputs of another length, where the class takes some."""
    refused: tuple[str, ...] = ()
    """The optional inputs, as training has them, that the class could not be run with."""
    keeps_cache: bool = False
    """Whether it can only be run with the cache that it makes by itself."""
    variants: Variants | None = None
    """Makes batches without some modalities, where the class takes any beside text."""
    wanted: frozenset[str] | None = None
    """The names of the scenarios to run beside the first of its feature; None for all that apply."""
    without: tuple[Callable[[], Specimen], ...] = ()
    """Make the specimens that have one option less each, where it has several."""

    def modalities(self) -> frozenset[str]:
        """Return what batches hold beside text that can be left out."""
        return frozenset() if self.variants is None else self.variants.modalities
