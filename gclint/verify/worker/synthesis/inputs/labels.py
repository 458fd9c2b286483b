"""Labels, which a loss compares the output with."""

from __future__ import annotations

import torch

from gclint.verify.worker.synthesis.inputs.situation import Situation
from gclint.verify.worker.synthesis.inputs.text import input_ids
from gclint.verify.worker.synthesis.inputs.vision import side


def _labels(situation: Situation) -> torch.Tensor | None:
    classes = int(getattr(situation.config, "num_labels", None) or 2)
    if situation.is_for(
        "SequenceClassification|ImageClassification|AudioClassification|VideoClassification|MultipleChoice|NextSentence|XVector"
    ):
        return situation.integers("labels", 0, classes, situation.plan.batch)
    if situation.is_for("SemanticSegmentation"):
        return situation.integers("labels", 0, classes, situation.plan.batch, *side(situation))
    if situation.is_for("CTC"):
        return situation.tokens("labels", situation.plan.batch, 2)
    if situation.is_encoder_decoder or situation.is_for("SpeechSeq2Seq|EncoderDecoder"):
        return situation.tokens("labels", situation.plan.batch, situation.plan.length - 2)
    if "input_ids" in situation.parameters:
        ids = input_ids(situation)
        if situation.is_for("TokenClassification"):
            return situation.integers("labels", 0, classes, *ids.shape)
        if situation.is_for("LM|ConditionalGeneration|PreTraining"):
            return situation.tokens("labels", *ids.shape)
    return None


def _positions(situation: Situation) -> torch.Tensor:
    return situation.integers("positions", 1, situation.plan.length - 1, situation.plan.batch)


LABELS = (
    (r"labels", _labels, True),
    (r"start_positions|end_positions", _positions, True),
)
