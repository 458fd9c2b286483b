"""``gclint.check`` on models that somebody has built, in the process that they were built in."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import gclint
from gclint.verify.worker.cause import Cause
from tests.environment import PROJECT
from tests.verify.planted import examine_planted, imported, tiny_model
from tests.verify.process_state import everything

pytestmark = pytest.mark.torch


@pytest.fixture
def planted() -> Iterator[Any]:
    """Return a planted model and its batch, by the name of its folder."""
    with ExitStack() as stack:

        def make(name: str) -> tuple[Any, dict[str, Any]]:
            made = tiny_model(stack.enter_context(imported(name)))
            return made.build(), made.inputs()

        yield make


@pytest.fixture(scope="module")
def llama() -> tuple[Any, dict[str, Any]]:
    """A model as it is in the middle of its training: it has run in several threads, and has gradients."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=64,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            attention_dropout=0.1,
        )
    )
    large = torch.randn(600, 600)
    assert (large @ large).isfinite().all()
    tokens = torch.randint(0, 64, (2, 9))
    batch = {"input_ids": tokens, "labels": tokens}
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    torch.set_num_threads(threads)
    return model, batch


def _enable(model: Any) -> None:
    # Newer releases have another name for it, and warn of this one.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    enable()


def test_a_right_model_passes(llama: Any) -> None:
    result = gclint.check(*llama)
    assert result.passed, result
    assert (result.failures, result.reason) == ((), None)
    assert "LlamaForCausalLM passed: 3 of 3 blocks were recomputed" in result.text
    assert set(result.details.scenarios) >= {"default", "two forwards", "dropout", "cache", "frozen base"}


def test_a_wrong_model_fails_and_says_why(planted: Any) -> None:
    result = gclint.check(*planted("keyword_stream"))
    assert not result.passed
    assert {each.cause for each in result.failures} == {Cause.KEYWORD_ACTIVATION}
    assert "ToyModel failed missing gradients (reentrant default)" in str(result)
    assert "modeling_toy.py:" in str(result)
    assert "proven setting: use_reentrant=False" in str(result)


@pytest.mark.parametrize("name", ["cache_by_position", "first_forgotten", "legacy_branches"])
def test_it_finds_what_the_command_finds(planted: Any, name: str) -> None:
    expected = {(each.mode, each.check, each.cause) for each in examine_planted(name).failures}
    found = {(each.mode, each.check, each.cause) for each in gclint.check(*planted(name)).failures}
    assert found == expected


def test_gradients_that_are_there_hide_none_that_are_lost(planted: Any) -> None:
    model, batch = planted("keyword_stream")
    model(**batch)[0].sum().backward()
    result = gclint.check(model, batch, scenarios=())
    assert {each.cause for each in result.failures} == {Cause.KEYWORD_ACTIVATION}


def test_batches_of_two_lengths_take_turns(planted: Any) -> None:
    model, batch = planted("left_between_forwards")
    longer = {key: each.repeat(1, 2) for key, each in batch.items()}
    assert gclint.check(model, batch).passed
    result = gclint.check(model, [batch, longer])
    assert {(each.scenario, each.cause) for each in result.failures} == {("two forwards", Cause.STATE)}


def test_memory_that_processes_share_stays_as_it_is(planted: Any) -> None:
    model, batch = planted("batch_norm")
    model.share_memory()
    before = everything(model)
    assert not gclint.check(model, batch, scenarios=()).passed
    assert everything(model) == before


def test_a_loader_whose_processes_wait_goes_on(planted: Any) -> None:
    from torch.utils.data import DataLoader

    model, batch = planted("healthy")
    rows = [{"input_ids": each} for each in batch["input_ids"]]
    loader = DataLoader(rows, batch_size=1, num_workers=1, persistent_workers=True)
    waiting = iter(loader)
    before = signal.getsignal(signal.SIGCHLD)
    assert gclint.check(model, next(waiting), scenarios=()).passed
    assert signal.getsignal(signal.SIGCHLD) == before
    assert set(next(waiting)) == {"input_ids"}


@pytest.mark.parametrize("name", ["cache_by_position", "counter_outside", "batch_norm", "crash"])
def test_everything_stays_as_it_is(planted: Any, name: str) -> None:
    model, batch = planted(name)
    model.eval()
    model.layers[0].requires_grad_(False)
    model(**batch)[0].sum().backward()
    _enable(model)
    model.layers[1].register_forward_hook(lambda *_: None)
    before, inputs = everything(model), {key: each.clone() for key, each in batch.items()}
    assert gclint.check(model, batch).details.scenarios
    assert everything(model) == before
    assert all(bool((batch[key] == each).all()) for key, each in inputs.items())


def test_a_model_that_has_been_trained_in_threads_stays_as_it_is(llama: Any) -> None:
    model, _ = llama
    before = everything(model)
    assert gclint.check(*llama, scenarios=["two forwards"]).passed
    assert everything(model) == before


def test_scenarios_are_run_beside_the_default_one(llama: Any) -> None:
    result = gclint.check(*llama, scenarios=["cache", "layerdrop"])
    assert result.details.scenarios == ("default", "cache")
    assert "note: the scenario 'layerdrop' does not apply to this model" in result.text
    assert gclint.check(*llama, scenarios=[]).details.scenarios == ("default",)


def test_set_ups_are_rows_of_the_result(llama: Any) -> None:
    result = gclint.check(*llama, scenarios=["autocast:N"])
    assert result.passed, result
    assert [(each.title, each.outcome) for each in result.details.setups] == [("autocast:N", "works")]
    assert "autocast, LlamaForCausalLM" in result.text


def test_a_model_may_ask_for_threads(llama: Any) -> None:
    import torch

    model, batch = llama

    def compute(*_: Any) -> None:
        torch.set_num_threads(4)
        large = torch.ones(600, 600)
        assert (large @ large).isfinite().all()

    handle = model.register_forward_pre_hook(compute)
    result = gclint.check(model, batch, scenarios=(), seconds=60)
    handle.remove()
    assert result.passed, result


def test_a_set_up_that_fails_and_that_no_other_helps_is_a_failure(llama: Any) -> None:
    pytest.importorskip("peft")
    result = gclint.check(*llama, scenarios=["peft:prefix-tuning/R"])
    assert (result.passed, result.details.outcome) == (False, "passed")
    assert "fails: prefix-tuning/R" in result.text


def test_a_batch_may_be_what_a_tokenizer_returns(llama: Any) -> None:
    from transformers import BatchEncoding

    model, batch = llama
    result = gclint.check(model, BatchEncoding({"input_ids": batch["input_ids"]}), scenarios=())
    assert result.passed, result
    assert "the batch has no labels" in result.text


def test_checkpointing_that_is_on_and_modes_of_autograd_do_not_matter(planted: Any) -> None:
    import torch

    model, batch = planted("healthy")
    _enable(model)
    model.eval()
    with torch.no_grad():
        result = gclint.check(model, batch, scenarios=())
    assert result.passed, result
    assert "checkpointing was enabled" in result.text


def test_checkpointing_that_cannot_be_switched_off_is_not_compared(planted: Any) -> None:
    model, batch = planted("healthy")
    _enable(model)
    model.gradient_checkpointing_disable = model.activation_checkpointing_disable = lambda: None
    result = gclint.check(model, batch)
    assert (result.passed, result.details.category) == (False, "checkpointing stays on")


def test_a_loss_that_is_not_finite_is_said(llama: Any) -> None:
    import torch

    model, batch = llama
    undefined = torch.full_like(batch["labels"], -100)
    result = gclint.check(model, {**batch, "labels": undefined})
    assert (result.passed, result.failures) == (False, ())
    assert result.reason == "the loss is not a finite number"
    assert "not run" in result.text


def test_a_model_that_takes_too_long_is_ended(planted: Any) -> None:
    result = gclint.check(*planted("hang"), seconds=6)
    assert not result.passed
    assert "no end within" in result.text


def test_adapters_of_peft_are_trained_as_they_are(llama: Any) -> None:
    import copy

    peft = pytest.importorskip("peft")
    model, batch = llama
    targets = ["q_proj", "down_proj"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapters = peft.LoraConfig(r=2, target_modules=targets, init_lora_weights=False)
        adapted = peft.get_peft_model(copy.deepcopy(model), adapters)
    result = gclint.check(adapted, batch, scenarios=["cache"])
    assert result.passed, result
    assert result.details.parameters == 12
    assert "modeling_llama.py: PeftModel passed: 3 of 3 blocks" in result.text


def _wrong_calls() -> dict[str, tuple[Any, str]]:
    return {
        "tuple": (lambda model, batch: ((model, tuple(batch.values())), {}), "not a tuple"),
        "three": (lambda model, batch: ((model, [batch] * 3), {}), "at most two batches"),
        "empty": (lambda model, batch: ((model, {}), {}), "the batch is empty"),
        "unknown": (lambda model, batch: ((model, {**batch, "idx": 1}), {}), "has no argument 'idx'"),
        "missing": (lambda model, _batch: ((_demanding(model), {"mask": 1}), {}), "lacks 'input_ids'"),
        "copy": (
            lambda model, batch: ((model, {"input_ids": (each for each in list[int]())}), {}),
            "the batch cannot be copied",
        ),
        "class": (lambda model, batch: ((type(model), batch), {}), "the class ToyModel; build it first"),
        "nothing": (lambda model, batch: ((None, batch), {}), "a NoneType"),
        "plain": (lambda model, batch: ((model.layers, batch), {}), "not a transformers model"),
        "wrapped": (lambda model, batch: ((_wrapper(model), batch), {}), "its `module`"),
        "scenario": (
            lambda model, batch: ((model, batch), {"scenarios": ["cach"]}),
            "there is no set-up 'cach'",
        ),
        "text": (lambda model, batch: ((model, batch), {"scenarios": "cache"}), "['cache']"),
        "frozen": (lambda model, batch: ((model.requires_grad_(False), batch), {}), "nothing to train"),
        "meta": (lambda model, batch: ((model.to("meta"), batch), {}), "is on meta"),
        "unsupported": (lambda model, batch: ((_unsupporting(model), batch), {}), "is not True"),
        "configured": (lambda model, batch: ((_configured(model), batch), {}), "build the model with False"),
        "checkpointed": (lambda model, batch: ((_checkpointed(model), batch), {}), "checkpoint_wrapper"),
    }


@pytest.mark.parametrize("name", _wrong_calls())
def test_a_wrong_call_says_what_to_do(planted: Any, name: str) -> None:
    call, words = _wrong_calls()[name]
    arguments, options = call(*planted("healthy"))
    with pytest.raises(gclint.CheckError) as raised:
        gclint.check(*arguments, **options)
    assert words in str(raised.value)


def _demanding(model: Any) -> Any:
    forward = type(model).forward
    model.forward = lambda input_ids, mask: forward(model, input_ids)
    return model


def _wrapper(model: Any) -> Any:
    from torch import nn

    wrapper = nn.Module()
    wrapper.module = model
    return wrapper


def _unsupporting(model: Any) -> Any:
    model.supports_gradient_checkpointing = False
    return model


def _configured(model: Any) -> Any:
    model.config.gradient_checkpointing = True
    return model


def _checkpointed(model: Any) -> Any:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    model.layers[0] = checkpoint_wrapper(model.layers[0])
    return model


def test_it_can_be_called_in_a_thread(llama: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(gclint.check, *llama, scenarios=()).result().passed


def test_a_process_that_cannot_be_forked_says_what_to_do(llama: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def refuse(_self: Any) -> None:
        raise RuntimeError("Unable to handle autograd's threading in combination with fork-based")

    monkeypatch.setattr(torch.Tensor, "backward", refuse)
    with pytest.raises(gclint.CheckError, match="a GPU has been used in this process"):
        gclint.check(*llama)


def test_the_documented_example_passes(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    text = (PROJECT / "docs" / "testing.md").read_text(encoding="utf-8")
    example = text.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "test_example.py").write_text(example, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "test_example.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 passed" in ran.stdout, ran.stdout
