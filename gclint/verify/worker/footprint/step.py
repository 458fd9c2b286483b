"""Runs one training step with fake tensors, and records it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from gclint.verify.worker.examination.blocks import BlockFinder
from gclint.verify.worker.examination.tensors import OWN, outputs_of, tensors_in
from gclint.verify.worker.footprint.building import Trainee
from gclint.verify.worker.footprint.fake import Meter, PartlyFake
from gclint.verify.worker.footprint.keeping import Keeping
from gclint.verify.worker.footprint.kept import Kept
from gclint.verify.worker.modes import Mode

_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class Step(Generic[_Seen]):
    """The record of a step."""

    left: _Seen
    """The caller's evaluation of what the forward pass left in memory."""
    forward_flops: int
    flops: int
    peaks: dict[Hashable, int]
    """The peaks of the parts of the step; of the whole step, if it is not taken in parts."""
    state_bytes: int
    """What the optimizer keeps, which is not part of the peak."""
    operations: int

    @property
    def peak_bytes(self) -> int:
        """The most memory that was alive at once."""
        return max(self.peaks.values())

    @property
    def needed_bytes(self) -> int:
        """The peak, with the optimizer's state."""
        return self.peak_bytes + self.state_bytes


@dataclass(frozen=True)
class Structure:
    """How a model works, observed once."""

    blocks: tuple[str, ...]
    """The names of its blocks, the outermost of nested ones."""
    has_chosen: bool
    """Whether it chose anything by computed numbers."""
    has_decided: bool
    """Whether it needed a computed truth value, which was taken to be false."""


def built(trainee: Trainee, fake: PartlyFake) -> Any:
    """Return the model of a question with fake weights; ``fake`` must be entered."""
    fake.is_building = True
    try:
        model = trainee.build(is_fake=True)
        fake.convert_parameters(model)
    finally:
        fake.is_building = False
    return model


class _Parts:
    """Knows, while a step runs, which module runs, or is passed by the backward pass.

    So a part is the same moment for sequences of any length.
    """

    def __init__(self, model: Any) -> None:
        self._running = [""]
        self._passed: str | None = None
        for name, module in model.named_modules():
            module.register_forward_pre_hook(partial(self._before, name), with_kwargs=True)
            module.register_forward_hook(partial(self._after, name), always_call=True)

    def now(self) -> Hashable:
        """Return the module that runs, and the one whose outputs have got their gradients last."""
        return self._running[-1], self._passed

    def _before(self, name: str, _module: Any, _args: Any, _kwargs: Any) -> None:
        self._running.append(name)

    def _after(self, name: str, _module: Any, _args: Any, output: Any) -> None:
        self._running.pop()
        for _, tensor in tensors_in(output):
            if tensor.requires_grad:
                tensor.register_hook(partial(self._pass, name))

    def _pass(self, name: str, _gradient: Tensor) -> None:
        self._passed = name


def structure_of(trainee: Trainee, most: int | None = None) -> Structure:
    """Return how a model works.

    This takes a whole step, so any error that prevents running the class is raised here, or TooManyOperations
    if there are more than ``most``.
    """
    fake = PartlyFake(most)
    with fake:
        model = built(trainee, fake)
        inputs = fake.convert(trainee.inputs())
        with BlockFinder(model) as finder, trainee.autocast():
            loss = loss_of(model(**inputs))
        loss.backward()
    trained = [name for name, each in model.named_parameters() if each.grad is not None]
    found = [each.name for each in finder.blocks(trained) if each.is_trunk or each.is_layer]
    outer = [name for name in found if not any(name.startswith(f"{other}.") for other in found)]
    return Structure(tuple(outer), fake.has_chosen, fake.has_decided)


def take_step(
    trainee: Trainee,
    mode: Mode,
    names: Collection[str],
    evaluate: Callable[[Kept], _Seen],
    *,
    is_in_parts: bool = False,
    **options: Any,
) -> Step[_Seen]:
    """Run a step with fake tensors, with the release's options of checkpointing.

    ``evaluate`` evaluates what the forward pass leaves in memory, while it is there.
    """
    fake = PartlyFake()
    with fake:
        model = built(trainee, fake)
        trainee.checkpoint(model, mode, **options)
        inputs = fake.convert(trainee.inputs())
        keeping = Keeping(model, trainee.question)
        meter = Meter(model, keeping)
        if is_in_parts:
            meter.part = _Parts(model).now
        with meter:
            if trainee.question.accumulates:
                _, loss = forward(
                    model, inputs, (), lambda _kept: None, is_plain=True, context=trainee.autocast()
                )
                loss.backward()
                del loss
                meter.begin()
            left, loss = forward(
                model,
                inputs,
                names,
                evaluate,
                is_plain=mode == "plain",
                meter=meter,
                context=trainee.autocast(),
            )
            forward_flops = meter.flops
            loss.backward()
    peaks = {part: peak + keeping.transient_bytes for part, peak in meter.peaks.items()}
    state = keeping.state_bytes(trainee.question.optimizer)
    return Step(left, forward_flops, meter.flops, peaks, state, fake.operations)


def forward(
    model: Any,
    inputs: Mapping[str, Any],
    names: Collection[str],
    evaluate: Callable[[Kept], _Seen],
    *,
    is_plain: bool,
    meter: Meter | None = None,
    context: AbstractContextManager[Any] | None = None,
) -> tuple[_Seen, Tensor]:
    """Run a forward pass, with fake or real tensors; return what it leaves in memory, and the loss."""
    modules = dict(model.named_modules())
    kept = Kept(model, {name: modules[name] for name in names}, keeps_boundaries=not is_plain)
    if meter is not None:
        meter.where = kept.here
    with kept, context or nullcontext():
        outputs = model(**inputs)
    if meter is not None:
        kept.take_others(meter.made_in_blocks(), outputs)
    left = evaluate(kept)
    # The local variables would otherwise outlive the graph.
    kept.forget()
    return left, loss_of(outputs)


def loss_of(outputs: Any) -> Tensor:
    """Return the tensor for the backward pass: the model's own loss, or else the sum of its outputs."""
    found = outputs_of(outputs)
    own = found.get(OWN)
    if own is not None and own.requires_grad:
        return own.sum()
    terms = [each.float().sum() for each in found.values() if each.requires_grad and not each.is_complex()]
    if not terms:
        raise RuntimeError("no output of the model requires grad")
    return torch.stack(terms).sum()
