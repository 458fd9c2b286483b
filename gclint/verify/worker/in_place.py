"""Lets a trainer take single steps in the user's own process, and undoes all that they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

import torch

from gclint.verify.worker.examination.block_calls import file_of
from gclint.verify.worker.examination.blocks import Block, BlockFinder
from gclint.verify.worker.examination.fault import fault_of
from gclint.verify.worker.examination.model_under_test import disable_checkpointing, seed
from gclint.verify.worker.examination.observers import Phases, SavedBytes
from gclint.verify.worker.live import NotExaminable, own_model
from gclint.verify.worker.memory_limits import is_out_of_memory
from gclint.verify.worker.practices import AS_IT_IS, KNOWN, OFF, TrainerPractice
from gclint.verify.worker.protocol import ClassResult, SetUp
from gclint.verify.worker.randomness import random_states, restore_random
from gclint.verify.worker.training.by_trainer import (
    BROKEN,
    arguments_of,
    enable_as_trainer,
    first_batches,
    is_checkpointed,
    plainly,
    turn,
    watched_backward,
)
from gclint.verify.worker.training.group import DoesNotApply, PracticeGroup
from gclint.verify.worker.training.judgement import how_it_ended, judge
from gclint.verify.worker.training.practice_run import PracticeRun
from gclint.verify.worker.training.switches import Switch

_MOST = 1000
"""How many items of a container are looked into."""
_WITHOUT_STATE = (type, FunctionType, ModuleType, torch.Tensor)


def examine_in_place(
    trainer: Any, practices: Sequence[TrainerPractice], switch: Switch | None
) -> ClassResult:
    """Return what a step as the trainer is, and those without and with another kind of checkpointing, show.

    Raises:
        NotExaminable: there is no first batch, or a step needs too much memory.
    """
    steps = _Steps(trainer, switch, first_batches(trainer, 1)[0])
    without = next((each for each in practices if each.mode == "plain"), practices[0])
    blocks = tuple(each for each in steps.take(without, None).blocks if not each.is_lone)
    plain = steps.take(without, blocks)
    if plain.refusal is not None:
        raise NotExaminable(str(plain.refusal))
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

    group = PracticeGroup(lambda *_: None, lambda _rows: None, finds_blocks=True)  # type: ignore[arg-type]

    def __init__(self, trainer: Any, switch: Switch | None, batch: dict[str, Any]) -> None:
        self._trainer = trainer
        self._switch = switch
        self._batch = batch

    def take(self, practice: TrainerPractice, blocks: Sequence[Block] | None) -> PracticeRun:
        """Take a step; without known blocks, it looks for them."""
        model, run = self._trainer.model, PracticeRun()
        phases = Phases(model, blocks or ())
        finder = BlockFinder(model) if blocks is None else None
        with _undone(self._trainer):
            try:
                self._enable(practice)
                with plainly(practice):
                    self._step(run, phases, finder)
            except DoesNotApply as refusal:
                run.refusal = refusal
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

    def _enable(self, practice: TrainerPractice) -> None:
        """Enable checkpointing as a practice has it."""
        trainer = self._trainer
        if self._switch is not None:
            turn(practice, self._switch, trainer.model)
            return
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


@contextmanager
def _undone(trainer: Any) -> Iterator[None]:
    """Put back what a step changes, in the trainer, the model and the process."""
    model = trainer.model
    before = _contents(_wholes(trainer))
    tensors = [(each, each.detach().clone()) for each in model.buffers()]
    gradients = [(each, each.grad, each.requires_grad) for each in model.parameters()]
    states = random_states()
    for parameter in model.parameters():
        parameter.grad = None
    trainer.current_gradient_accumulation_steps = 1
    try:
        yield
    finally:
        for container, content in before:
            if isinstance(container, dict | set):
                container.clear()
                container.update(content)
            else:
                container[:] = content
        with torch.no_grad():
            for buffer, value in tensors:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)
        for parameter, gradient, requires_grad in gradients:
            parameter.grad = gradient
            parameter.requires_grad_(requires_grad)
        restore_random(states)


def _wholes(trainer: Any) -> Iterator[Any]:
    """Yield a trainer, what it has, and the modules of its model."""
    yield trainer
    for each in (*vars(trainer).values(), getattr(trainer.accelerator, "scaler", None)):
        if hasattr(each, "__dict__") and not isinstance(each, _WITHOUT_STATE):
            yield each
    for module in trainer.model.modules():
        yield module
        if hasattr(module, "config"):
            yield module.config


def _contents(wholes: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return the attributes of objects, and the lists, dictionaries and sets in them, each with a copy."""
    found: dict[int, tuple[Any, Any]] = {}
    waiting = [vars(each) for each in wholes]
    while waiting:
        container = waiting.pop()
        if id(container) not in found:
            found[id(container)] = (container, container.copy())
            # Long ones are data.
            inner = list(container.values() if isinstance(container, dict) else container)[:_MOST]
            waiting += [each for each in inner if isinstance(each, dict | list | set)]
    return list(found.values())
