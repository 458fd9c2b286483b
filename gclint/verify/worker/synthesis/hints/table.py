"""All hints, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable

from gclint.verify.worker.synthesis.hints import configuration, fields, inputs, media, shapes
from gclint.verify.worker.synthesis.hints.failure import ForwardError
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

Hint = Callable[[Situation, ForwardError], Plan | None]
"""Proposes another plan after an attempt failed in a situation, or None if the failure is a different one."""

HINTS: tuple[Hint, ...] = (
    # Messages and numbers that leave little doubt.
    media.fewer_tokens,
    media.larger_for_padding,
    media.larger_patches,
    media.patch_grid,
    media.all_stages,
    media.every_stage,
    media.whole_multiple,
    media.one_channel,
    media.channels_last,
    media.one_token_each,
    media.as_long_as_samples,
    inputs.unset_variable,
    inputs.counted,
    inputs.written_into_places,
    inputs.embeddings,
    fields.scaling,
    fields.turned_width,
    shapes.dimensions,
    shapes.width,
    media.stated_length,
    media.stated_size,
    inputs.not_both,
    inputs.unwanted,
    inputs.instead,
    shapes.mask,
    shapes.longer_mask,
    shapes.lengths,
    inputs.codebooks,
    media.larger_for_pyramid,
    inputs.streams,
    inputs.beside_one_another,
    shapes.larger_batch,
    inputs.in_place_of_values,
    shapes.stated,
    inputs.shorter,
    configuration.input_width,
    configuration.kinds,
    configuration.enabled,
    configuration.another_part,
    configuration.attention_layers,
    configuration.encoder_only,
    configuration.backbone_stages,
    fields.sections,
    configuration.no_cache,
    configuration.lists_for_tuples,
    fields.by_layer_type,
    fields.missing,
    fields.empty,
    # Guesses.
    inputs.none_in_line,
    inputs.asked_for,
    shapes.single_item,
    inputs.without_sizes,
    fields.all_empty,
    media.larger_for_crops,
    # For any error: to train without a loss is better than not to train at all.
    inputs.without_labels,
)
"""Every hint, in the order in which they are asked: the first new plan is tried."""


def next_plan(situation: Situation, failure: ForwardError, tried: list[Plan]) -> Plan | None:
    """Return the first plan that is not among those ``tried``, or None if no hint has one."""
    for hint in HINTS:
        plan = hint(situation, failure)
        if plan is not None and plan not in tried:
            return plan
    return None
