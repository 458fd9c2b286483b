"""Text: tokens, masks, boxes, entities, what a decoder reads, labels, and which token attends to what."""

from __future__ import annotations

from typing import Any

import torch

from gclint.verify.worker.synthesis.inputs.images import ONE_IMAGE, patch_mask, patches, side, tile_count
from gclint.verify.worker.synthesis.inputs.placeholders import modality_of_tokens, with_placeholders
from gclint.verify.worker.synthesis.inputs.situation import Providers, Situation


def _input_ids(situation: Situation) -> torch.Tensor:
    """Return tokens, with placeholders for other modalities."""
    ids = situation.tokens("input_ids", situation.batch, situation.length)
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
    own = getattr(decoder, "vocab_size", None) or getattr(decoder, "get", lambda _: None)("vocab_size")
    shape = (situation.batch, situation.length - 2)
    return situation.tokens("decoder_input_ids", *shape, vocabulary=own or size)


def _attention_mask(situation: Situation) -> torch.Tensor:
    of_patches = None if "input_ids" in situation.parameters else patch_mask(situation)
    return torch.ones_like(_input_ids(situation)) if of_patches is None else of_patches


def _modalities(situation: Situation) -> torch.Tensor:
    return modality_of_tokens(situation, _input_ids(situation))


def hidden_states(situation: Situation) -> torch.Tensor | None:
    """Return hidden states, or patches for a tower that uses this name for them."""
    if "grid_thw" in situation.parameters:
        return patches(situation, "hidden_states")
    return situation.floats("hidden_states", situation.batch, situation.length, situation.width())


def _encoder_states(situation: Situation) -> torch.Tensor:
    names = ("encoder_hidden_size", "cross_attention_hidden_size", "encoder_width")
    width = next((w for name in names if (w := getattr(situation.config, name, None))), situation.width())
    return situation.floats("encoder_hidden_states", situation.batch, situation.length, width)


def _bbox(situation: Situation) -> torch.Tensor:
    corner = situation.integers("bbox", 0, 40, situation.batch, situation.length, 2)
    return torch.cat([corner, corner + 7], dim=-1)


def _entities(situation: Situation) -> torch.Tensor:
    size = situation.get("entity_vocab_size", default=8)
    return _of_choices(situation, situation.integers("entity_ids", 1, size, situation.batch, 2))


def _entity_positions(situation: Situation) -> torch.Tensor:
    positions = torch.full((situation.batch, 2, situation.get("max_mention_length", default=4)), -1)
    positions[:, 0, :2] = torch.tensor([1, 2])
    positions[:, 1, :2] = torch.tensor([4, 5])
    return _of_choices(situation, positions)


def _of_choices(situation: Situation, value: torch.Tensor) -> torch.Tensor:
    """Return ``value`` for each of two choices, if the class takes several."""
    return torch.stack([value, value], dim=1) if situation.is_for("MultipleChoice") else value


def _position_embeddings(situation: Situation) -> tuple[torch.Tensor, torch.Tensor]:
    heads = situation.get("num_attention_heads", default=4)
    angles = situation.floats("position_embeddings", situation.length, situation.width() // heads)
    return angles.cos(), angles.sin()


def _languages(situation: Situation) -> Any:
    # Together with a speaker, it is embedded as a sequence of one position.
    has_speaker = any("sp" in name and name.endswith("_id") for name in situation.parameters)
    return torch.zeros(situation.batch, *([1] if has_speaker else []), dtype=torch.long)


def _tile_mask(situation: Situation) -> torch.Tensor | None:
    if "aspect_ratio_ids" not in situation.parameters:
        return None
    return _image_per_token(situation, tile_count(situation))


def _image_mask(situation: Situation) -> torch.Tensor | None:
    return _image_per_token(situation) if "perceiver_embeddings" in situation.parameters else None


def _image_per_token(situation: Situation, *parts: int) -> torch.Tensor:
    return situation.ones(situation.batch, _input_ids(situation).shape[1], ONE_IMAGE, *parts)


def _query_positions(situation: Situation) -> torch.Tensor:
    """Mark as many positions of a text as an image has queries."""
    positions = torch.zeros(situation.batch, _input_ids(situation).shape[1], dtype=torch.long)
    positions[:, 1 : 1 + situation.get("latent_query_num", default=4)] = 1
    return positions


def _regions(situation: Situation) -> torch.Tensor:
    choices = _input_ids(situation).shape[1:-1]
    width = situation.get("visual_embedding_dim", default=situation.width())
    return situation.floats("visual_embeds", situation.batch, *choices, 4, width)


def _labels(situation: Situation) -> torch.Tensor | None:
    """Return labels, which a loss compares the output with."""
    classes = int(getattr(situation.config, "num_labels", None) or 2)
    if situation.is_for("(Sequence|Image|Audio|Video)Classification|MultipleChoice|NextSentence|XVector"):
        return situation.integers("labels", 0, classes, situation.batch)
    if situation.is_for("SemanticSegmentation"):
        return situation.integers("labels", 0, classes, situation.batch, *side(situation))
    if situation.is_for("CTC"):
        return situation.tokens("labels", situation.batch, 2)
    if situation.is_encoder_decoder or situation.is_for("SpeechSeq2Seq|EncoderDecoder"):
        return situation.tokens("labels", situation.batch, situation.length - 2)
    if "input_ids" in situation.parameters:
        shape = _input_ids(situation).shape
        if situation.is_for("TokenClassification"):
            return situation.integers("labels", 0, classes, *shape)
        if situation.is_for("LM|ConditionalGeneration|PreTraining"):
            return situation.tokens("labels", *shape)
    return None


TEXT: Providers = (
    (r"input_ids|qformer_input_ids|char_input_ids", _input_ids, True),
    (r"decoder_input_ids", _decoder_input_ids, True),
    (r"attention_mask|qformer_attention_mask", _attention_mask, False),
    # Placeholders of images are of the second type.
    (r"token_type_ids", lambda of: _modalities(of).clamp(max=1), False),
    (r"(moe_)?mm_token_type_ids", _modalities, True),
    (
        r"input_shape_ids|input_pronunciation_ids|task_type_ids",
        lambda of: torch.zeros_like(_input_ids(of)),
        False,
    ),
    # There are as many characters as tokens.
    (r"char_count_per_id", lambda of: of.ones(of.batch, of.length), False),
    (r"hidden_states|inputs_embeds|decoder_inputs_embeds", hidden_states, False),
    (r"encoder_hidden_states", _encoder_states, False),
    (r"bbox", _bbox, True),
    (r"entity_ids", _entities, True),
    (
        r"entity_attention_mask|entity_(start|end)_positions",
        lambda of: _of_choices(of, of.ones(of.batch, 2)),
        True,
    ),
    (r"entity_position_ids", _entity_positions, True),
    (
        r"query_embeds",
        lambda of: of.floats("query_embeds", of.batch, of.plan.sizes.queries, of.width()),
        False,
    ),
    (r"position_embeddings", _position_embeddings, False),
    (r"lang_ids?", _languages, False),
    (r"(spkr|speaker)_id", lambda of: torch.zeros(of.batch, 1, dtype=torch.long), False),
    (r"cross_attention_mask", _tile_mask, True),
    (r"image_attention_mask", _image_mask, True),
    (r"image_embeds_position_mask", _query_positions, True),
    (r"visual_embeds", _regions, True),
    (r"visual_attention_mask", lambda of: of.ones(*_regions(of).shape[:-1]), True),
    (r"labels", _labels, True),
    (r"start_positions|end_positions", lambda of: of.integers("positions", 1, of.length - 1, of.batch), True),
)
