"""Optional inputs as in training: masks with padding, positions, segments, and labels to ignore."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeGuard

import torch

from gclint.verify.worker.synthesis.inputs.audio import length_of
from gclint.verify.worker.synthesis.inputs.placeholders import modality_of_tokens, placeholder_tokens
from gclint.verify.worker.synthesis.inputs.situation import Situation

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

Given = dict[str, Any]
Provider = Callable[[Situation, Given, str], "torch.Tensor | None"]


def optional_inputs(situation: Situation) -> list[str]:
    """Return the names of the optional inputs that training gives and that ``forward`` takes."""
    # Labels come last, since which of them count depends on the masks.
    return sorted((name for name in situation.parameters if _provider(name)), key=lambda name: name == LABELS)


def add_training_inputs(situation: Situation, inputs: Given, names: Iterable[str]) -> None:
    """Add the optional inputs ``names`` as in training, each if the input that it describes is given."""
    for name in names:
        provider = _provider(name)
        value = provider(situation, inputs, name) if provider else None
        if value is not None:
            inputs[name] = value


def _provider(name: str) -> Provider | None:
    return next((provider for pattern, provider in _PROVIDERS if pattern.fullmatch(name)), None)


def _mask(situation: Situation, inputs: Given, name: str) -> torch.Tensor | None:
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


def _positions(_situation: Situation, inputs: Given, name: str) -> torch.Tensor | None:
    """Return positions that restart within the last item, as if two texts were packed into it."""
    ids = inputs.get("decoder_input_ids" if name.startswith("decoder") else "input_ids")
    if not _is_batch(ids):
        return None
    length = ids.shape[-1]
    positions = torch.arange(length).expand(ids.shape).clone()
    positions[-1] %= length // 2 + 1
    return positions


def _segments(situation: Situation, inputs: Given, _name: str) -> torch.Tensor | None:
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


def _pixels(_situation: Situation, inputs: Given, _name: str) -> torch.Tensor | None:
    """Return a mask of pixels with padding at the right of the last image."""
    pixels = inputs.get("pixel_values")
    if not isinstance(pixels, torch.Tensor) or pixels.dim() != 4:
        return None
    mask = torch.ones(len(pixels), *pixels.shape[-2:], dtype=torch.long)
    mask[-1, :, -max(pixels.shape[-1] // 4, 1) :] = 0
    return mask


def _global(_situation: Situation, inputs: Given, _name: str) -> torch.Tensor | None:
    """Return a mask of the tokens that attend to all others: the first one."""
    ids = inputs.get("input_ids")
    if not _is_batch(ids):
        return None
    return (torch.arange(ids.shape[-1]) == 0).long().expand(ids.shape).clone()


def _labels(_situation: Situation, inputs: Given, _name: str) -> torch.Tensor | None:
    """Return the labels, of which those of padding are ignored."""
    labels = inputs.get(LABELS)
    if not isinstance(labels, torch.Tensor) or labels.is_floating_point():
        return None
    for mask in (inputs.get("decoder_attention_mask"), inputs.get("attention_mask")):
        if isinstance(mask, torch.Tensor) and mask.shape == labels.shape:
            return labels.masked_fill(mask == 0, _IGNORED)
    return None


_PROVIDERS: tuple[tuple[re.Pattern[str], Provider], ...] = tuple(
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
