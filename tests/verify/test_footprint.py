"""What training needs, estimated with tensors that have no content, is what it needs with real ones."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from gclint.verify.worker.estimates import ADAFACTOR, EstimateRequest, Lora, Sharding
from gclint.verify.worker.modes import Mode

pytestmark = [
    pytest.mark.torch,
    # Libraries warn of each other's names, which change.
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

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
    from gclint.verify.worker.synthesis.attempts.search import tiny_models

    model_class = _class(model, name)
    config = next(iter(tiny_models(model_class))).config.to_dict()
    question = EstimateRequest(batch=3, sequence=14, dtype="float32", config=config)
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

    from gclint.verify.worker.examination.model_under_test import enable_checkpointing
    from gclint.verify.worker.footprint.fake import Meter
    from gclint.verify.worker.footprint.step import loss_of

    trainee, _ = _tiny(model, name)
    peaks = []
    for make in (Meter, lambda _model: MemTracker()):
        model_ = trainee.build()
        if mode != "plain":
            enable_checkpointing(model_, {"use_reentrant": mode == "reentrant"})
        watch = make(model_)
        if isinstance(watch, MemTracker):
            watch.track_external(model_)
        inputs = trainee.inputs()
        with watch:
            loss_of(model_(**inputs)).backward()
        if isinstance(watch, Meter):
            peaks.append(max(watch.peaks.values()))
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
    question = EstimateRequest(config={**sizes, **heads}, optimizer=optimizer)
    trainee = trainee_of([_class("llama", "LlamaForCausalLM")], question)
    found = _described(trainee, question, MemoryEstimate("modeling_llama.py", "LlamaForCausalLM"))
    assert found.gradient_bytes == 2 * found.parameters
    assert found.optimizer_bytes == for_each * found.parameters


_WAYS: dict[str, dict[str, Any]] = {
    "autocast": {"autocast": True},
    "LoRA": {"lora": Lora(4)},
    "LoRA, accumulated": {"lora": Lora(4), "accumulates": True, "autocast": True},
}


@pytest.mark.drawn(full=8)
@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize(("model", "name"), _FAMILIES[:5] + _FAMILIES[6:8] + _FAMILIES[12:13])
def test_other_ways_to_train_keep_what_they_really_keep(model: str, name: str, way: str) -> None:
    from gclint.verify.worker.footprint.estimate import measurements
    from gclint.verify.worker.footprint.step import structure_of, take_step

    trainee, _ = _tiny(model, name)
    trainee = replace(trainee, question=replace(trainee.question, **_WAYS[way]))
    blocks = structure_of(trainee).blocks
    assert blocks
    fake = {mode: take_step(trainee, mode, blocks, lambda kept: kept.total).left for mode in _MODES}
    measured = list(measurements(trainee, blocks, _MODES, "cpu"))
    assert [each.error for each in measured] == ["", "", ""]
    assert fake == {each.mode: each.saved_bytes for each in measured}
    assert 0 < fake["non-reentrant"] < fake["plain"]


def _llama(**asked: Any) -> tuple[Any, Any]:
    """Return how a small Llama is kept, and the estimate that says so."""
    from gclint.verify.worker.estimates import MemoryEstimate
    from gclint.verify.worker.footprint.building import trainee_of
    from gclint.verify.worker.footprint.estimate import _described

    sizes = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "tie_word_embeddings": False}
    question = EstimateRequest(config={**sizes, **heads}, **asked)
    trainee = trainee_of([_class("llama", "LlamaForCausalLM")], question)
    return trainee, _described(trainee, question, MemoryEstimate("modeling_llama.py", "LlamaForCausalLM"))


def test_quantised_weights_are_those_of_linear_layers_but_the_head() -> None:
    _, whole = _llama(lora=Lora(4))
    for bits, scales in ((4, 64 * 64 // 64), (8, 64)):
        _, found = _llama(lora=Lora(4), bits=bits)
        # Of each of the seven layers in a block: 64 x 64 weights in bfloat16, and scales in float32.
        saved = 2 * 7 * (64 * 64 * 2 - 64 * 64 * bits // 8 - 4 * scales)
        assert whole.weight_bytes - found.weight_bytes == saved
        assert (found.gradient_bytes, found.trained) == (whole.gradient_bytes, whole.trained)
    assert whole.trained == 2 * 7 * 2 * 64 * 4
    # peft keeps adapters of a model in bfloat16 in float32.
    assert whole.gradient_bytes == 4 * whole.trained


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_ranks_share_what_their_stage_says(stage: int) -> None:
    from gclint.verify.worker.footprint.step import take_step

    plain, alone = _llama()
    shared, found = _llama(sharding=Sharding(stage, 4))
    sizes = ("optimizer_bytes", "gradient_bytes", "weight_bytes")
    ratios = [getattr(alone, name) / getattr(found, name) for name in sizes]
    assert ratios[:stage] == pytest.approx([4] * stage, rel=0.01)
    assert ratios[stage:] == [1] * (3 - stage)
    peaks = [take_step(each, "non-reentrant", (), lambda _: None).peak_bytes for each in (plain, shared)]
    assert (peaks[1] < peaks[0]) is (stage > 1)


def test_a_factored_state_is_as_large_as_that_of_the_library() -> None:
    from transformers.optimization import Adafactor

    trainee, found = _llama(optimizer=ADAFACTOR)
    model = trainee.build()
    optimizer = Adafactor(model.parameters())
    for each in model.parameters():
        each.grad = each.detach().clone()
    optimizer.step()
    kept = [each for state in optimizer.state.values() for each in state.values() if hasattr(each, "nbytes")]
    assert found.optimizer_bytes == sum(each.nbytes for each in kept if each.numel() > 1)


def test_gradients_of_earlier_batches_are_there_from_the_beginning() -> None:
    from gclint.verify.worker.footprint.step import take_step

    one, found = _llama()
    more, _ = _llama(accumulates=True)
    peaks = [take_step(each, "non-reentrant", (), lambda _: None).peak_bytes for each in (one, more)]
    assert 0 < peaks[1] - peaks[0] <= found.gradient_bytes


def test_what_helps_is_named_if_nothing_fits() -> None:
    from gclint.verify.worker.footprint.estimate import estimates

    question = _llama(budget=100)[0].question
    *_, found = estimates("modeling_llama.py", [_class("llama", "LlamaForCausalLM")], question, "cpu")
    needed = {each.option: each.needed_bytes for each in found.helps}
    assert list(needed) == [
        "--optimizer adamw-8bit",
        "--shard zero3:8",
        "--lora r=16",
        "--lora r=16 --bits 4",
    ]
    (fit,) = [each for each in found.fits if (each.dimension, each.mode) == ("batch", "non-reentrant")]
    # In so small a model, adapters of rank 16 are as large as the layers.
    assert max(needed["--optimizer adamw-8bit"], needed["--shard zero3:8"]) < fit.needed_bytes
    assert needed["--lora r=16 --bits 4"] < needed["--lora r=16"]
