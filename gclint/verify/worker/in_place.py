"""Lets a trainer take single steps in the user's own process, and undoes all that they change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from gclint.verify.worker.examination.blocks import Block, BlockFinder
from gclint.verify.worker.examination.fault import fault_of
from gclint.verify.worker.examination.observers import Phases, SavedBytes
from gclint.verify.worker.examination.subject import disable_checkpointing, seed
from gclint.verify.worker.examination.trace import file_of
from gclint.verify.worker.live import NotExaminable, own_model
from gclint.verify.worker.memory import is_out_of_memory
from gclint.verify.worker.practices import AS_IT_IS, KNOWN, OFF, TrainerPractice
from gclint.verify.worker.protocol import ClassResult, SetUp
from gclint.verify.worker.randomness import random_states, restore_random
from gclint.verify.worker.training.by_trainer import (
    BROKEN,
    arguments_of,
    enable_as_trainer,
    first_batches,
    is_checkpointed,
    watched_backward,
)
from gclint.verify.worker.training.group import Group
from gclint.verify.worker.training.judgement import how_it_ended, judge
from gclint.verify.worker.training.practice_run import PracticeRun


def examine_in_place(trainer: Any, practices: Sequence[TrainerPractice]) -> ClassResult:
    """Return what a step as the trainer is, and those without and with another kind of checkpointing, show.

    Raises:
        NotExaminable: there is no first batch, or a step needs too much memory.
    """
    steps = _Steps(trainer, first_batches(trainer, 1)[0])
    without = next((each for each in practices if each.mode == "plain"), practices[0])
    blocks = tuple(each for each in steps.take(without, ()).blocks if not each.is_lone)
    plain = steps.take(without, blocks)
    if plain.error is not None:
        raise NotExaminable(f"{BROKEN}: {how_it_ended(plain)}")
    kind = type(own_model(trainer.model))
    rows = []
    for each in practices:
        if each.options and each.name not in (AS_IT_IS, OFF):
            row = SetUp(each.group, each.name, "", "not run", KNOWN, "it takes several processes")
        else:
            run = plain if each.mode == "plain" else steps.take(each, blocks)
            row = judge(each, steps.group, plain, run, {})
        rows.append(row)
    where = file_of(kind) or f"<{kind.__module__}>"
    note = "steps were taken in this process, one for each set-up, and undone; they include no other process"
    return ClassResult(where, kind.__name__, "not run", setups=tuple(rows), notes=(note,))


class _Steps:
    """Takes single steps with one batch."""

    group = Group(lambda *_: None, lambda _rows: None, finds_blocks=True)  # type: ignore[arg-type]

    def __init__(self, trainer: Any, batch: dict[str, Any]) -> None:
        self._trainer = trainer
        self._batch = batch

    def take(self, practice: TrainerPractice, blocks: Sequence[Block]) -> PracticeRun:
        """Take a step; without known blocks, it looks for them."""
        model, run = self._trainer.model, PracticeRun()
        phases = Phases(model, blocks)
        finder = None if blocks else BlockFinder(model)
        with _undone(self._trainer):
            try:
                _enable(self._trainer, practice)
                self._step(run, phases, finder)
            except Exception as error:
                if is_out_of_memory(error):
                    raise NotExaminable(
                        f"a step {practice.name} needs more memory than there is, so that nothing can be "
                        "compared; check with a smaller per_device_train_batch_size "
                        f"({type(error).__name__}: {error})"
                    ) from error
                run.error = fault_of(error)
        if finder is not None and run.gradients:
            run.blocks = finder.blocks([name for name, each in run.gradients[0].items() if each is not None])
        run.recorded, run.recomputed = phases.runs[False], phases.runs[True]
        return run

    def _step(self, run: PracticeRun, phases: Phases, finder: BlockFinder | None) -> None:
        """Take a step, once for what is kept and found, and record its gradients."""
        trainer, usual = self._trainer, self._trainer.compute_loss
        saved = SavedBytes(trainer.model)

        def compute_loss(*args: Any, **kwargs: Any) -> Any:
            # Else it is the wrapper of the model that rounds.
            with trainer.accelerator.autocast(), finder or saved:
                return usual(*args, **kwargs)

        trainer.compute_loss = compute_loss
        run.stage = "the step"
        seed(0)
        with phases, watched_backward(lambda: None, lambda begins: setattr(phases, "backward", begins)):
            trainer.training_step(trainer.model, dict(self._batch), None)
        run.saved_bytes = None if finder else saved.total
        run.gradients.append(
            {
                name: None if each.grad is None else each.grad.detach().cpu().clone()
                for name, each in trainer.model.named_parameters()
                if each.requires_grad
            }
        )


def _enable(trainer: Any, practice: TrainerPractice) -> None:
    """Enable checkpointing as a practice has it."""
    if practice.is_own:
        if arguments_of(trainer)[0]:
            enable_as_trainer(trainer, None)
        return
    if is_checkpointed(trainer.model) is not None:
        disable_checkpointing(trainer.model)
    if practice.requires_inputs:
        trainer.model.enable_input_require_grads()
    if practice.mode != "plain":
        enable_as_trainer(trainer, practice.mode == "reentrant")


@contextmanager
def _undone(trainer: Any) -> Iterator[None]:
    """Put back what a step changes, in the trainer, the model and the process."""
    model = trainer.model
    modules = [(each, dict(vars(each)), _containers(each)) for each in model.modules()]
    configs = [
        (each, dict(vars(each)))
        for each in {id(m.config): m.config for m in model.modules() if hasattr(m, "config")}.values()
    ]
    tensors = [(each, each.detach().clone()) for each in model.buffers()]
    gradients = [(each, each.grad, each.requires_grad) for each in model.parameters()]
    wholes = [trainer, trainer.args, trainer.accelerator, getattr(trainer.accelerator, "scaler", None)]
    attributes = [(each, dict(vars(each))) for each in wholes if each is not None]
    states = random_states()
    for parameter in model.parameters():
        parameter.grad = None
    trainer.current_gradient_accumulation_steps = 1
    try:
        yield
    finally:
        for whole, before in (*attributes, *configs):
            vars(whole).clear()
            vars(whole).update(before)
        for module, before, containers in modules:
            vars(module).clear()
            vars(module).update(before)
            for name, content in containers.items():
                container = vars(module)[name]
                container.clear()
                container.update(content)
        with torch.no_grad():
            for buffer, value in tensors:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)
        for parameter, gradient, requires_grad in gradients:
            parameter.grad = gradient
            parameter.requires_grad_(requires_grad)
        restore_random(states)


def _containers(module: nn.Module) -> dict[str, Any]:
    """Return copies of the dictionaries of a module: its hooks, buffers, parameters and modules."""
    found = {name: value for name, value in vars(module).items() if isinstance(value, dict)}
    return {name: value.copy() for name, value in found.items()}
