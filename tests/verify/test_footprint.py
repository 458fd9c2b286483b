"""What training needs, estimated with tensors that have no content, is what it needs with real ones."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import pytest

from gclint.verify.worker.estimates import Question
from gclint.verify.worker.modes import Mode

pytestmark = pytest.mark.torch

_FAMILIES = [
    ("llama", "LlamaForCausalLM"),
    ("bert", "BertForMaskedLM"),
    ("t5", "T5ForConditionalGeneration"),
    ("gpt2", "GPT2LMHeadModel"),
    ("mixtral", "MixtralForCausalLM"),
    ("mamba", "MambaForCausalLM"),
    ("vit", "ViTForImageClassification"),
    ("llava", "LlavaForConditionalGeneration"),
    ("whisper", "WhisperForConditionalGeneration"),
    ("wav2vec2", "Wav2Vec2ForSequenceClassification"),
    ("qwen3", "Qwen3ForCausalLM"),
    ("gemma3", "Gemma3ForCausalLM"),
    ("bart", "BartForConditionalGeneration"),
    ("qwen2_vl", "Qwen2VLForConditionalGeneration"),
    ("clip", "CLIPModel"),
]
_MODES: tuple[Mode, ...] = ("plain", "non-reentrant", "reentrant")


def _class(model: str, name: str) -> Any:
    return getattr(importlib.import_module(f"transformers.models.{model}.modeling_{model}"), name)


@cache
def _tiny(model: str, name: str) -> Any:
    """Return a class with the verifier's tiny configuration, as the estimate runs it, and its blocks."""
    from gclint.verify.worker.footprint.building import trainee_of
    from gclint.verify.worker.footprint.estimate import runnable
    from gclint.verify.worker.synthesis.attempts.search import specimens

    model_class = _class(model, name)
    config = next(iter(specimens(model_class))).config.to_dict()
    question = Question(batch=3, sequence=14, dtype="float32", config=config)
    trainee, anatomy = runnable(trainee_of([model_class], question))
    return trainee, anatomy.blocks


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize(("model", "name"), _FAMILIES)
def test_fake_bytes_are_real_ones(model: str, name: str) -> None:
    from gclint.verify.worker.footprint.estimate import measurements
    from gclint.verify.worker.footprint.step import take_step

    trainee, blocks = _tiny(model, name)
    assert blocks
    fake = {mode: take_step(trainee, mode, blocks, lambda kept: kept.total).left for mode in _MODES}
    measured = list(measurements(trainee, blocks, _MODES, "cpu"))
    assert [each.error for each in measured] == ["", "", ""]
    assert fake == {each.mode: each.saved_bytes for each in measured}
    assert 0 < fake["non-reentrant"] < fake["plain"]


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize(("model", "name"), [_FAMILIES[0], _FAMILIES[3], _FAMILIES[4]])
def test_the_meter_counts_what_torchs_tracker_counts(model: str, name: str, mode: Mode) -> None:
    from torch.distributed._tools.mem_tracker import MemTracker

    from gclint.verify.worker.examination.subject import enable_checkpointing
    from gclint.verify.worker.footprint.fake import Meter
    from gclint.verify.worker.footprint.step import loss_of

    trainee, _ = _tiny(model, name)
    peaks = []
    for make in (Meter, lambda _model: MemTracker()):
        model_ = trainee.build()
        if mode != "plain":
            enable_checkpointing(model_, mode)
        watch = make(model_)
        if isinstance(watch, MemTracker):
            watch.track_external(model_)
        inputs = trainee.inputs()
        with watch:
            loss_of(model_(**inputs)).backward()
        if isinstance(watch, Meter):
            peaks.append(watch.peak)
        else:
            peaks.append(sum(each["Total"] for each in watch.get_tracker_snapshot("peak").values()))
    assert peaks[0] == peaks[1]


@pytest.mark.parametrize(
    ("one", "other", "ends", "groups"),
    [
        ((8, 16), (3, 16, 32), (2, 5, 8), 1),
        ((3, 8, 16), (3, 16, 32), None, 3),
        ((3, 8, 16), (16, 24), (8, 16, 24), 1),
        ((16, 8), (8, 32), (2, 5, 8), 1),
    ],
)
def test_the_shape_of_a_product_of_groups_is_that_of_the_real_one(
    one: tuple[int, ...], other: tuple[int, ...], ends: tuple[int, ...] | None, groups: int
) -> None:
    import torch

    from gclint.verify.worker.footprint.fake import Meter, PartlyFake

    given = torch.ones(one), torch.ones(other)
    offsets = torch.tensor(ends, dtype=torch.int32) if ends else None
    with Meter(torch.nn.Identity()) as meter:
        real = torch._grouped_mm(*given, offs=offsets)
    assert meter.flops == 2 * groups * one[-2] * one[-1] * other[-1]
    fake = PartlyFake()
    converted = fake.convert(given)
    with fake:
        assert torch._grouped_mm(*converted, offs=offsets).shape == real.shape


@pytest.mark.parametrize(("more", "is_fake"), [(0, False), (1, True)])
def test_whole_numbers_are_real_up_to_64_mebibytes(more: int, is_fake: bool) -> None:
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    from gclint.verify.worker.footprint.fake import PartlyFake

    with PartlyFake():
        made = torch.zeros((1 << 26) + more, dtype=torch.uint8)
    assert isinstance(made, FakeTensor) is is_fake


@pytest.mark.parametrize(
    ("optimizer", "for_each"),
    [("adamw", 4), ("adamw-fp32", 12), ("adamw-8bit", 2), ("sgd", 0), ("sgd-momentum", 2), ("none", 0)],
)
def test_the_state_of_an_optimizer_in_bfloat16(optimizer: str, for_each: int) -> None:
    from gclint.verify.worker.estimates import MemoryEstimate
    from gclint.verify.worker.footprint.building import trainee_of
    from gclint.verify.worker.footprint.estimate import _described

    sizes = {"vocab_size": 32, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    question = Question(config={**sizes, **heads}, optimizer=optimizer)
    trainee = trainee_of([_class("llama", "LlamaForCausalLM")], question)
    found = _described(trainee, question, MemoryEstimate("modeling_llama.py", "LlamaForCausalLM"))
    assert found.gradient_bytes == 2 * found.parameters
    assert found.optimizer_bytes == for_each * found.parameters
