"""Classes are fed as training feeds them, as far as they take it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

pytestmark = pytest.mark.torch


def _specimen(name: str) -> Any:
    from gclint.verify.worker.synthesis.attempts.search import specimens

    model, _, kind = name.partition(".")
    return next(
        specimens(getattr(importlib.import_module(f"transformers.models.{model}.modeling_{model}"), kind))
    )


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("bert.BertForMaskedLM", {"attention_mask", "token_type_ids", "position_ids"}),
        ("llama.LlamaForCausalLM", {"attention_mask", "position_ids"}),
        ("bart.BartForConditionalGeneration", {"attention_mask", "decoder_attention_mask"}),
        ("wav2vec2.Wav2Vec2Model", {"attention_mask"}),
        ("detr.DetrModel", {"pixel_mask"}),
        ("longformer.LongformerModel", {"attention_mask", "global_attention_mask"}),
    ],
)
def test_optional_inputs_are_given(name: str, given: set[str]) -> None:
    specimen = _specimen(name)
    inputs = specimen.inputs()
    assert given <= set(inputs)
    assert specimen.refused == ()
    for mask in (each for each in given if each.endswith("mask") and "global" not in each):
        assert bool(inputs[mask][0].all())
        assert not inputs[mask][-1].all()


def test_padding_has_no_labels_and_texts_are_packed() -> None:
    inputs = _specimen("llama.LlamaForCausalLM").inputs()
    assert ((inputs["labels"] == -100) == (inputs["attention_mask"] == 0)).all()
    assert (inputs["position_ids"][-1] == 0).sum() == 2


def test_a_second_batch_is_longer() -> None:
    specimen = _specimen("t5.T5ForConditionalGeneration")
    first, second = specimen.inputs(), specimen.other_inputs()
    assert first.keys() == second.keys()
    assert all(second[name].shape[1] == first[name].shape[1] + 3 for name in first)
    assert _specimen("vit.ViTModel").other_inputs is None


def test_what_a_class_cannot_take_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.bert.modeling_bert import BertModel

    forward = BertModel.forward

    def refuse(self: Any, input_ids=None, attention_mask=None, token_type_ids=None, position_ids=None):  # type: ignore[no-untyped-def]
        if token_type_ids is not None:
            raise NotImplementedError
        return forward(self, input_ids, attention_mask, position_ids=position_ids)

    monkeypatch.setattr(BertModel, "forward", refuse)
    specimen = _specimen("bert.BertModel")
    assert set(specimen.inputs()) == {"input_ids", "attention_mask", "position_ids"}
    assert specimen.refused == ("token_type_ids",)


@pytest.mark.parametrize(
    ("always", "refused"),
    [
        # Training has no cache, so what goes well with one alone is nothing to train with.
        (False, ("token_type_ids",)),
        # Whatever it is fed, the class cannot do without.
        (True, ()),
    ],
)
def test_inputs_are_tried_without_a_cache(
    always: bool, refused: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.models.bert.modeling_bert import BertModel

    forward = BertModel.forward

    def need_cache(self: Any, input_ids=None, attention_mask=None, token_type_ids=None, use_cache=None):  # type: ignore[no-untyped-def]
        if use_cache is False and (always or token_type_ids is not None):
            raise NotImplementedError
        return forward(self, input_ids, attention_mask)

    monkeypatch.setattr(BertModel, "forward", need_cache)
    specimen = _specimen("bert.BertModel")
    assert specimen.refused == refused
    assert specimen.other_inputs is not None
