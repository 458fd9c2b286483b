"""Text: tokens, masks, boxes, entities, and what a decoder reads."""

from __future__ import annotations

from typing import Any

import torch

from gclint.verify.worker.synthesis.inputs.patches import patch_mask, patches
from gclint.verify.worker.synthesis.inputs.placeholders import modality_of_tokens, with_placeholders
from gclint.verify.worker.synthesis.inputs.situation import Situation


def input_ids(situation: Situation) -> torch.Tensor:
    """Return tokens, with placeholders for other modalities."""
    ids = situation.tokens("input_ids", situation.plan.batch, situation.plan.length)
    ids = with_placeholders(situation, ids)
    end = situation.get("eos_token_id")
    if situation.is_for("SequenceClassification") and situation.is_encoder_decoder and isinstance(end, int):
        # The decoder's state at the end of the sequence is classified.
        ids[:, -1] = end
    if situation.is_for("MultipleChoice"):
        ids = torch.stack([ids, ids.flip(-1)], dim=1)
    return ids


def _decoder_input_ids(situation: Situation) -> torch.Tensor | None:
    if situation.is_for("SequenceClassification"):
        return None
    size = situation.get("decoder_vocab_size", "vocab_size")
    decoder = getattr(situation.config, "decoder", None)
    size = (
        getattr(decoder, "vocab_size", None) or getattr(decoder, "get", lambda _: None)("vocab_size") or size
    )
    return situation.tokens(
        "decoder_input_ids", situation.plan.batch, situation.plan.length - 2, vocabulary=size
    )


def _attention_mask(situation: Situation) -> torch.Tensor:
    of_patches = None if "input_ids" in situation.parameters else patch_mask(situation)
    return torch.ones_like(input_ids(situation)) if of_patches is None else of_patches


def _zeros(situation: Situation) -> torch.Tensor:
    return torch.zeros_like(input_ids(situation))


def _token_type_ids(situation: Situation) -> torch.Tensor:
    # Placeholders of images are of the second type.
    return modality_of_tokens(situation, input_ids(situation)).clamp(max=1)


def _modalities(situation: Situation) -> torch.Tensor:
    return modality_of_tokens(situation, input_ids(situation))


def hidden_states(situation: Situation) -> torch.Tensor | None:
    """Return hidden states, or patches for a tower that uses this name for them."""
    if "grid_thw" in situation.parameters:
        return patches(situation, "hidden_states")
    return situation.floats("hidden_states", situation.plan.batch, situation.plan.length, situation.width())


def _encoder_states(situation: Situation) -> torch.Tensor:
    names = ("encoder_hidden_size", "cross_attention_hidden_size", "encoder_width")
    width = next((w for name in names if (w := getattr(situation.config, name, None))), situation.width())
    return situation.floats("encoder_hidden_states", situation.plan.batch, situation.plan.length, width)


def _bbox(situation: Situation) -> torch.Tensor:
    corner = situation.integers("bbox", 0, 40, situation.plan.batch, situation.plan.length, 2)
    return torch.cat([corner, corner + 7], dim=-1)


def _entities(situation: Situation) -> torch.Tensor:
    size = situation.get("entity_vocab_size", default=8)
    return _of_choices(situation, situation.integers("entity_ids", 1, size, situation.plan.batch, 2))


def _entity_ones(situation: Situation) -> torch.Tensor:
    return _of_choices(situation, torch.ones(situation.plan.batch, 2, dtype=torch.long))


def _entity_positions(situation: Situation) -> torch.Tensor:
    positions = torch.full((situation.plan.batch, 2, situation.get("max_mention_length", default=4)), -1)
    positions[:, 0, :2] = torch.tensor([1, 2])
    positions[:, 1, :2] = torch.tensor([4, 5])
    return _of_choices(situation, positions)


def _of_choices(situation: Situation, value: torch.Tensor) -> torch.Tensor:
    """Return ``value`` for each of two choices, if the class takes several."""
    return torch.stack([value, value], dim=1) if situation.is_for("MultipleChoice") else value


def _query_embeds(situation: Situation) -> torch.Tensor:
    return situation.floats(
        "query_embeds", situation.plan.batch, situation.plan.sizes.queries, situation.width()
    )


def _position_embeddings(situation: Situation) -> tuple[torch.Tensor, torch.Tensor]:
    heads = situation.get("num_attention_heads", default=4)
    angles = situation.floats("position_embeddings", situation.plan.length, situation.width() // heads)
    return angles.cos(), angles.sin()


def _languages(situation: Situation) -> Any:
    if any("sp" in name and name.endswith("_id") for name in situation.parameters):
        # Together with a speaker, it is embedded as a sequence of one position.
        return _speaker(situation)
    return torch.zeros(situation.plan.batch, dtype=torch.long)


def _speaker(situation: Situation) -> torch.Tensor:
    return torch.zeros(situation.plan.batch, 1, dtype=torch.long)


TEXT = (
    (r"input_ids|qformer_input_ids|char_input_ids", input_ids, True),
    (r"decoder_input_ids", _decoder_input_ids, True),
    (r"attention_mask|qformer_attention_mask", _attention_mask, False),
    (r"token_type_ids", _token_type_ids, False),
    (r"(moe_)?mm_token_type_ids", _modalities, True),
    (r"input_shape_ids|input_pronunciation_ids|task_type_ids", _zeros, False),
    (r"hidden_states|inputs_embeds|decoder_inputs_embeds", hidden_states, False),
    (r"encoder_hidden_states", _encoder_states, False),
    (r"bbox", _bbox, True),
    (r"entity_ids", _entities, True),
    (r"entity_attention_mask", _entity_ones, True),
    (r"entity_position_ids", _entity_positions, True),
    (r"query_embeds", _query_embeds, False),
    (r"position_embeddings", _position_embeddings, False),
    (r"entity_(start|end)_positions", _entity_ones, True),
    (r"lang_ids?", _languages, False),
    (r"(spkr|speaker)_id", _speaker, False),
)
