"""Answers a question about memory: what each mode and option needs, what fits, and what is measured."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from gclint.verify.worker.estimates import (
    Addition,
    BlockBytes,
    Dimension,
    EstimateRequest,
    Measurement,
    MemoryEstimate,
    ModeEstimate,
    Option,
    Saved,
)
from gclint.verify.worker.examination.tensors import move
from gclint.verify.worker.footprint.building import CannotEstimate, Trainee, in_a_line, trainee_of
from gclint.verify.worker.footprint.extrapolation import SHORT, MeasuredSteps, has_threshold
from gclint.verify.worker.footprint.fake import PartlyFake, TooManyOperations
from gclint.verify.worker.footprint.fits import dimensions, fits, helping
from gclint.verify.worker.footprint.keeping import Keeping
from gclint.verify.worker.footprint.kept import Kept, Record, additions, largest_first, saved, storage_of
from gclint.verify.worker.footprint.step import Structure, built, forward, structure_of
from gclint.verify.worker.modes import CHECKPOINTED, Mode
from gclint.verify.worker.synthesis.configurations.tree import children, is_whole, own_fields
from gclint.verify.worker.synthesis.hints.failure import ForwardError
from gclint.verify.worker.synthesis.hints.table import next_plan
from gclint.verify.worker.synthesis.inputs.forward import make_inputs
from gclint.verify.worker.synthesis.inputs.situation import Plan

_EVERY = (2, 4, 8)
MODES: tuple[Mode, ...] = ("plain", *CHECKPOINTED)
_ATTEMPTS = 8
_MOST_OPERATIONS = 50_000
"""How many operations a step may run, at most, to be run in full at once; few models without loops over
positions run more."""
_LARGEST = 12
"""How many source lines are named at most."""


def notes(trainee: Trainee, question: EstimateRequest, structure: Structure) -> Iterator[str]:
    """Yield remarks on what the numbers do not show."""
    if question.config is None and not question.fields and question.layers is None:
        yield f"The sizes are the defaults of {type(trainee.situation.config).__name__}."
    if question.sequence is not None and not trainee.reads_text:
        yield "The model reads no tokens, so --seq changes nothing; its inputs follow from the configuration."
    positions = trainee.positions
    if trainee.reads_text and positions is not None and trainee.situation.plan.length > positions:
        yield f"The configuration allows {positions:,} positions, and this sequence is longer."
    if structure.has_chosen:
        yield "Choices that depend on computed values, such as experts, are assumed to be even."
    if structure.has_decided:
        yield "Conditions on computed values, such as whether one is infinite, are assumed to be false."
    if not structure.blocks:
        yield "No stack of blocks was found in this model, so single blocks are not listed."
    whole = "All parameters are trained" if question.lora is None else "Only the adapters are trained"
    yield (
        f"{whole}, without a cache and without dropout of attention weights. Tensors are counted as torch's "
        "CPU kernels keep them, without workspaces and fragmentation."
    )
    if question.autocast:
        yield "Operations are in float32 as torch's autocast has them on CPUs; for GPUs, a few differ."
    if question.bits is not None:
        yield (
            f"Computed by formula, not run: {question.bits}-bit weights with scales in float32, and the "
            "largest of them as it is while it computes. Activations are those of the whole weights."
        )
    if question.sharding is not None:
        yield (
            "Computed by formula, not run: the shares of the ranks, and two parts of the model that are "
            "whole while they compute. Buffers of the communication are not counted."
        )


def options(steps: MeasuredSteps, usual: ModeEstimate) -> Iterator[Option]:
    """Yield the cost of each option, beside ``usual`` non-reentrant mode; nothing if the release has none."""
    switch = getattr(steps.trainee.situation.model_class, "activation_checkpointing_enable", None)
    parameters = inspect.signature(switch).parameters if switch is not None else {}
    if "every_n_layers" in parameters:
        yield Option(1, False, usual.saved_bytes, 0, usual.flops, usual.peak_bytes or 0)
        for every in (each for each in _EVERY if each < len(steps.names)):
            step = steps.take("non-reentrant", _total, every_n_layers=every)
            yield Option(every, False, step.left, 0, step.flops, step.peak_bytes)
        if "offload" in parameters:
            step = steps.take("non-reentrant", _total, offload=True)
            yield Option(1, True, step.left, usual.saved_bytes - step.left, step.flops, step.peak_bytes)


def _total(kept: Kept) -> int:
    return kept.total


def measurements(
    trainee: Trainee, names: Collection[str], modes: Sequence[Mode], device: str
) -> Iterator[Measurement]:
    """Yield the measurements of a step in each mode on a device; each runs twice, since the first is slow."""
    for mode in modes:
        try:
            yield _measured(trainee, names, mode, device)
        except Exception as error:
            yield Measurement(mode, device, error=in_a_line(error))


def _measured(trainee: Trainee, names: Collection[str], mode: Mode, device: str) -> Measurement:
    is_gpu = device != "cpu"
    name = torch.cuda.get_device_name(device) if is_gpu else device
    model = trainee.build().to(device)
    trainee.checkpoint(model, mode)
    for _ in range(2):
        if not trainee.question.accumulates:
            model.zero_grad()
        inputs = move(trainee.inputs(), torch.device(device))
        if is_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        begun = time.perf_counter()
        saved, loss = forward(
            model,
            inputs,
            names,
            _total,
            is_plain=mode == "plain",
            context=trainee.autocast(torch.device(device).type),
        )
        loss.backward()
        if is_gpu:
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - begun
        # Otherwise the next step would begin with its graph.
        del loss
    peak = torch.cuda.max_memory_allocated(device) if is_gpu else None
    return Measurement(mode, name, saved, seconds, peak)


def estimates(
    source: str, classes: Sequence[Any], question: EstimateRequest, device: str
) -> Iterator[MemoryEstimate]:
    """Yield what is known of the answer to a question, more each time, and all of it at last.

    Raises:
        CannotEstimate: the question has no answer.
    """
    started = time.monotonic()
    try:
        trainee, structure, is_extrapolated = _structured(trainee_of(classes, question))
    except CannotEstimate as error:
        if question.config is None and error.__cause__ is not None:
            # The defaults of the parts of a composite model may not fit together.
            raise CannotEstimate(
                f"{error} (what is not set is a default; --config takes the sizes of a config.json)"
            ) from error
        raise
    steps = MeasuredSteps(trainee, structure.blocks, is_extrapolated=is_extrapolated)
    found = _described(trainee, question, MemoryEstimate(source, trainee.situation.model_class.__name__))
    parts = dict(_parts(steps, device))
    for name, more in list(parts.items()):
        yield replace(found, missing=tuple(parts))
        del parts[name]
        found = more(found)
        remarks = (*notes(trainee, question, structure), *steps.notes)
        found = replace(found, notes=remarks, seconds=time.monotonic() - started)
    yield found


def _parts(
    steps: MeasuredSteps, device: str
) -> Iterator[tuple[str, Callable[[MemoryEstimate], MemoryEstimate]]]:
    """Yield the parts of an estimate, the most important first: names, and functions that add them."""
    question = steps.trainee.question
    *first, last = MODES
    for mode in first:
        yield mode, partial(_with_mode, steps, mode)
    if question.budget is not None:
        for dimension in dimensions(steps.trainee):
            yield f"the largest {dimension}", partial(_with_fits, steps, dimension)
    yield last, partial(_with_mode, steps, last)
    yield "options", partial(_with_options, steps)
    if question.measure:
        yield "measurements", partial(_with_measurements, steps, device)


def _with_mode(steps: MeasuredSteps, mode: Mode, found: MemoryEstimate) -> MemoryEstimate:
    seen, added = _mode(steps, mode)
    return replace(found, modes=(*found.modes, seen), additions=(*found.additions, *added))


def _with_fits(steps: MeasuredSteps, dimension: Dimension, found: MemoryEstimate) -> MemoryEstimate:
    fitting = (*found.fits, *fits(steps, dimension))
    is_too_large = not found.helps and any(
        each.mode == "non-reentrant" and not each.largest and not each.error for each in fitting
    )
    return replace(found, fits=fitting, helps=tuple(helping(steps)) if is_too_large else found.helps)


def _with_options(steps: MeasuredSteps, found: MemoryEstimate) -> MemoryEstimate:
    usual = found.mode("non-reentrant")
    return replace(found, options=tuple(options(steps, usual))) if steps.names and usual else found


def _with_measurements(steps: MeasuredSteps, device: str, found: MemoryEstimate) -> MemoryEstimate:
    able = [each.mode for each in found.modes if not each.error]
    return replace(found, measurements=tuple(measurements(steps.trainee, steps.names, able, device)))


def _structured(trainee: Trainee) -> tuple[Trainee, Structure, bool]:
    """Return what :func:`runnable` does, and whether steps are to be extrapolated from short sequences."""
    with suppress(TooManyOperations):
        return (*runnable(trainee, _MOST_OPERATIONS), False)
    length = trainee.situation.plan.length
    if trainee.reads_text and not has_threshold(trainee):
        with suppress(CannotEstimate):
            short, structure = runnable(trainee.sized(sequence=SHORT[0]))
            # How many experts are chosen depends on how many tokens choose among them.
            if not structure.has_chosen:
                return short.sized(sequence=length), structure, True
    return (*runnable(trainee), False)


def runnable(trainee: Trainee, most: int | None = None) -> tuple[Trainee, Structure]:
    """Return the same with inputs with which the class can be run, and its structure.

    The configuration stays as it is, since the question is about it.

    Raises:
        CannotEstimate: there are no such inputs.
        TooManyOperations: a step runs more than ``most``.
    """
    tried: list[Plan] = []
    first: Exception | None = None
    for _ in range(_ATTEMPTS):
        plan = trainee.situation.plan
        tried.append(plan)
        try:
            return trainee, structure_of(trainee, most)
        except (CannotEstimate, TooManyOperations):
            raise
        except Exception as error:
            first = first or error
            following = next_plan(
                trainee.situation, ForwardError(error, partial(make_inputs, trainee.situation)), tried
            )
        if following is None or (following.values, following.sizes) != (plan.values, plan.sizes):
            break
        trainee = trainee.planned(following)
    assert first is not None
    raise CannotEstimate(_reason(trainee, first)) from first


def _reason(trainee: Trainee, error: Exception) -> str:
    name = trainee.situation.model_class.__name__
    if type(error).__name__ in ("DataDependentOutputException", "DynamicOutputShapeException"):
        return f"{name} depends on computed values ({error}), which tensors without data do not have"
    return f"{name} cannot be run at this size: {in_a_line(error)}"


def _mode(steps: MeasuredSteps, mode: Mode) -> tuple[ModeEstimate, Sequence[Addition]]:
    def evaluate(kept: Kept) -> tuple[int, tuple[BlockBytes, ...], tuple[Saved, ...], list[Addition]]:
        records = kept.records()
        added = [] if mode == "plain" else additions(mode, records, kept)
        return kept.total, _by_block(records, kept), saved(records), added

    try:
        step = steps.take(mode, evaluate)
    except Exception as error:
        return ModeEstimate(mode, error=in_a_line(error)), ()
    total, blocks, lines, added = step.left
    largest = largest_first(lines)[:_LARGEST]
    seen = ModeEstimate(mode, total, blocks, step.peak_bytes, step.forward_flops, step.flops, largest)
    return seen, [replace(each, extras=largest_first(each.extras)) for each in added]


def _by_block(records: Iterable[Record], kept: Kept) -> tuple[BlockBytes, ...]:
    sizes: Counter[str] = Counter()
    boundaries = kept.boundary_owners()
    for each in records:
        if storage_of(each.tensor) in boundaries:
            sizes[boundaries[storage_of(each.tensor)]] += each.size
        elif not each.is_after:
            sizes[each.block] += each.size
    return tuple(BlockBytes(name, kept.kinds[name], sizes[name]) for name in dict.fromkeys(kept.order))


def _described(trainee: Trainee, question: EstimateRequest, empty: MemoryEstimate) -> MemoryEstimate:
    fake = PartlyFake()
    with fake:
        model = built(trainee, fake)
    keeping = Keeping(model, question)
    parameters = list(model.parameters())
    return replace(
        empty,
        batch=question.batch,
        sequence=trainee.situation.plan.length if trainee.reads_text else None,
        dtype=question.dtype,
        settings=_settings(trainee.situation.config),
        inputs={name: _shape(each) for name, each in trainee.inputs().items()},
        training=", ".join(_training(question)),
        by_formula=keeping.is_by_formula,
        parameters=sum(each.numel() for each in parameters),
        trained=sum(each.numel() for each in parameters if each.requires_grad),
        weight_bytes=keeping.weight_bytes
        + sum(each.numel() * each.element_size() for each in model.buffers()),
        gradient_bytes=keeping.gradient_bytes,
        optimizer=question.optimizer,
        optimizer_bytes=keeping.state_bytes(question.optimizer),
        budget=question.budget,
    )


def _training(question: EstimateRequest) -> Iterator[str]:
    """Yield how a model is trained, if not all of it by one process."""
    if question.autocast:
        yield "bfloat16 autocast"
    if question.lora is not None:
        where = "+".join(question.lora.targets) or "all linear layers"
        yield f"LoRA of rank {question.lora.rank} on {where}"
    if question.bits is not None:
        yield f"{question.bits}-bit base"
    if question.accumulates:
        yield "gradients accumulated"
    if question.sharding is not None:
        yield f"sharded as ZeRO-{question.sharding.stage} over {question.sharding.ranks} ranks"


def _settings(config: Any, path: str = "") -> dict[str, Any]:
    found = {f"{path}{name}": value for name, value in own_fields(config) if is_whole(value)}
    for name, child in children(config):
        found |= _settings(child, f"{path}{name}.")
    return found


def _shape(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"{str(value.dtype).removeprefix('torch.')} {' x '.join(map(str, value.shape)) or 'scalar'}"
    return str(value)[:60]
