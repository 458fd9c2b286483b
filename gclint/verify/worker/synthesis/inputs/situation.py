"""What inputs are made from: the class, its configuration, a plan, and the documentation of ``forward``."""

from __future__ import annotations

import inspect
import math
import re
import sys
import typing
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from gclint.verify.worker.synthesis.configurations.shrinking import Sizes
from gclint.verify.worker.synthesis.configurations.tokens import special_tokens
from gclint.verify.worker.synthesis.configurations.tree import along, descendants, find, is_whole

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig


@dataclass(frozen=True)
class Plan:
    """What an attempt does differently from the rules, learnt from the errors of earlier attempts."""

    sizes: Sizes = field(default_factory=Sizes)
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


@dataclass(frozen=True)
class Situation:
    """A class, its configuration and a plan: everything that inputs are made from, and that hints read."""

    model_class: Any
    config: PretrainedConfig
    plan: Plan
    whole: PretrainedConfig
    """The configuration that ``config`` is a part of, or ``config`` itself."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The cached properties are computed again.
        return Situation, (self.model_class, self.config, self.plan, self.whole)

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters of ``forward`` that can be named in a call."""
        found = list(inspect.signature(self.model_class.forward).parameters.values())[1:]
        named = {
            each.name: each for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        }
        if not named:
            # A ``forward`` that only passes on its arguments takes those of the inner model.
            name = "input_ids" if self.is_for("Decoder") else self.model_class.main_input_name
            named = {name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)}
        return named

    @cached_property
    def parts(self) -> list[Any]:
        """The configuration and everything below it."""
        return list(descendants(self.config))

    @cached_property
    def special(self) -> set[int]:
        """The ids of special tokens, which no text contains."""
        return special_tokens(self.parts)

    @cached_property
    def text(self) -> Any:
        """The configuration of the part that reads text."""
        return self.config.get_text_config(decoder=True)

    @property
    def batch(self) -> int:
        """How many items the inputs have."""
        return self.plan.batch

    @property
    def length(self) -> int:
        """How many tokens a text has."""
        return self.plan.length

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether the class has a decoder with inputs of its own."""
        return "decoder_input_ids" in self.parameters

    def get(self, *names: str, default: Any = None) -> Any:
        """Return the first of these fields in the configuration or below it."""
        return find(self.config, *names, default=default)

    def width(self) -> int:
        """Return the width of the hidden states."""
        return int(
            getattr(self.config, "hidden_size", None)
            or self.get("hidden_size", "d_model", "embed_dim", "dim", default=64)
        )

    def is_for(self, pattern: str) -> bool:
        """Return whether the name of the class matches ``pattern``, such as the name of a task."""
        return re.search(pattern, self.model_class.__name__) is not None

    def floats(self, name: str, *shape: int) -> torch.Tensor:
        """Return normally distributed numbers that depend on ``name`` and ``shape`` alone."""
        import torch

        return torch.randn(shape, generator=_generator(name))

    def ones(self, *shape: int, boolean: bool = False) -> torch.Tensor:
        """Return a mask that masks nothing."""
        import torch

        return torch.ones(shape, dtype=torch.bool if boolean else torch.long)

    def integers(self, name: str, low: int, high: int, *shape: int) -> torch.Tensor:
        """Return uniformly distributed integers from ``low`` up to but excluding ``high``."""
        import torch

        return torch.randint(low, max(high, low + 1), shape, generator=_generator(name))

    def tokens(self, name: str, *shape: int, vocabulary: int | None = None) -> torch.Tensor:
        """Return random tokens, none of them special."""
        import torch

        size = vocabulary or getattr(self.text, "vocab_size", None) or self.get("vocab_size", default=64)
        allowed = torch.tensor([each for each in range(min(size, 1000)) if each not in self.special] or [0])
        return allowed[self.integers(name, 0, len(allowed), *shape)]


def _generator(name: str) -> torch.Generator:
    import torch

    generator = torch.Generator()
    generator.manual_seed(zlib.crc32(name.encode()))
    return generator


Providers = tuple[tuple[str, Callable[[Situation], Any], bool], ...]
"""Patterns of names of inputs, what makes these, and whether they are given though they are optional."""


def documented(situation: Situation, name: str) -> Any:
    """Return a value for the parameter ``name``, or None if nothing says what it is."""
    shape = documented_shape(situation, name)
    annotation = str(situation.parameters[name].annotation)
    text = entry(situation, name)
    if shape is None:
        if re.search("quer(y|ies)", name):
            return situation.floats(name, situation.batch, situation.plan.sizes.queries, situation.width())
        if "states" in name or "embeds" in name or "features" in name:
            return situation.floats(name, situation.batch, situation.length, situation.width())
        if "mask" in name:
            return situation.ones(situation.batch, situation.length)
        return 1 if re.search(r"\bint\b", annotation) or re.match(r"\s*\(`?int`?\b", text) else None
    if "mask" in name and len(shape) == 4 and "Long" not in annotation:
        # A mask with the shape of an image has values of its own, such as those of another image.
        return situation.floats(name, *shape)
    if "hidden_state" in name:
        # The docstring may call them integers, where it was copied from that of tokens.
        return situation.floats(name, *shape)
    if "mask" in name:
        return situation.ones(*shape, boolean="Bool" in annotation + text[:80])
    if (
        "Long" in annotation
        or "Int" in annotation
        or "LongTensor" in text[:80]
        or name.endswith(("ids", "codes"))
    ):
        return situation.integers(name, 0, 2, *shape)
    return situation.floats(name, *shape)


def documented_shape(situation: Situation, name: str) -> tuple[int, ...] | None:
    """Return the shape that the docstring gives for the parameter ``name``, or None if it gives none."""
    found = re.search(r"of shape\s+`?\(?`?\(([^)]{0,400})\)", entry(situation, name)[:400])
    if found is None:
        return None
    words = [word.strip(" `") for word in found.group(1).split(",")]
    return tuple(dimension(situation, word) for word in words if word)


def entry(situation: Situation, name: str) -> str:
    """Return the entry for the parameter ``name`` in the docstring of ``forward``, or an empty string."""
    return _entry(typing.cast(str, situation.model_class.forward.__doc__ or ""), name)


def layout(situation: Situation, name: str) -> str:
    """Return the entries for the parameter ``name`` in the docstrings of all classes in the file."""
    return _described(situation.model_class.__module__, name)


def _entry(text: str, name: str) -> str:
    found = re.search(
        rf"^[ \t]*{re.escape(name)}\s*(\(.*?)(?=^[ \t]*\w+ \(`|^[ \t]*Returns|^[ \t]*Example|\Z)",
        text,
        re.M | re.S,
    )
    return found.group(1) if found else ""


@cache
def _described(module: str, name: str) -> str:
    classes = [each for each in vars(sys.modules[module]).values() if inspect.isclass(each)]
    texts = [getattr(getattr(each, "forward", None), "__doc__", None) for each in classes]
    return "\n".join(_entry(text, name) for text in texts if text)


def dimension(situation: Situation, word: str) -> int:
    """Return the size that ``word`` stands for in a documented shape."""
    if "*" in word:
        return math.prod(dimension(situation, each.strip()) for each in word.split("*"))
    if word.isdecimal():
        return int(word)
    field = word.removeprefix("self.").removeprefix("config.")
    if field in ("batch_size", "batch", "bsz"):
        return situation.batch
    value = situation.get(field)
    if is_whole(value):
        return value
    if re.search("width|height|image", field):
        size = situation.get("image_size", default=situation.plan.sizes.image)
        return int(along(size, -1 if "width" in field else 0))
    if re.search("seq|len", field):
        return situation.length
    if re.search("hidden|dim|embed", field):
        return situation.width()
    return 2
