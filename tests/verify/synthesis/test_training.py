"""Classes are fed as training feeds them, as far as they take it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

pytestmark = pytest.mark.torch


def _tiny_model(name: str) -> Any:
    from gclint.verify.worker.synthesis.attempts.search import tiny_models

    model, _, kind = name.partition(".")
    return next(
        tiny_models(getattr(importlib.import_module(f"transformers.models.{model}.modeling_{model}"), kind))
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
    tiny_model = _tiny_model(name)
    inputs = tiny_model.inputs()
    assert given <= set(inputs)
    assert tiny_model.refused == ()
    for mask in (each for each in given if each.endswith("mask") and "global" not in each):
        assert bool(inputs[mask][0].all())
        assert not inputs[mask][-1].all()


def test_padding_has_no_labels_and_texts_are_packed() -> None:
    inputs = _tiny_model("llama.LlamaForCausalLM").inputs()
    assert ((inputs["labels"] == -100) == (inputs["attention_mask"] == 0)).all()
    assert (inputs["position_ids"][-1] == 0).sum() == 2


def test_a_second_batch_is_longer() -> None:
    tiny_model = _tiny_model("t5.T5ForConditionalGeneration")
    first, second = tiny_model.inputs(), tiny_model.other_inputs()
    assert first.keys() == second.keys()
    assert all(second[name].shape[1] == first[name].shape[1] + 3 for name in first)
    assert _tiny_model("vit.ViTModel").other_inputs is None


def test_what_a_class_cannot_take_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.bert.modeling_bert import BertModel

    forward = BertModel.forward

    def refuse(self: Any, input_ids=None, attention_mask=None, token_type_ids=None, position_ids=None):  # type: ignore[no-untyped-def]
        if token_type_ids is not None:
            raise NotImplementedError
        return forward(self, input_ids, attention_mask, position_ids=position_ids)

    monkeypatch.setattr(BertModel, "forward", refuse)
    tiny_model = _tiny_model("bert.BertModel")
    assert set(tiny_model.inputs()) == {"input_ids", "attention_mask", "position_ids"}
    assert tiny_model.refused == ("token_type_ids",)


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
    tiny_model = _tiny_model("bert.BertModel")
    assert tiny_model.refused == refused
    assert tiny_model.other_inputs is not None


def _padded(finite: bool, wrong_types: str = "") -> Any:
    """Return a class that divides by its mask, so that padding gives infinite gradients.

    With the types of tokens, it does the same or raises an error, if ``wrong_types`` says so.
    """
    import torch

    from tests.verify.synthesis.one_layer import OneLayerModel

    class Padded(OneLayerModel):
        main_input_name = "input_ids"

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.embedding = torch.nn.Embedding(128, config.hidden_size)
            self.infinite = torch.nn.Parameter(torch.ones(config.hidden_size))

        def forward(self, input_ids: Any, attention_mask: Any = None, token_type_ids: Any = None) -> Any:
            states = super().forward(self.embedding(input_ids))
            if attention_mask is not None:
                states = states / attention_mask[..., None]
            if token_type_ids is not None and wrong_types == "raise":
                raise ValueError(wrong_types)
            if token_type_ids is not None and wrong_types == "divide":
                states = states / token_type_ids[..., None]
            return states if finite else states * (self.infinite / 0)

    return Padded


@pytest.mark.parametrize(
    ("finite", "wrong_types", "given", "refused"),
    [
        (True, "", {"input_ids", "token_type_ids"}, ("attention_mask",)),
        (True, "raise", {"input_ids"}, ("attention_mask", "token_type_ids")),
        pytest.param(
            True,
            "divide",
            {"input_ids"},
            ("attention_mask", "token_type_ids"),
            marks=pytest.mark.xfail(reason="what ran before an input is taken for what runs without it"),
        ),
        # Without any finite gradient, the mask is not to blame.
        (False, "", {"input_ids", "attention_mask", "token_type_ids"}, ()),
        pytest.param(
            False,
            "raise",
            {"input_ids", "attention_mask"},
            ("token_type_ids",),
            marks=pytest.mark.xfail(reason="what ran before an input is taken for what runs without it"),
        ),
    ],
)
def test_a_mask_that_makes_gradients_infinite_is_left_out(
    finite: bool, wrong_types: str, given: set[str], refused: tuple[str, ...]
) -> None:
    from tests.verify.synthesis.one_layer import first

    tiny_model = first(_padded(finite, wrong_types))
    padded = {
        name for name, each in tiny_model.inputs().items() if name != "attention_mask" or not each.all()
    }
    assert (padded, tiny_model.refused) == (given, refused)
    # The second batch is one with which the class runs as well.
    assert tiny_model.other_inputs is not None


def test_a_longer_text_that_makes_gradients_infinite_is_not_a_second_batch() -> None:
    from tests.verify.synthesis.one_layer import OneLayerModel, first

    class Short(_padded(True)):  # type: ignore[misc]
        def forward(self, input_ids: Any) -> Any:
            states = OneLayerModel.forward(self, self.embedding(input_ids))
            return states if input_ids.shape[1] <= 12 else states * (self.infinite / 0)

    tiny_model = first(Short)
    assert tiny_model.inputs()["input_ids"].shape[1] == 12
    assert tiny_model.other_inputs()["input_ids"].shape[1] == 9
