"""Makes the inputs of a model from the names of the parameters of its ``forward``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import torch

from gclint.verify.worker.synthesis.inputs.audio import AUDIO
from gclint.verify.worker.synthesis.inputs.companions import COMPANIONS
from gclint.verify.worker.synthesis.inputs.documentation import documented
from gclint.verify.worker.synthesis.inputs.given import given_inputs
from gclint.verify.worker.synthesis.inputs.grids import patch_side
from gclint.verify.worker.synthesis.inputs.labels import LABELS
from gclint.verify.worker.synthesis.inputs.masks import MASKS, fit_masks
from gclint.verify.worker.synthesis.inputs.patches import PATCHES
from gclint.verify.worker.synthesis.inputs.points import POINTS
from gclint.verify.worker.synthesis.inputs.situation import Situation
from gclint.verify.worker.synthesis.inputs.text import TEXT, hidden_states
from gclint.verify.worker.synthesis.inputs.tiles import TILES
from gclint.verify.worker.synthesis.inputs.training import add_training_inputs
from gclint.verify.worker.synthesis.inputs.vision import VISION

Provider = Callable[[Situation], Any]

_PROVIDERS: tuple[tuple[re.Pattern[str], Provider, bool], ...] = tuple(
    (re.compile(pattern), provider, wanted)
    for table in (COMPANIONS, TEXT, PATCHES, TILES, MASKS, VISION, AUDIO, LABELS, POINTS)
    for pattern, provider, wanted in table
)


def make_inputs(situation: Situation) -> dict[str, Any]:
    """Return the keyword arguments for ``forward``, the same ones each time.

    Raises:
        NotSynthesisable: The user's function that makes them failed.
    """
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
        inputs |= {name: value[:1] for name, value in tensors.items() if len(value) == situation.plan.batch}
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
        return situation.tokens(name, situation.plan.batch, plan.length)
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
        while value.dim() > plan.ranks[name] >= 1:
            value = value[0] if value.shape[0] == situation.plan.batch else value.flatten(0, 1)
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
