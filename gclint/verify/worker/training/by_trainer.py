"""Trains as a Trainer that the user has built does, by its own ``train()``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import islice
from typing import Any

import torch
import torch.distributed
from torch import nn
from transformers.trainer_callback import CallbackHandler, DefaultFlowCallback

from gclint.verify.worker.examination.blocks import Block, BlockFinder
from gclint.verify.worker.examination.inspection.checkpoints import (
    Checkpoints,
    Repeated,
    without_checkpoints,
)
from gclint.verify.worker.examination.model_under_test import ModelUnderTest, enable_checkpointing, seed
from gclint.verify.worker.examination.observers import SavedBytes
from gclint.verify.worker.examination.phrases import of_step
from gclint.verify.worker.live import NotExaminable
from gclint.verify.worker.practices import DDP, FIND_UNUSED, STATIC, Practice, TrainerPractice
from gclint.verify.worker.randomness import random_states, restore_random
from gclint.verify.worker.training.autocast import agreement
from gclint.verify.worker.training.group import (
    Announce,
    DoesNotApply,
    Driven,
    PracticeGroup,
    Prepared,
    Rank,
    library,
    trained_parameters,
)
from gclint.verify.worker.training.parallel import join
from gclint.verify.worker.training.switches import FLAG, Switch

FIRST_BATCH = "the making of the first batch"
"""The stage in which the data set and the collator run."""
NO_BATCH = "the trainer has no first batch to train on"
SWITCHED = (
    "checkpointing is switched on while the trainer trains, so there is nothing to compare with; switch it "
    "on in the trainer's arguments, or before"
)
ALWAYS = "the model calls checkpoint() although checkpointing is not switched on"
NO_TURN = "what switches checkpointing on or off does not work"
BROKEN = "the trainer's own step does not work, with or without checkpointing"
_FUNCTION = "_gradient_checkpointing_func"
_NOTHING = "no"
_SPREAD = 0.02
_LEFT_OUT: Mapping[str, Any] = {
    "auto_find_batch_size": False,
    "dataloader_num_workers": 0,
    "dataloader_persistent_workers": False,
    "dataloader_prefetch_factor": None,
    "disable_tqdm": True,
    "eval_on_start": False,
    "eval_strategy": _NOTHING,
    "gradient_accumulation_steps": 1,
    "logging_strategy": _NOTHING,
    "optim": "sgd",
    "push_to_hub": False,
    "save_strategy": _NOTHING,
    "skip_memory_metrics": True,
}
"""The arguments that have nothing to do with gradients, or only cost time, as they are in a copy."""
_FIND_UNUSED, _STATIC = FIND_UNUSED.removeprefix("ddp_"), STATIC.removeprefix("ddp_")


def arguments_of(trainer: Any) -> tuple[bool, dict[str, Any]]:
    """Return whether a trainer enables checkpointing, and with which keyword arguments."""
    arguments = trainer.args
    is_on, kwargs = (getattr(arguments, each, None) for each in _argument_names(arguments))
    return bool(is_on), dict(kwargs or {})


def word_for_checkpointing(arguments: Any) -> str:
    """Return what a release calls this kind of checkpointing."""
    return "activation" if hasattr(arguments, "activation_checkpointing") else "gradient"


def _argument_names(arguments: Any) -> tuple[str, str]:
    word = word_for_checkpointing(arguments)
    return f"{word}_checkpointing", f"{word}_checkpointing_kwargs"


def is_parallel(trainer: Any) -> bool:
    """Return whether a trainer trains with others, even if there is only one of them."""
    return bool(getattr(trainer.args.parallel_mode, "value", "") == "distributed")


def parallel_options(trainer: Any) -> tuple[tuple[str, bool], ...]:
    """Return what a trainer passes to DistributedDataParallel."""
    chosen = trainer.accelerator.ddp_handler
    return (
        (FIND_UNUSED, bool(getattr(chosen, _FIND_UNUSED, False))),
        (STATIC, bool(getattr(chosen, _STATIC, False))),
    )


def is_checkpointed(model: Any) -> dict[str, Any] | None:
    """Return the keyword arguments with which checkpointing is enabled in a model; None if it is not."""
    for module in model.modules():
        if vars(module).get(FLAG):
            return dict(getattr(vars(module).get(_FUNCTION), "keywords", {}))
    return None


def enable_as_trainer(trainer: Any, is_reentrant: bool | None) -> None:
    """Enable checkpointing as ``train()`` does; by default with the trainer's own arguments."""
    kwargs = arguments_of(trainer)[1] if is_reentrant is None else {"use_reentrant": is_reentrant}
    enable_checkpointing(trainer.model, kwargs or None)


def first_batches(trainer: Any, count: int) -> list[dict[str, Any]]:
    """Return the first batches of a trainer; random numbers and what it keeps of its loaders stay the same.

    Raises:
        NotExaminable: there are none.
    """
    wholes = [(each, dict(vars(each))) for each in (trainer, trainer.args)]
    loaders = list(trainer.accelerator._dataloaders)
    before = random_states()
    trainer.args.dataloader_num_workers = 0
    trainer.args.dataloader_prefetch_factor, trainer.args.dataloader_persistent_workers = None, False
    try:
        found = [dict(batch) for batch in islice(trainer.get_train_dataloader(), count)]
    except Exception as error:  # The data set and the collator are the user's.
        raise NotExaminable(f"{NO_BATCH}: {type(error).__name__}: {error}") from error
    finally:
        for whole, attributes in wholes:
            vars(whole).clear()
            vars(whole).update(attributes)
        trainer.accelerator._dataloaders[:] = loaders
        restore_random(before)
    if not found:
        raise NotExaminable(f"{NO_BATCH}: its data are empty")
    return found


class ByTrainer:
    """Prepares and drives the steps of a trainer; each of them in a copy of this process."""

    def __init__(self, trainer: Any, switch: Switch | None) -> None:
        self._trainer = trainer
        self._switch = switch
        self._random = random_states()
        self._flags = [
            (each, vars(each)[FLAG], vars(each).get(_FUNCTION))
            for each in trainer.model.modules()
            if vars(each).get(FLAG)
        ]
        for parameter in trainer.model.parameters():
            if parameter.requires_grad and not parameter.any():
                # As in a new adapter, or behind a gate: what it multiplies would have no gradient to lose.
                parameter.data.normal_(std=_SPREAD)

    def group(self) -> PracticeGroup:
        """Return the group of its practices."""
        is_mixed = self._trainer.args.bf16 or self._trainer.args.fp16
        return PracticeGroup(
            self._prepare,
            lambda _rows: None,
            scenario="dropout",
            finds_blocks=True,
            **({"agreement": agreement, "rounding": torch.bfloat16} if is_mixed else {}),
        )

    def _prepare(
        self, practice: Practice, under_test: ModelUnderTest, blocks: Sequence[Block], rank: Rank
    ) -> Prepared:
        assert isinstance(practice, TrainerPractice)
        trainer = self._trainer
        for name, value in _LEFT_OUT.items():
            if hasattr(trainer.args, name):
                setattr(trainer.args, name, value)
        # It may have begun to train, and then has wrapped the model and made what it needs.
        trainer.model_wrapped, trainer.model_init = trainer.model, None
        trainer.optimizer = trainer.lr_scheduler = trainer.optimizer_cls_and_kwargs = None
        trainer.callback_handler = CallbackHandler(
            [DefaultFlowCallback], trainer.model, trainer.processing_class, None, None
        )
        # They decide where weights are, and not what is recomputed.
        trainer.is_fsdp_enabled = trainer.is_deepspeed_enabled = False
        if practice.options:
            _join(trainer, rank)
            for name, value in practice.options:
                setattr(trainer.accelerator.ddp_handler, name.removeprefix("ddp_"), value)
        self._choose(practice)
        restore_random(self._random)
        finder = None if blocks else BlockFinder(under_test.model)
        return Prepared(
            under_test.model,
            trained_parameters(under_test.model),
            batches=lambda _step: (),
            drive=lambda count, announce: _driven(
                practice, _Drive(trainer, under_test.model, finder, announce), count
            ),
        )

    def _choose(self, practice: TrainerPractice) -> None:
        """Set how checkpointing is enabled."""
        if self._switch is not None:
            turn(practice, self._switch, self._trainer.model)
            return
        if practice.is_own:
            for module, flag, function in self._flags:
                module.gradient_checkpointing = flag
                if function is not None:
                    module._gradient_checkpointing_func = function
            return
        if practice.requires_inputs:
            self._trainer.model.enable_input_require_grads()
        is_on, kwargs = _argument_names(self._trainer.args)
        setattr(self._trainer.args, is_on, practice.mode != "plain")
        setattr(self._trainer.args, kwargs, {"use_reentrant": practice.mode == "reentrant"})


def turn(practice: TrainerPractice, switch: Switch, model: Any) -> None:
    """Switch checkpointing on or off as a practice has it.

    Raises:
        DoesNotApply: what switches it raises.
    """
    turned = switch.off if practice.mode == "plain" else switch.on
    # As it is, it may be on in some of the modules only.
    if turned is None or practice.is_own:
        return
    try:
        turned(model)
    except Exception as error:  # It may be the user's.
        message = f"{NO_TURN}: {type(error).__name__}: {error}"
        raise DoesNotApply("not switched", message) from error


@contextmanager
def plainly(practice: TrainerPractice) -> Iterator[None]:
    """Let nothing checkpoint in a practice without it, whatever the model asks for.

    Raises:
        DoesNotApply: the trainer's own setting is not to checkpoint, and it does.
    """
    repeated = Repeated()
    if practice.mode != "plain":
        yield
        return
    with Checkpoints([repeated]) if practice.is_own else without_checkpoints():
        yield
    if repeated.count:
        raise DoesNotApply("always on", ALWAYS)


def _driven(practice: TrainerPractice, drive: _Drive, count: int) -> Driven:
    """Let a trainer take steps; raise DoesNotApply if it checkpoints where it should not."""
    with plainly(practice):
        driven = drive.take(count)
    if practice.mode == "plain" and is_checkpointed(drive.model) is not None:
        raise DoesNotApply("switched on", SWITCHED)
    return driven


class _Enough(Exception):
    """All steps have been taken."""


class _Drive:
    """Follows a trainer through its steps."""

    def __init__(
        self, trainer: Any, model: nn.Module, finder: BlockFinder | None, announce: Announce
    ) -> None:
        self._trainer = trainer
        self.model = model
        self._finder = finder
        self._announce = announce
        self._number = 0
        self._trained: frozenset[str] = frozenset()
        self._saved: SavedBytes | None = None
        self._buffers = {name: each.detach().clone() for name, each in model.named_buffers()}
        self._training_step, self._compute_loss = trainer.training_step, trainer.compute_loss

    def take(self, count: int) -> Driven:
        """Let the trainer take so many steps."""
        trainer = self._trainer
        trainer.training_step = partial(self._step, count)
        trainer.compute_loss = self._loss
        trainer.args.max_steps = count
        # Releases before 4.46 read batches without it.
        name = "get_batch_samples" if hasattr(trainer, "get_batch_samples") else "get_train_dataloader"
        setattr(trainer, name, partial(self._batches, getattr(trainer, name)))
        with suppress(_Enough), watched_backward(self._begin_backward, self._announce.backward):
            trainer.train()
        if not self._number:
            raise DoesNotApply("no batch", f"{NO_BATCH}: its data are empty")
        found = () if self._finder is None else self._finder.blocks(self._trained)
        changed = {
            name: each.detach().clone()
            for name, each in self.model.named_buffers()
            if name in self._buffers and not torch.equal(each, self._buffers[name])
        }
        return Driven(found, None if self._saved is None else self._saved.total, changed)

    def _batches(self, usual: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not self._number:
            self._announce.stage(FIRST_BATCH)
        return usual(*args, **kwargs)

    def _step(self, count: int, *args: Any, **kwargs: Any) -> Any:
        # What is dropped at random is the same in each set-up.
        seed(self._number)
        self._announce.stage(f"the forward pass{of_step(self._number)}")
        loss = self._training_step(*args, **kwargs)
        if not self._number:
            parameters = self.model.named_parameters()
            self._trained = frozenset(name for name, each in parameters if each.grad is not None)
        self._announce.done()
        self._number += 1
        if self._number == count:
            raise _Enough
        return loss

    def _loss(self, *args: Any, **kwargs: Any) -> Any:
        # The first step shows the blocks, and the later ones what is kept.
        if not self._number:
            with self._finder or nullcontext():
                return self._compute_loss(*args, **kwargs)
        self._saved = SavedBytes(self.model)
        with self._saved:
            return self._compute_loss(*args, **kwargs)

    def _begin_backward(self) -> None:
        self._announce.stage(f"the backward pass{of_step(self._number)}")


@contextmanager
def watched_backward(begin: Callable[[], None], note: Callable[[bool], None]) -> Iterator[None]:
    """Tell when backward passes begin and end, whoever starts them."""
    usual = torch.autograd.backward
    depth = 0

    def backward(*args: Any, **kwargs: Any) -> None:
        nonlocal depth
        if not depth:
            begin()
            note(True)
        # A reentrant checkpoint has a backward pass of its own inside of the other.
        depth += 1
        try:
            usual(*args, **kwargs)
        finally:
            depth -= 1
        if not depth:
            note(False)

    torch.autograd.backward = backward
    try:
        yield
    finally:
        torch.autograd.backward = usual


def _join(trainer: Any, rank: Rank) -> None:
    """Make this process one of those that train together, instead of what it has been."""
    _forget_group()
    join(rank)
    placed = {
        "num_processes": rank.count,
        "process_index": rank.number,
        "local_process_index": rank.number,
        "backend": "gloo",
        "distributed_type": library("accelerate", DDP).DistributedType.MULTI_CPU,
    }
    for state in (trainer.args.distributed_state, trainer.accelerator.state):
        vars(state).update(placed)
    os.environ["LOCAL_RANK"] = str(rank.number)


def _forget_group() -> None:
    """Let a copy of a process know nothing of the group of the original, whose connections it shares."""
    distributed = torch.distributed.distributed_c10d
    if torch.distributed.is_initialized():
        # Were it destroyed, it would wait for threads that are not in this process.
        _kept.append(distributed._world)
        distributed._world = distributed._World()
        distributed._unregister_all_process_groups()


_kept: list[object] = []
