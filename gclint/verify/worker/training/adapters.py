"""Trains adapters of peft on a frozen model."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.model_under_test import ModelUnderTest
from gclint.verify.worker.examination.phrases import names
from gclint.verify.worker.examination.tensors import requires_grad, tensors_in
from gclint.verify.worker.practices import PEFT, AdapterPractice, Practice
from gclint.verify.worker.protocol import Advice, SetUp
from gclint.verify.worker.training.group import (
    CachesReturned,
    DoesNotApply,
    PracticeGroup,
    Prepared,
    Rank,
    batches,
    calls_with,
    library,
    preferring,
    trained_parameters,
)

_RANK = 4
_PROMPT = 3
"""The number of virtual tokens."""
_PROMPTED = ("prompt tuning", "p-tuning", "prefix tuning")
"""The adapters that prepend virtual tokens, for which peft needs the task of the model."""
_REFUSAL = re.compile(r"Module '([\w.]+)' is incompatible with")
_UNQUANTISED = "k-bit, not quantised"
_TASKS = (
    ("ForCausalLM", "CAUSAL_LM"),
    ("LMHeadModel", "CAUSAL_LM"),
    ("ForSequenceClassification", "SEQ_CLS"),
    ("ForTokenClassification", "TOKEN_CLS"),
    ("ForQuestionAnswering", "QUESTION_ANS"),
    ("ForConditionalGeneration", "SEQ_2_SEQ_LM"),
)
"""The tasks of peft, by the ends of the names of classes."""
_PREFERRED = {"LoRA/N": 0, "LoRA/N/first": 1, "LoRA/R/first": 2, "LoRA/R": 3}
_HOPELESS = ("k-bit/unquantised", "prefix-tuning/N", "prefix-tuning/R")
"""The practices that fail for every model, so that advice need not mention them."""


def _prepare(
    practice: Practice, under_test: ModelUnderTest, blocks: Sequence[Block], _rank: Rank
) -> Prepared:
    assert isinstance(practice, AdapterPractice)
    peft = library("peft", PEFT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _enable_before(practice, under_test, peft)
        model = peft.get_peft_model(under_test.model, _config(practice, under_test, peft))
        if practice.enabling == "after":
            under_test.enable_checkpointing(practice.mode)
    model.train()
    is_plain = practice.mode == "plain"
    caches = CachesReturned(model)
    inputs = calls_with(_requires_grad, under_test.model, blocks)
    return Prepared(
        model,
        trained_parameters(model),
        batches(under_test, sets_cache=is_plain),
        inspect=(lambda: None) if is_plain else caches.check,
        remark=lambda: _remark(practice, under_test, inputs),
    )


def _enable_before(practice: AdapterPractice, under_test: ModelUnderTest, peft: Any) -> None:
    """Enable checkpointing if the practice does so before adding adapters."""
    if practice.mode == "plain":
        return
    if practice.enabling == "before":
        under_test.enable_checkpointing(practice.mode)
    elif practice.enabling.startswith("k-bit"):
        if practice.enabling != _UNQUANTISED:
            under_test.model.is_loaded_in_8bit = True
        chosen = {"use_reentrant": practice.mode == "reentrant"} if practice.enabling == "k-bit" else None
        peft.prepare_model_for_kbit_training(under_test.model, gradient_checkpointing_kwargs=chosen)


def _config(practice: AdapterPractice, under_test: ModelUnderTest, peft: Any) -> Any:
    if practice.adapters in _PROMPTED:
        kind = {
            "prompt tuning": peft.PromptTuningConfig,
            "p-tuning": peft.PromptEncoderConfig,
            "prefix tuning": peft.PrefixTuningConfig,
        }[practice.adapters]
        return kind(task_type=_task(under_test), num_virtual_tokens=_PROMPT)
    return lora(
        under_test, peft, [_embeddings(under_test)] if practice.adapters == "modules_to_save" else None
    )


def lora(under_test: ModelUnderTest, peft: Any, saved: list[str] | None = None) -> Any:
    """Return the configuration of LoRA on all linear layers, with modules that are fully trained as well."""
    # With B at zero, as by default, the gradient of A is zero and shows nothing.
    config = peft.LoraConfig(
        r=_RANK, target_modules="all-linear", init_lora_weights=False, modules_to_save=saved
    )
    config.exclude_modules = _refused(under_test, peft, config)
    return config


def _refused(under_test: ModelUnderTest, peft: Any, config: Any) -> list[str] | None:
    """Return the linear layers of such a model that peft rejects with an error."""
    try:
        peft.get_peft_model(copy.deepcopy(under_test.model), copy.deepcopy(config))
    except ValueError as error:
        named = _REFUSAL.search(str(error))
        return [named[1]] if named else None
    return None


def _embeddings(under_test: ModelUnderTest) -> str:
    """Return the name of the embeddings, which are fully trained beside the adapters."""
    try:
        embeddings = under_test.model.get_input_embeddings()
    except NotImplementedError:
        embeddings = None
    found = next((name for name, each in under_test.model.named_modules() if each is embeddings), "")
    if not found:
        raise DoesNotApply("no embeddings", "the model names no module as its input embeddings")
    return found


def _task(under_test: ModelUnderTest) -> str | None:
    """Return the task by which peft knows the model; None if there is none."""
    name = type(under_test.model).__name__
    if getattr(under_test.model, "main_input_name", None) != "input_ids":
        return None
    task = next((task for end, task in _TASKS if name.endswith(end)), None)
    return "CAUSAL_LM" if task == "SEQ_2_SEQ_LM" and not under_test.model.config.is_encoder_decoder else task


def _exists(practice: Practice, under_test: ModelUnderTest) -> bool:
    assert isinstance(practice, AdapterPractice)
    return practice.adapters not in _PROMPTED or _task(under_test) is not None


def _requires_grad(args: Any, kwargs: Any) -> bool:
    return any(requires_grad(each) for _, each in tensors_in((args, kwargs)))


def _remark(
    practice: AdapterPractice, under_test: ModelUnderTest, inputs: Mapping[str, Sequence[bool]]
) -> str:
    """Return a remark on a row, and the reason for its failure if it is known."""
    if practice.mode == "plain":
        return ""
    remarks = []
    if practice.enabling == _UNQUANTISED and not any(under_test.flags().values()):
        remarks.append("prepare_model_for_kbit_training enables nothing for a model that is not quantised")
    elif practice.enabling.startswith("k-bit"):
        remarks.append("is_loaded_in_8bit was set by hand")
    if practice.adapters == "prefix tuning":
        remarks.append("the prefix is passed to the layers as their cache, and checkpointing removes caches")
    without_grad = [name for name, (first, *_) in inputs.items() if not first]
    if practice.mode == "reentrant" and without_grad:
        remarks.append(f"no input of {names(without_grad)} requires grad")
    return "; ".join(remarks)


def _advise(rows: Sequence[SetUp]) -> Advice | None:
    working = [each for each in rows if each.outcome == "works"]
    failing = [each for each in rows if each.outcome == "fails"]
    if working:
        best = min(working, key=lambda each: _PREFERRED.get(each.name, len(_PREFERRED)))
        setting = _setting(best)
        # A set-up that fails for every model has the reason in its row.
        avoided = [each for each in failing if each.name not in _HOPELESS]
        return preferring(PEFT, "With adapters", setting, avoided)
    if failing:
        return Advice(PEFT, "", f"With adapters, no set-up that was run works: {failing[0].message}.")
    return None


def _setting(row: SetUp) -> str:
    setting = f"use_reentrant={'/R' in row.name or row.name.endswith('default')}"
    return f"{setting} before get_peft_model" if row.name.endswith("/first") else setting


ADAPTERS = PracticeGroup(_prepare, _advise, exists=_exists, load=lambda: library("peft", PEFT))
"""Training with adapters."""
