"""The plan of one attempt to run a model class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gclint.verify.worker.synthesis.configurations.shrinking import Sizes


@dataclass(frozen=True)
class Plan:
    """What an attempt does differently from the rules, learnt from the errors of earlier attempts."""

    sizes: Sizes = field(default_factory=Sizes)
    attention: str | None = None
    """The attention implementation; None leaves it to the model."""
    batch: int = 2
    """How many items the inputs have."""
    length: int = 12
    """Tokens in a text."""
    without: frozenset[str] = frozenset()
    """Inputs to leave out."""
    also: frozenset[str] = frozenset()
    """Optional inputs to give."""
    training: tuple[str, ...] = ()
    """Optional inputs to give as training does, such as a mask with padding."""
    ranks: dict[str, int] = field(default_factory=dict)
    """The number of dimensions of an input, by its name."""
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The shape of an input, by its name."""
    counts: dict[str, int] = field(default_factory=dict)
    """How many placeholders a sequence has, by modality."""
    given: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The integers that an input consists of, by its name."""
    single: bool = False
    """Whether the batch has only one item."""
    tokens: frozenset[str] = frozenset()
    """Inputs that hold tokens, whatever they are called."""
    transposed: frozenset[str] = frozenset()
    """Inputs whose last two dimensions are swapped."""
    values: dict[tuple[str, str], Any] = field(default_factory=dict)
    """Values of fields, by configuration class and field. An empty class stands for every part in which the
    field is None, and ``=`` for every part that has it."""
    inside: str | None = None
    """The name of the sub-configuration that the class takes instead of the whole."""

    def with_values(self, values: Mapping[tuple[str, str], Any]) -> Plan:
        """Return this plan with these ``values`` of fields as well."""
        return replace(self, values={**self.values, **values})

    def with_shapes(self, shapes: Mapping[str, tuple[int, ...]]) -> Plan:
        """Return this plan with these ``shapes`` of inputs as well."""
        return replace(self, shapes={**self.shapes, **shapes})

    def with_rank(self, name: str, rank: int) -> Plan:
        """Return this plan with an input ``name`` that has ``rank`` dimensions."""
        return replace(self, ranks={**self.ranks, name: rank})
