"""All hints, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable

from gclint.verify.worker.synthesis.hints import (
    audio,
    configuration,
    fields,
    images,
    inputs,
    layers,
    placeholders,
    rope,
    shapes,
    switches,
    tokens,
)
from gclint.verify.worker.synthesis.hints.failure import Failure
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

Hint = Callable[[Situation, Failure], Plan | None]
"""Proposes another plan after an attempt failed in a situation, or None if the failure is a different one."""

HINTS: tuple[Hint, ...] = (
    # Messages and numbers that leave little doubt.
    images.fewer_tokens,
    images.larger_for_padding,
    images.larger_for_windows,
    images.larger_patches,
    images.patch_grid,
    images.all_stages,
    images.every_stage,
    audio.whole_multiple,
    audio.one_channel,
    audio.channels_last,
    audio.one_token_each,
    audio.as_long_as_samples,
    inputs.unset_variable,
    placeholders.counted,
    placeholders.written_into_places,
    inputs.embeddings,
    rope.scaling,
    rope.named_sections,
    rope.turned_width,
    shapes.dimensions,
    shapes.width,
    audio.stated_length,
    images.stated_size,
    inputs.not_both,
    inputs.unwanted,
    inputs.instead,
    shapes.mask,
    shapes.longer_mask,
    shapes.lengths,
    tokens.codebooks,
    images.larger_for_pyramid,
    tokens.streams,
    tokens.beside_one_another,
    shapes.larger_batch,
    tokens.in_place_of_values,
    shapes.stated,
    tokens.shorter,
    configuration.more_heads,
    layers.input_width,
    layers.kinds,
    switches.enabled,
    configuration.another_part,
    configuration.attention_layers,
    configuration.encoder_only,
    configuration.backbone_stages,
    rope.sections,
    configuration.no_cache,
    configuration.lists_for_tuples,
    rope.by_layer_type,
    fields.missing,
    fields.empty,
    # Guesses.
    inputs.none_in_line,
    inputs.asked_for,
    configuration.eager_attention,
    shapes.single_item,
    inputs.without_sizes,
    fields.all_empty,
    images.larger_for_crops,
    # For any error: to train without a loss is better than not to train at all.
    inputs.without_labels,
)
"""Every hint, in the order in which they are asked: the first new plan is tried."""


def next_plan(situation: Situation, failure: Failure, tried: list[Plan]) -> Plan | None:
    """Return the first plan that is not among those ``tried``, or None if no hint has one."""
    for hint in HINTS:
        plan = hint(situation, failure)
        if plan is not None and plan not in tried:
            return plan
    return None
