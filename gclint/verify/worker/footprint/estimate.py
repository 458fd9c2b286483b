"""Answers a question about memory: what each mode and option needs, what fits, and what is measured."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from gclint.verify.worker.estimates import (
    Addition,
    BlockBytes,
    Dimension,
    EstimateRequest,
    Fit,
    Help,
    Lora,
    Measurement,
    MemoryEstimate,
    ModeEstimate,
    Option,
    Sharding,
)
from gclint.verify.worker.examination.tensors import move
from gclint.verify.worker.footprint.building import CannotEstimate, Trainee, in_a_line, trainee_of
from gclint.verify.worker.footprint.fake import PartlyFake
from gclint.verify.worker.footprint.keeping import Keeping
from gclint.verify.worker.footprint.kept import Kept, Record, additions, saved, storage_of
from gclint.verify.worker.footprint.step import Step, Structure, built, forward, structure_of, take_step
from gclint.verify.worker.modes import CHECKPOINTED, Mode
from gclint.verify.worker.synthesis.configurations.tree import children, is_whole, own_fields
from gclint.verify.worker.synthesis.hints.failure import ForwardError
from gclint.verify.worker.synthesis.hints.table import next_plan
from gclint.verify.worker.synthesis.inputs.forward import make_inputs
from gclint.verify.worker.synthesis.inputs.situation import Plan

_FITTED: tuple[Mode, ...] = ("plain", "non-reentrant")
_TRIES = 16
_MOST_TOKENS = 1 << 25
"""The most tokens in a batch, or items without tokens: no batch is larger, and tokens are real tensors."""
_EVERY = (1, 2, 3, 4, 6, 8)
MODES: tuple[Mode, ...] = ("plain", *CHECKPOINTED)
_ATTEMPTS = 8
_KNOBS: dict[str, dict[str, Any]] = {
    "--optimizer adamw-8bit": {"optimizer": "adamw-8bit"},
    "--shard zero3:8": {"sharding": Sharding(3, 8)},
    "--lora r=16": {"lora": Lora()},
    "--lora r=16 --bits 4": {"lora": Lora(), "bits": 4},
}
"""What may help if not even one item fits, by the options that set it."""
_LARGEST = 12
"""How many source lines are named at most."""


def fits(trainee: Trainee, budget: int) -> Iterator[Fit]:
    """Yield what fits a budget of bytes, without checkpointing and with it, beside the optimizer's state."""
    plan = trainee.situation.plan
    length = plan.length if trainee.reads_text else 1
    dimensions: list[tuple[Dimension, int, int]] = [("batch", plan.batch, _MOST_TOKENS // length)]
    if trainee.reads_text:
        most = min(_MOST_TOKENS // plan.batch, max(trainee.positions or _MOST_TOKENS, length))
        dimensions.append(("sequence", length, most))
    for dimension, start, most in dimensions:
        for mode in _FITTED:

            def need(number: int, dimension: Dimension = dimension, mode: Mode = mode) -> int:
                sized = (
                    trainee.sized(batch=number) if dimension == "batch" else trainee.sized(sequence=number)
                )
                return _needed(sized, mode)

            try:
                largest, needed, is_bound = largest_within(need, budget, start, most)
            except Exception as error:
                # A model need not run at every size, for example with a sequence in windows.
                yield Fit(dimension, mode, 0, 0, error=in_a_line(error))
            else:
                yield Fit(dimension, mode, largest, needed, is_bound)


def _needed(trainee: Trainee, mode: Mode) -> int:
    """Return the peak of a step, with the optimizer's state."""
    step = take_step(trainee, mode, (), lambda _kept: None)
    return step.peak_bytes + step.state_bytes


def largest_within(need: Callable[[int], int], budget: int, start: int, most: int) -> tuple[int, int, bool]:
    """Return the largest number up to ``most`` whose need of memory is within a budget.

    Needs grow linearly or faster, as memory does with tokens. So if a need lies on the line through two
    smaller ones, needs grow linearly up to there, and the next number need not be tried.

    Returns:
        The number, 0 if there is none, what it (or 1) needs, and whether it is ``most``.
    """
    known: dict[int, int] = {}
    low, high = 0, most + 1
    guess, expected = min(start, most), None
    for _ in range(_TRIES):
        known[guess] = need(guess)
        if known[guess] > budget:
            high = guess
        else:
            low = guess
            if known[guess] == expected and guess < most:
                break
        if high - low <= 1:
            break
        guess, expected = _next(known, budget, low, high)
    return low, known[low] if low else need(1), low == most


def _next(known: dict[int, int], budget: int, low: int, high: int) -> tuple[int, int | None]:
    """Return the number to try next, and its need if it is the largest and needs grow linearly."""
    if not low:
        return max(high // 2, 1), None
    smaller = [each for each in known if each < low]
    if smaller:
        guess, expected = _on_line(known, budget, max(smaller), low)
        if low < guess < high:
            return guess, expected
    if high in known:
        # The need on this line is never below the real one.
        guess, _ = _on_line(known, budget, low, high)
        return min(max(guess, low + 1), high - 1), None
    return min(2 * low, high - 1), None


def _on_line(known: dict[int, int], budget: int, one: int, other: int) -> tuple[int, int]:
    """Return the largest number within the budget on the line through two needs, and its own need there."""
    rise, run = known[other] - known[one], other - one
    if rise <= 0:
        return 0, 0
    guess = one + (budget - known[one]) * run // rise
    return guess, known[one] + (guess - one) * rise // run


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


def options(trainee: Trainee, names: Sequence[str]) -> Iterator[Option]:
    """Yield the cost of each option, in non-reentrant mode; nothing if the release has none."""
    switch = getattr(trainee.situation.model_class, "activation_checkpointing_enable", None)
    parameters = inspect.signature(switch).parameters if switch is not None else {}
    if "every_n_layers" in parameters:
        whole = 0
        for every in (each for each in _EVERY if each == 1 or each < len(names)):
            step = _step_with(trainee, names, every_n_layers=every)
            whole = step.left if every == 1 else whole
            yield Option(every, False, step.left, 0, step.flops, step.peak_bytes)
        if "offload" in parameters:
            step = _step_with(trainee, names, offload=True)
            yield Option(1, True, step.left, whole - step.left, step.flops, step.peak_bytes)


def _step_with(trainee: Trainee, names: Sequence[str], **given: object) -> Step[int]:
    return take_step(trainee, "non-reentrant", names, lambda kept: kept.total, **given)


def measurements(
    trainee: Trainee, names: Sequence[str], modes: Sequence[Mode], device: str
) -> Iterator[Measurement]:
    """Yield the measurements of a step in each mode on a device; each runs twice, since the first is slow."""
    for mode in modes:
        try:
            yield _measured(trainee, names, mode, device)
        except Exception as error:
            yield Measurement(mode, device, error=in_a_line(error))


def _measured(trainee: Trainee, names: Sequence[str], mode: Mode, device: str) -> Measurement:
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
            lambda kept: kept.total,
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


def estimate(source: str, classes: Sequence[Any], question: EstimateRequest, device: str) -> MemoryEstimate:
    """Return the answer to a question; raise CannotEstimate if it has none."""
    started = time.monotonic()
    try:
        trainee, structure = runnable(trainee_of(classes, question))
    except CannotEstimate as error:
        if question.config is None and error.__cause__ is not None:
            # The defaults of the parts of a composite model may not fit together.
            raise CannotEstimate(
                f"{error} (what is not set is a default; --config takes the sizes of a config.json)"
            ) from error
        raise
    names = structure.blocks
    modes: list[ModeEstimate] = []
    added: list[Addition] = []
    for mode in MODES:
        seen, new = _mode(trainee, mode, names)
        modes.append(seen)
        added += new
    found = _described(trainee, question, MemoryEstimate(source, trainee.situation.model_class.__name__))
    able = [each.mode for each in modes if not each.error]
    fitting = tuple(fits(trainee, question.budget)) if question.budget else ()
    is_too_large = any(each.mode == "non-reentrant" and not each.largest for each in fitting)
    return replace(
        found,
        modes=tuple(modes),
        additions=tuple(added),
        options=tuple(options(trainee, names)) if "non-reentrant" in able and names else (),
        fits=fitting,
        helps=tuple(helping(trainee)) if is_too_large else (),
        measurements=tuple(measurements(trainee, names, able, device)) if question.measure else (),
        notes=tuple(notes(trainee, question, structure)),
        seconds=time.monotonic() - started,
    )


def runnable(trainee: Trainee) -> tuple[Trainee, Structure]:
    """Return the same with inputs with which the class can be run, and its structure.

    The configuration stays as it is, since the question is about it.
    """
    tried: list[Plan] = []
    first: Exception | None = None
    for _ in range(_ATTEMPTS):
        plan = trainee.situation.plan
        tried.append(plan)
        try:
            return trainee, structure_of(trainee)
        except CannotEstimate:
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


def _mode(trainee: Trainee, mode: Mode, names: Sequence[str]) -> tuple[ModeEstimate, list[Addition]]:
    def evaluate(kept: Kept) -> tuple[ModeEstimate, list[Addition]]:
        records = kept.records()
        seen = ModeEstimate(mode, kept.total, _by_block(records, kept), largest=saved(records)[:_LARGEST])
        return seen, [] if mode == "plain" else additions(mode, records, kept)

    try:
        step = take_step(trainee, mode, names, evaluate)
    except Exception as error:
        return ModeEstimate(mode, error=in_a_line(error)), []
    seen, added = step.left
    seen = replace(seen, peak_bytes=step.peak_bytes, forward_flops=step.forward_flops, flops=step.flops)
    return seen, added


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


def helping(trainee: Trainee) -> Iterator[Help]:
    """Yield what a single item needs with checkpointing and another way to train, the least change first."""
    question = trainee.question
    for option, change in _KNOBS.items():
        changed = replace(question, **change)
        if changed == question:
            continue
        try:
            needed = _needed(replace(trainee, question=changed).sized(batch=1), "non-reentrant")
        except Exception:  # A model may have no layers for adapters.
            continue
        yield Help(option, needed)


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
