"""Trains with torch's DistributedDataParallel, in a real process group with gloo."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gclint.verify.worker import child
from gclint.verify.worker.examination.blocks import Block
from gclint.verify.worker.examination.model_under_test import ModelUnderTest
from gclint.verify.worker.examination.tensors import OWN
from gclint.verify.worker.modes import Mode
from gclint.verify.worker.practices import (
    DDP,
    IMAGES,
    MIXED,
    ONE_IMAGE,
    PEFT,
    TEXT,
    TWO_FORWARDS,
    TWO_RANKS,
    ParallelPractice,
    Practice,
)
from gclint.verify.worker.protocol import Advice, SetUp
from gclint.verify.worker.scenarios import scenario_named
from gclint.verify.worker.training.adapters import lora
from gclint.verify.worker.training.group import (
    DoesNotApply,
    Prepared,
    Rank,
    batches,
    library,
    trained_parameters,
)
from gclint.verify.worker.training.judgement import UNUSED

_LOOPBACK = "lo0" if sys.platform == "darwin" else "lo"
_WAITING_SHARE = 0.5
"""The share of the time limit for which a process waits for the others, so that it can report a timeout."""
_MODALITIES = {TEXT: (), IMAGES: ("image",), MIXED: ("image", "video"), ONE_IMAGE: ("image",)}
"""The modalities that each kind of batch keeps."""
_SETTINGS = {
    "N/plain": "use_reentrant=False",
    "N/find-unused": "use_reentrant=False, find_unused_parameters=True",
    "R/static": "use_reentrant=True, static_graph=True",
    "R/plain": "use_reentrant=True",
}
"""The settings in order of preference: the rows that test them, and how to set them."""


def prepare(practice: Practice, under_test: ModelUnderTest, _blocks: Sequence[Block], rank: Rank) -> Prepared:
    """Wrap a model, or leave it as it is if the practice is the reference."""
    assert isinstance(practice, ParallelPractice)
    made = _batches(practice, under_test, rank)
    model = _with_adapters(under_test, practice.mode) if practice.has_adapters else under_test.model
    parameters = trained_parameters(model)
    if not practice.by_trainer:
        under_test.enable_checkpointing(practice.mode)
    if not practice.is_wrapped:
        return Prepared(model, parameters, made, in_loss=_loss)
    join(rank)
    if practice.by_trainer:
        wrapped = _as_trainer_does(practice, under_test, model)
        chosen = f"Trainer passes find_unused_parameters={wrapped.find_unused_parameters}"
        return Prepared(wrapped, parameters, made, in_loss=_loss, remark=lambda: chosen)
    wrapped = DistributedDataParallel(
        model, find_unused_parameters=practice.find_unused, static_graph=practice.static
    )
    return Prepared(wrapped, parameters, made, in_loss=_loss)


def exists(practice: Practice, under_test: ModelUnderTest) -> bool:
    """Return whether a class takes such batches."""
    assert isinstance(practice, ParallelPractice)
    available = under_test.tiny_model.modalities()
    if practice.by_trainer or practice.data in (TWO_FORWARDS, TWO_RANKS):
        return True
    if practice.data == TEXT:
        return bool(available)
    # Batches without a special property are named by their content.
    return available.issuperset(_MODALITIES[practice.data]) if practice.data else "image" not in available


def _loss(outputs: dict[str, Tensor]) -> Mapping[str, Tensor]:
    """Return the model's own loss if it has one: training does not use the other outputs."""
    loss = outputs.get(OWN)
    return outputs if loss is None or not loss.requires_grad else {OWN: loss}


def load() -> None:
    """Import what the Trainer needs, and adapters for it."""
    for name in ("accelerate", "transformers.trainer", "peft"):
        library(name, DDP)


def _batches(
    practice: Practice, under_test: ModelUnderTest, rank: Rank
) -> Callable[[int], Sequence[Mapping[str, Any]]]:
    if practice.data == TWO_FORWARDS:
        return batches(under_test, 2)
    if practice.data == TWO_RANKS:
        usual = scenario_named("default")
        return lambda step: [under_test.inputs(usual, step + rank.number)]
    if practice.data == ONE_IMAGE:
        # The ranks alternate, as may happen by chance.
        kept = (_holding(under_test, _MODALITIES[ONE_IMAGE]), _holding(under_test, _MODALITIES[TEXT]))
        return lambda step: kept[(step + rank.number) % 2](step)
    return _holding(under_test, _MODALITIES[practice.data]) if practice.data else batches(under_test)


def _holding(
    under_test: ModelUnderTest, kept: Collection[str]
) -> Callable[[int], Sequence[Mapping[str, Any]]]:
    """Return a function that returns batches with only these modalities."""
    tiny_model = under_test.tiny_model
    if tiny_model.variants is not None and not tiny_model.variants.modalities <= frozenset(kept):
        tiny_model = replace(tiny_model, inputs=partial(tiny_model.variants.inputs, kept), other_inputs=None)
    usual = batches(under_test)

    def made(step: int) -> Sequence[Mapping[str, Any]]:
        under_test.tiny_model = tiny_model
        return usual(step)

    return made


def join(rank: Rank) -> None:
    """Become a member of a process group; raise DoesNotApply if this machine does not allow one."""
    if torch.distributed.is_initialized():
        raise DoesNotApply("no process group", "this process is a member of a process group already")
    # Whatever the machine and its interfaces are called, no traffic needs to leave it.
    os.environ["GLOO_SOCKET_IFNAME"] = _LOOPBACK
    os.environ.update(
        RANK=str(rank.number),
        LOCAL_RANK=str(rank.number),
        WORLD_SIZE=str(rank.count),
        LOCAL_WORLD_SIZE=str(rank.count),
    )
    alone = rank.count == 1
    timeout = timedelta(seconds=_WAITING_SHARE * (child.seconds() or 60.0))
    try:
        store = (
            torch.distributed.HashStore()
            if alone
            else torch.distributed.FileStore(rank.rendezvous, rank.count)
        )
        torch.distributed.init_process_group(
            "gloo", store=store, rank=rank.number, world_size=rank.count, timeout=timeout
        )
    except Exception as error:
        message = f"gloo cannot use the network interface {_LOOPBACK!r} of this machine: {error}"
        raise DoesNotApply("no process group", message) from error
    # At this level, errors name the parameters.
    torch.distributed.set_debug_level(torch.distributed.DebugLevel.INFO)


class _Wrapped(Exception):
    """The Trainer has reached the first step."""


def _as_trainer_does(
    practice: Practice, under_test: ModelUnderTest, model: nn.Module
) -> DistributedDataParallel:
    """Return the model as the Trainer of transformers wraps it when it starts training."""
    library("accelerate", DDP)
    trainer_module = library("transformers.trainer", DDP)
    arguments_module = library("transformers.training_args", DDP)
    found: list[Any] = []

    class Trainer(trainer_module.Trainer):  # type: ignore[misc, name-defined]
        def training_step(self, model: Any, *_arguments: Any, **_keywords: Any) -> Any:
            found.append(model)
            raise _Wrapped

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = arguments_module.TrainingArguments(
            output_dir=tempfile.gettempdir(),
            use_cpu=under_test.device.type == "cpu",
            gradient_checkpointing=True,
            gradient_checkpointing_kwargs={"use_reentrant": practice.mode == "reentrant"},
            report_to="none",
            max_steps=1,
            disable_tqdm=True,
        )
        trainer = Trainer(model, arguments, train_dataset=[{}], data_collator=lambda _: {})
        with suppress(_Wrapped):
            trainer.train()
    # accelerate uses all cores, and several threads round sums differently.
    torch.set_num_threads(1)
    (wrapped,) = found
    assert isinstance(wrapped, DistributedDataParallel)
    return wrapped


def _with_adapters(under_test: ModelUnderTest, mode: Mode) -> nn.Module:
    """Add LoRA to all linear layers; make inputs require grad if the mode needs it, as is common."""
    peft = library("peft", PEFT)
    if mode == "reentrant":
        with suppress(NotImplementedError):
            under_test.model.enable_input_require_grads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: nn.Module = peft.get_peft_model(under_test.model, lora(under_test, peft))
    return model.train()


def advise(rows: Sequence[SetUp]) -> Advice | None:
    """Return the first setting that works in all of its rows, and what it avoids."""
    failed = [each for each in rows if each.outcome == "fails" and each.name in _SETTINGS]
    for name, setting in _SETTINGS.items():
        of_setting = [each.outcome for each in rows if each.name == name]
        # A row that was not run might have failed.
        if of_setting and set(of_setting) == {"works"}:
            before = list(_SETTINGS)[: list(_SETTINGS).index(name)]
            avoided = next((each for each in failed if each.name in before), None)
            instead = f": {_reason(avoided)}" if avoided else ""
            return Advice(DDP, setting, f"With DistributedDataParallel, use {_worded(setting)}{instead}.")
    if not failed:
        return None
    why = f": {failed[0].name}{_on(failed[0])} fails ({failed[0].symptom})"
    return Advice(DDP, "", f"With DistributedDataParallel, no setting that was run works with all data{why}.")


def _worded(setting: str) -> str:
    worded = setting.replace(", ", " with ")
    # By default, the Trainer passes something else with checkpointing.
    in_trainer = " (ddp_find_unused_parameters=True in the Trainer)" if "find_unused" in setting else ""
    return worded + in_trainer


def _reason(row: SetUp) -> str:
    if row.symptom == UNUSED and row.parameters:
        of_data = f"on {row.data}, " if row.data else ""
        first, *others = row.parameters
        such = f"{len(row.parameters)} parameters, such as " if others else ""
        return f"{of_data}no gradient reaches {such}`{first}`"
    return f"{row.name}{_on(row)} fails ({row.symptom})"


def _on(row: SetUp) -> str:
    return f" on {row.data}" if row.data else ""
