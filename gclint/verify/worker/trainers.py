"""Examines a Trainer that the user has built, as it would train, in the user's process."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed
import transformers
from torch import nn
from torch.utils.data import IterableDataset
from transformers import Trainer

from gclint.verify.worker.child import Send
from gclint.verify.worker.examination.block_calls import file_of
from gclint.verify.worker.fresh import SMALL, Parcel, examine_afresh, notes_of, tell, unpacked
from gclint.verify.worker.in_place import examine_in_place
from gclint.verify.worker.live import (
    NotExaminable,
    NotForkable,
    configure_process,
    forked_result,
    own_model,
    separate,
)
from gclint.verify.worker.modes import Mode
from gclint.verify.worker.practices import (
    AS_IT_IS,
    LOST,
    NOTHING_RECOMPUTED,
    OFF,
    REENTRANT,
    TRAINER,
    WRONG,
    TrainerPractice,
    trainer_practices,
)
from gclint.verify.worker.protocol import ClassResult, Outcome, SetUp, SetUpOutcome, Source
from gclint.verify.worker.tiny_model import TinyModel
from gclint.verify.worker.training.answer import answer
from gclint.verify.worker.training.by_trainer import (
    ALWAYS,
    BROKEN,
    FIRST_BATCH,
    NO_BATCH,
    NO_TURN,
    SWITCHED,
    ByTrainer,
    arguments_of,
    is_checkpointed,
    is_parallel,
    parallel_options,
    word_for_checkpointing,
)
from gclint.verify.worker.training.switches import UNASKED, Switch, is_enabled_by_trainer, switch_of
from gclint.verify.worker.training.training import trained
from gclint.verify.worker.watch import reporting

_MOST_RANKS = 2
"""How many processes show what more of them would."""
_AFRESH, _SMALLER = ", as a fresh process shows", ", as a smaller model in a fresh process shows"
_IN_PLACE = ", as single steps in this process show"
_NO_METHOD = (
    "your run will fail: the trainer has gradient_checkpointing=True, but {} has no "
    "gradient_checkpointing_enable(); leave it False, and switch checkpointing on in the model"
)
_NO_SWITCH = (
    "nothing is checkpointed in {}, and nothing is found that switches it on: neither "
    "gradient_checkpointing_enable() nor set_grad_checkpointing(), nor a flag such as use_checkpoint; say "
    "how with check(trainer, enable=lambda model: ...)"
)
_LATE = re.compile(r"computation for|CPU time|seconds|time limit")
_OUTCOMES: dict[SetUpOutcome, Outcome] = {"works": "passed", "fails": "failed", "not run": "not run"}


def examine_trainer(
    trainer: Any, seconds: float, enable: Callable[[Any], object] | None = None
) -> ClassResult:
    """Let copies of a trainer, which is not changed, take two steps in each set-up that it could have.

    The time limit is that of each set-up. Where this process cannot be copied, a fresh one does the same with
    a smaller model; and where that is impossible, steps are taken here, and undone. In a model that the
    trainer cannot tell to checkpoint, ``enable`` may do so.

    Raises:
        NotExaminable: this cannot be done.
    """
    for problem in _problems(trainer):
        raise NotExaminable(problem)
    try:
        return _examined(trainer, seconds, switch_of(trainer.model, enable))
    except NotExaminable as error:
        if str(error) != ALWAYS:
            raise
    # What it does is what counts, and not what would switch it on.
    return _examined(trainer, seconds, UNASKED)


def _examined(trainer: Any, seconds: float, switch: Switch | None) -> ClassResult:
    """Examine a trainer whose model is switched like this."""
    practices = _practices(trainer, switch)
    try:
        for obstacle in _obstacles(trainer):
            raise NotForkable(obstacle)
        result, how = _in_copies(trainer, practices, seconds, switch), ""
    except NotForkable as error:
        result, how = _elsewhere(trainer, practices, seconds, switch, str(error))
    if switch is UNASKED and result.category == NOTHING_RECOMPUTED:
        raise NotExaminable(_NO_SWITCH.format(type(trainer.model).__name__))
    result = replace(result, notes=(*_notes(trainer), *result.notes))
    return replace(result, advice=(answer(practices, result.setups, how),))


def answer_afresh(parcel: Parcel, practices: tuple[TrainerPractice, ...], seconds: float, path: Path) -> None:
    """Examine what has been sent to this process, and leave the result at a path."""
    why = "there is no smaller model of its class"
    for trainer in unpacked(parcel):
        try:
            if isinstance(trainer, Exception):
                raise trainer
            result = _in_copies(trainer, practices, seconds)
        except Exception as error:  # The next one may work.
            why = f"{type(error).__name__}: {error}"
            continue
        tell(path, replace(result, notes=(*notes_of(parcel, trainer), *result.notes)))
        return
    tell(path, ClassResult("", parcel.model_class.__name__, "not run", why))


def _obstacles(trainer: Any) -> Iterator[str]:
    """Yield why copies of this process cannot run the model."""
    for tensor in (*trainer.model.parameters(), *trainer.model.buffers()):
        if tensor.device.type != "cpu":
            yield f"the model is on {tensor.device.type}, and a process that uses it cannot be copied"


def _in_copies(
    trainer: Any, practices: tuple[TrainerPractice, ...], seconds: float, switch: Switch | None = None
) -> ClassResult:
    """Return what forks of this process say."""
    kind = type(own_model(trainer.model))
    source = Source(file_of(kind) or f"<{kind.__module__}>", kind.__module__)
    function = partial(_examine_in_fork, source, trainer, practices, switch)
    return _judged(forked_result(source, kind.__name__, function, seconds * (1 + len(practices))))


def _elsewhere(
    trainer: Any,
    practices: tuple[TrainerPractice, ...],
    seconds: float,
    switch: Switch | None,
    obstacle: str,
) -> tuple[ClassResult, str]:
    """Return what a fresh process says, or steps in this one, and how that is known."""
    data = trainer.train_dataset
    if _is_one_shot(data):
        raise NotExaminable(
            f"{obstacle}, and the data can be read only once: pass a copy of it to the trainer"
        )
    try:
        if switch is not None:
            raise NotExaminable("what switches checkpointing on or off cannot be sent")
        result, how = examine_afresh(trainer, practices, seconds), _AFRESH
        if sum(each.numel() for each in trainer.model.parameters()) > SMALL:
            how = _SMALLER
    except NotExaminable as error:
        result, how = _judged(examine_in_place(trainer, practices, switch)), _IN_PLACE
        how += ", without DistributedDataParallel" if practices[0].options else ""
        obstacle = f"{obstacle}; no smaller model can be run instead ({error})"
    return replace(result, notes=(obstacle, *result.notes)), how


def _examine_in_fork(
    source: Source,
    trainer: Any,
    practices: tuple[TrainerPractice, ...],
    switch: Switch | None,
    send: Send,
    _slot: int,
) -> None:
    """Train as each practice has it; called in a fork."""
    warnings.simplefilter("ignore")
    configure_process()
    separate(trainer.model)
    by_trainer = ByTrainer(trainer, switch)
    name = type(own_model(trainer.model)).__name__
    watch = reporting(source.path, name, send)
    config = getattr(trainer.model, "config", None)
    tiny_model = TinyModel("default", config, lambda: trainer.model, dict, least_dropout=0.0)
    empty = ClassResult(source.path, name, "not run")
    groups = {TRAINER: by_trainer.group()}
    with torch.inference_mode(False), torch.enable_grad():
        watch.known(trained(empty, tiny_model, "cpu", practices, watch, groups))


def _practices(trainer: Any, switch: Switch | None = None) -> tuple[TrainerPractice, ...]:
    """Return the set-ups to try."""
    is_on, kwargs = arguments_of(trainer) if switch is None else (switch.is_on, {})
    before = is_checkpointed(trainer.model) if switch is None else None
    if before is not None and not is_on:
        # It has been enabled by hand, and the trainer leaves it so.
        is_on, kwargs = True, before
    is_reentrant = kwargs.pop(REENTRANT, int(transformers.__version__.partition(".")[0]) < 5)
    mode: Mode = "plain" if not is_on else "reentrant" if is_reentrant else "non-reentrant"
    together = is_parallel(trainer)
    ranks = min(trainer.args.world_size, _MOST_RANKS) if together else 1
    own = TrainerPractice(
        TRAINER,
        AS_IT_IS,
        mode,
        ranks=ranks,
        options=parallel_options(trainer) if together else (),
        others=tuple((name, repr(value)) for name, value in kwargs.items()) if is_on else (),
        word=word_for_checkpointing(trainer.args),
        made_by=type(trainer.args).__name__,
        switch=None if switch is None else switch.lines,
    )
    is_frozen = not all(each.requires_grad for each in trainer.model.parameters())
    return trainer_practices(own, is_frozen=is_frozen)


def _judged(result: ClassResult) -> ClassResult:
    """Return the result with its outcome, which is that of the trainer's own setting."""
    rows = {each.name: each for each in result.setups}
    own = rows.get(AS_IT_IS)
    if own is None:
        raise NotExaminable(result.reason or "nothing could be run")
    for row in result.setups:
        if row.message.startswith(NO_TURN):
            raise NotExaminable(row.message)
    without = rows.get(OFF, own)
    is_broken = without is own and own.outcome != "works" and own.symptom not in (LOST, WRONG)
    if without.outcome == "not run" or is_broken:
        raise NotExaminable(_broken(without))
    return replace(
        result, outcome=_OUTCOMES[own.outcome], reason=own.message or None, category=own.symptom or None
    )


def _broken(row: SetUp) -> str:
    message = row.message.removeprefix("without checkpointing, ")
    if _LATE.search(message):
        return (
            f"the trainer is too slow for the time limit: {message}; check(trainer, seconds=...) extends it"
        )
    if "no memory left" in message:
        return f"a batch, or the model, is too large for this machine: {message}"
    if message.startswith((SWITCHED, ALWAYS)):
        return message
    if FIRST_BATCH in message or message.startswith(NO_BATCH):
        return f"{NO_BATCH}: {message.removeprefix(f'{NO_BATCH}: ')}"
    return f"{BROKEN}: {message}"


def _problems(trainer: Any) -> Iterator[str]:
    """Yield why a trainer cannot be examined; each reason can be told only if there is none before."""
    if not isinstance(trainer, Trainer):
        yield f"{type(trainer).__name__} is not a Trainer of transformers"
    model = trainer.model
    if not isinstance(model, nn.Module):
        yield "the trainer has no model"
    data = trainer.train_dataset
    if data is None:
        yield "the trainer has no train_dataset, so there is nothing to train on: pass one to it"
    if _is_empty(data):
        yield "the trainer's train_dataset is empty, so there is nothing to train on"
    if not any(each.requires_grad for each in model.parameters()):
        yield "no parameter of the trainer's model requires grad, so there is nothing to train"
    if not is_enabled_by_trainer(model) and arguments_of(trainer)[0]:
        yield _NO_METHOD.format(type(model).__name__)
    if any(each.is_meta for each in (*model.parameters(), *model.buffers())):
        yield "the model is on the meta device, so it has no weights to train: load or initialise them first"
    if any(type(each).__name__ == "DTensor" or hasattr(each, "ds_id") for each in model.parameters()):
        yield "the model's weights are sharded already: check a trainer whose model is whole"


def _notes(trainer: Any) -> Iterator[str]:
    """Yield remarks on what was run."""
    for name, is_used in (
        ("FSDP", trainer.is_fsdp_enabled),
        ("DeepSpeed", trainer.is_deepspeed_enabled),
    ):
        if is_used:
            yield (
                f"{name} was left out, which decides where weights are kept: known is that it calls the same "
                "blocks; `gclint verify --scenario wrapper` trains the class with what it checkpoints itself"
            )
    if trainer.args.torch_compile:
        yield "torch.compile was left out; `gclint verify --scenario compile` runs it"
    if trainer.args.world_size > _MOST_RANKS:
        yield f"{_MOST_RANKS} processes were run instead of {trainer.args.world_size}"
    kinds = (type(each) for each in trainer.callback_handler.callbacks)
    left_out = [
        each.__name__ for each in kinds if not each.__module__.startswith(("transformers.", "gclint."))
    ]
    if left_out:
        yield (
            f"`{left_out[0]}` and all other callbacks were left out; a `gclint.GclintCallback` behind them "
            "sees what they do when training begins"
        )
    data = trainer.train_dataset
    if _is_one_shot(data):
        yield (
            "the data can be read only once: two batches were read in copies of this process, so what it "
            "reads from, such as a file that was open before, may have advanced"
        )


def _is_empty(data: Any) -> bool:
    """Return whether data say that there are none; streams may have a length that raises."""
    try:
        return not len(data)
    except TypeError:
        return False


def _is_one_shot(data: Any) -> bool:
    """Return whether data can be read only once: they are an iterator, or read from one that they hold."""
    waiting, seen = [data], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, Iterator):
            return True
        if id(each) not in seen and _is_stream(each):
            seen.add(id(each))
            waiting += getattr(each, "__dict__", {}).values()
    return False


def _is_stream(data: Any) -> bool:
    return isinstance(data, IterableDataset) or (
        isinstance(data, Iterable) and not hasattr(data, "__getitem__")
    )
