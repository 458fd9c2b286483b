"""Makes inputs of ``forward`` by the names of its parameters, as in training, or by the user's function."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeGuard

import torch

from gclint.verify.worker.class_settings import ClassSettings
from gclint.verify.worker.synthesis.configurations.class_settings import SETTINGS, function_for_inputs
from gclint.verify.worker.synthesis.inputs.audio import AUDIO, fit_masks, length_of
from gclint.verify.worker.synthesis.inputs.images import IMAGES
from gclint.verify.worker.synthesis.inputs.placeholders import (
    modality_of_tokens,
    patch_side,
    placeholder_tokens,
)
from gclint.verify.worker.synthesis.inputs.situation import Situation, documented
from gclint.verify.worker.synthesis.inputs.text import TEXT, hidden_states
from gclint.verify.worker.tiny_model import NotSynthesisable

LABELS = "labels"
_IGNORED = -100
"""The label that a loss ignores."""
_PADDED = 6
"""The padding of the last item of a batch is its length divided by this number."""
_MASKED = {
    "attention_mask": ("input_ids", "inputs_embeds", "input_values", "input_features"),
    "decoder_attention_mask": ("decoder_input_ids", "decoder_inputs_embeds"),
    "encoder_attention_mask": ("encoder_hidden_states",),
}
"""Masks, and the inputs that each masks: the first of these that is given."""

_Given = dict[str, Any]
_TrainingProvider = Callable[[Situation, _Given, str], "torch.Tensor | None"]
_SEED = 20
_PROVIDERS: tuple[tuple[re.Pattern[str], Provider, bool], ...] = tuple(
    (re.compile(pattern), provider, wanted)
    for table in (TEXT, IMAGES, AUDIO)
    for pattern, provider, wanted in table
)
_MODALITIES = {
    # Videos come first, since their inputs are named after pixels and grids as well.
    "video": re.compile(r"video|second_per_grid"),
    "audio": re.compile(r"audio|speech|input_features|input_values|feature_lens|feature_attention|mel_spec"),
    "image": re.compile(
        r"pixel|image|visual|vision|patches|grid_(thw|hw)|aspect_ratio|spatial_shapes|target_sizes"
        r"|cross_attention_mask"
    ),
}
"""Modalities, with the names of the inputs that contain or describe them."""


def optional_inputs(situation: Situation) -> list[str]:
    """Return the names of the optional inputs that training gives and that ``forward`` takes."""
    # Labels come last, since which of them count depends on the masks.
    return sorted(
        (name for name in situation.parameters if _training_provider(name)), key=lambda name: name == LABELS
    )


def add_training_inputs(situation: Situation, inputs: _Given, names: Iterable[str]) -> None:
    """Add the optional inputs ``names`` as in training, each if the input that it describes is given."""
    for name in names:
        provider = _training_provider(name)
        value = provider(situation, inputs, name) if provider else None
        if value is not None:
            inputs[name] = value


def _training_provider(name: str) -> _TrainingProvider | None:
    return next((provider for pattern, provider in _FOR_TRAINING if pattern.fullmatch(name)), None)


def _mask(situation: Situation, inputs: _Given, name: str) -> torch.Tensor | None:
    """Return a mask with padding on the right of the last item."""
    given = next((inputs[each] for each in _MASKED[name] if _is_batch(inputs.get(each))), None)
    if given is None:
        return None
    if not given.is_floating_point():
        shape = tuple(given.shape)
    elif "input_features" in inputs and given is inputs["input_features"]:
        shape = (len(given), length_of(situation, given))
    else:
        shape = tuple(given.shape[:2])
    before = inputs.get(name)
    mask = torch.ones(shape, dtype=before.dtype if isinstance(before, torch.Tensor) else torch.long)
    mask[-1, ..., -max(shape[-1] // _PADDED, 1) :] = 0
    return mask


def _positions(_situation: Situation, inputs: _Given, name: str) -> torch.Tensor | None:
    """Return positions that restart within the last item, as if two texts were packed into it."""
    ids = inputs.get("decoder_input_ids" if name.startswith("decoder") else "input_ids")
    if not _is_batch(ids):
        return None
    length = ids.shape[-1]
    positions = torch.arange(length).expand(ids.shape).clone()
    positions[-1] %= length // 2 + 1
    return positions


def _segments(situation: Situation, inputs: _Given, _name: str) -> torch.Tensor | None:
    """Return the segment of each token: its modality if there are several, else the first or second text."""
    ids = inputs.get("input_ids")
    if not _is_batch(ids):
        return None
    if placeholder_tokens(situation):
        return modality_of_tokens(situation, ids).clamp(max=1)
    kinds = situation.get("type_vocab_size", default=2)
    if not kinds:
        return None
    second = torch.arange(ids.shape[-1]) >= ids.shape[-1] // 2
    return second.long().expand(ids.shape).clone().clamp(max=kinds - 1)


def _pixels(_situation: Situation, inputs: _Given, _name: str) -> torch.Tensor | None:
    """Return a mask of pixels with padding at the right of the last image."""
    pixels = inputs.get("pixel_values")
    if not isinstance(pixels, torch.Tensor) or pixels.dim() != 4:
        return None
    mask = torch.ones(len(pixels), *pixels.shape[-2:], dtype=torch.long)
    mask[-1, :, -max(pixels.shape[-1] // 4, 1) :] = 0
    return mask


def _global(_situation: Situation, inputs: _Given, _name: str) -> torch.Tensor | None:
    """Return a mask of the tokens that attend to all others: the first one."""
    ids = inputs.get("input_ids")
    if not _is_batch(ids):
        return None
    return (torch.arange(ids.shape[-1]) == 0).long().expand(ids.shape).clone()


def _labels(_situation: Situation, inputs: _Given, _name: str) -> torch.Tensor | None:
    """Return the labels, of which those of padding are ignored."""
    labels = inputs.get(LABELS)
    if not isinstance(labels, torch.Tensor) or labels.is_floating_point():
        return None
    for mask in (inputs.get("decoder_attention_mask"), inputs.get("attention_mask")):
        if isinstance(mask, torch.Tensor) and mask.shape == labels.shape:
            return labels.masked_fill(mask == 0, _IGNORED)
    return None


_FOR_TRAINING: tuple[tuple[re.Pattern[str], _TrainingProvider], ...] = tuple(
    (re.compile(pattern), provider)
    for pattern, provider in (
        ("|".join(_MASKED), _mask),
        (r"(decoder_)?position_ids", _positions),
        (r"token_type_ids", _segments),
        (r"pixel_mask", _pixels),
        (r"global_attention_mask", _global),
        (LABELS, _labels),
    )
)


def _is_batch(value: Any) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor) and value.dim() >= 2


def given_inputs(situation: Situation) -> dict[str, Any] | None:
    """Return the inputs that the user's function makes for a class, or None if there is no such function.

    It is called with the configuration and, if it takes two arguments, the model class, after seeding torch.

    Raises:
        NotSynthesisable: The function cannot be imported, fails, or does not return keyword arguments.
    """
    known = function_for_inputs(situation.model_class)
    if known is None:
        return None
    try:
        function = _imported(known)
        arguments = (situation.config, situation.model_class)[: _positional(function)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            inputs = function(*arguments)
    except Exception as error:
        message = f"inputs in {known.origin}: {known.inputs}: {type(error).__name__}: {error}"
        raise NotSynthesisable(SETTINGS, message[:400]) from error
    if not isinstance(inputs, dict) or not all(isinstance(name, str) for name in inputs):
        message = (
            f"inputs in {known.origin}: {known.inputs} returned {type(inputs).__name__}; "
            "it must return the keyword arguments of forward, as a dict"
        )
        raise NotSynthesisable(SETTINGS, message)
    return inputs


@cache
def _function(inputs: str, folder: str) -> Callable[..., Any]:
    where, _, name = inputs.rpartition(":")
    sys.path.insert(0, folder)
    try:
        module = _module_from_file(where) if where.endswith(".py") else importlib.import_module(where)
    finally:
        sys.path.remove(folder)
    found: Callable[..., Any] = getattr(module, name)
    return found


def _imported(known: ClassSettings) -> Callable[..., Any]:
    assert known.inputs is not None
    return _function(known.inputs, known.folder)


def _module_from_file(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"gclint_inputs_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _positional(function: Callable[..., Any]) -> int:
    """Return how many positional arguments ``function`` takes, at most two."""
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return 2
    return min(2, sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters))


Provider = Callable[[Situation], Any]


def make_inputs(situation: Situation) -> dict[str, Any]:
    """Return the keyword arguments for ``forward``, the same ones each time, made by rule or by the user."""
    given = given_inputs(situation)
    return _by_rule(situation) if given is None else given


def _by_rule(situation: Situation) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for name, parameter in situation.parameters.items():
        required = parameter.default is parameter.empty
        if name in situation.plan.without and not required:
            continue
        provider, wanted = _provider(name)
        if not (required or wanted or name in situation.plan.also):
            continue
        value = provider(situation) if provider else documented(situation, name)
        if value is not None:
            inputs[name] = _adjust(situation, name, value)
    if not any(isinstance(value, torch.Tensor) for value in inputs.values()):
        for name in ("inputs_embeds", "hidden_states"):
            if name in situation.parameters and not inputs:
                inputs[name] = _adjust(situation, name, hidden_states(situation))
    fit_masks(situation, inputs)
    if situation.plan.single:
        tensors = {
            name: value for name, value in inputs.items() if isinstance(value, torch.Tensor) and value.dim()
        }
        inputs |= {name: value[:1] for name, value in tensors.items() if len(value) == situation.batch}
    add_training_inputs(situation, inputs, situation.plan.training)
    return inputs


def _provider(name: str) -> tuple[Provider | None, bool]:
    """Return the function that makes the input ``name``, and whether the input is given though optional."""
    for pattern, provider, wanted in _PROVIDERS:
        if pattern.fullmatch(name):
            return provider, wanted
    return None, False


def _adjust(situation: Situation, name: str, value: Any) -> Any:
    """Return the input ``name`` as the plan requires it; ``value`` is what the rules made."""
    plan = situation.plan
    if not isinstance(value, torch.Tensor):
        return value
    if name in plan.tokens:
        return situation.tokens(name, situation.batch, plan.length)
    if name in plan.given:
        return torch.tensor(plan.given[name])
    if name in plan.shapes:
        shape = plan.shapes[name]
        return (
            situation.floats(name, *shape)
            if value.is_floating_point()
            else _like(situation, name, value, shape)
        )
    if name in plan.ranks:
        value = _raised(situation, name, value, plan.ranks[name])
    if name in plan.transposed and value.dim() >= 2:
        value = value.transpose(-1, -2).contiguous()
    return value


def _raised(situation: Situation, name: str, value: torch.Tensor, rank: int) -> torch.Tensor:
    """Return ``value`` with dimensions inserted until it has ``rank`` of them."""
    side = patch_side(situation)
    if name.startswith("pixel") and value.dim() == 2 and rank >= 4 and value.shape[1] % side**2 == 0:
        value = value.unflatten(1, (-1, side, side))
        while value.dim() < rank:
            value = value.unsqueeze(0)
    if name.startswith("pixel") and value.dim() == 4 and rank == 5 and situation.get("num_frames"):
        return value.unsqueeze(1).repeat(1, situation.get("num_frames"), 1, 1, 1)
    if not value.is_floating_point() and value.dim() == 2 and rank == 3:
        books = situation.get("num_codebooks", "num_channels", default=1)
        return value.unsqueeze(-1).repeat(1, 1, books)
    while value.dim() < rank:
        value = value.unsqueeze(1)
    return value


def _like(situation: Situation, name: str, value: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return a mask or tokens of the type of ``value`` with another ``shape``."""
    if value.dtype is torch.bool:
        # Every second position is masked, since a model may need as many in each row.
        return torch.arange(math.prod(shape)).reshape(shape) % 2 == 0
    if "mask" in name:
        return torch.ones(shape, dtype=value.dtype)
    return situation.tokens(name, *shape)


@dataclass(frozen=True)
class Variants:
    """The batches that can be made from the usual one of a class by leaving out modalities."""

    situation: Situation

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        """The names of the usual inputs of each modality that the class does not require."""
        if function_for_inputs(self.situation.model_class) is not None:
            return {}
        given = make_inputs(self.situation)
        found: dict[str, set[str]] = {}
        for name in given if "input_ids" in given else ():
            modality = next((each for each, pattern in _MODALITIES.items() if pattern.search(name)), None)
            if modality is not None:
                found.setdefault(modality, set()).add(name)
        parameters = self.situation.parameters
        return {
            modality: frozenset(names)
            for modality, names in found.items()
            if all(parameters[name].default is not parameters[name].empty for name in names)
        }

    @property
    def modalities(self) -> frozenset[str]:
        """Those of ``image``, ``video`` and ``audio`` that can be left out of the usual batch."""
        return frozenset(self._names)

    def inputs(self, kept: Collection[str]) -> dict[str, Any]:
        """Return a batch of text and of the modalities in ``kept``; the class may fail on it."""
        dropped = frozenset().union(*(names for each, names in self._names.items() if each not in kept))
        plan = replace(self.situation.plan, without=self.situation.plan.without | dropped)
        return make_inputs(replace(self.situation, plan=plan))
