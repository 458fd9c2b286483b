"""The page of an estimate of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gclint import __version__
from gclint.report.memory import NAMES, option_name, size, tensors
from gclint.report.page.excerpts import brief
from gclint.report.page.view import Depth, Fact, Origin, Page, Table, Trade
from gclint.verify.memory import Estimated
from gclint.verify.worker.estimates import Addition, Fit, MemoryEstimate, ModeEstimate, Option, Saved
from gclint.verify.worker.protocol import Environment


def memory_page(found: Estimated, origin: Origin) -> Page:
    """Return the page of an estimate."""
    estimate = found.estimate
    return Page(
        f"Memory of {estimate.name}",
        tuple(_facts(estimate, found.environment, origin)),
        lead=_lead(estimate),
        problems=tuple(f"{NAMES[each.mode]}: {each.error}" for each in estimate.modes if each.error),
        tables=tuple(each for each in _tables(estimate) if each.rows),
        remarks=estimate.notes,
        depths=tuple(_depths(estimate)),
        trades=tuple(_trades(estimate)),
    )


def _lead(estimate: MemoryEstimate) -> str:
    plain, checkpointed = estimate.mode("plain"), estimate.mode("non-reentrant")
    if plain is None or checkpointed is None or not plain.saved_bytes or not plain.flops:
        return "There are no numbers to compare."
    less = 1 - checkpointed.saved_bytes / plain.saved_bytes
    more = checkpointed.flops / plain.flops - 1
    return (
        f"Gradient checkpointing saves {size(checkpointed.saved_bytes)} for the backward pass in place of "
        f"{size(plain.saved_bytes)}: {less:.1%} less, for {more:.1%} more FLOPs."
    )


def _facts(estimate: MemoryEstimate, environment: Environment, origin: Origin) -> Iterator[Fact]:
    yield Fact("Command", origin.command)
    yield Fact("Made", origin.moment)
    yield Fact("Model", f"{estimate.name} ({brief(estimate.source)})")
    yield Fact("Batch", f"{estimate.batch:,}")
    if estimate.sequence is not None:
        yield Fact("Tokens", f"{estimate.sequence:,}")
    yield Fact("Type", estimate.dtype)
    yield Fact("Parameters", f"{estimate.parameters:,}")
    yield Fact("Weights", size(estimate.weight_bytes))
    yield Fact("Gradients", size(estimate.gradient_bytes))
    yield Fact("Optimizer", f"{estimate.optimizer}, {size(estimate.optimizer_bytes)}")
    yield Fact("gclint", __version__)
    for name in ("transformers", "torch", "Python"):
        yield Fact(name, getattr(environment, name.lower()))
    if estimate.settings:
        yield Fact("Sizes", ", ".join(f"{name}={value}" for name, value in estimate.settings.items()))
    if estimate.inputs:
        yield Fact("Inputs", ", ".join(f"{name}: {what}" for name, what in estimate.inputs.items()))


def _tables(estimate: MemoryEstimate) -> Iterator[Table]:
    peak = f"Peak with {estimate.optimizer}"
    yield Table(
        "A step",
        ("Checkpointing", "Saved for backward", "In blocks", "Outside", peak, "FLOPs"),
        tuple(_mode(each, estimate.optimizer_bytes) for each in estimate.modes if not each.error),
    )
    yield Table(
        "Measured",
        ("Checkpointing", "Device", "Saved, estimated", "Saved, measured", "Peak", "Time"),
        tuple(_measured(estimate)),
        "The same step, run for real.",
    )
    if estimate.budget is not None:
        yield Table(
            f"What fits {size(estimate.budget)}",
            ("Checkpointing", "What grows", "Largest", "Needs"),
            tuple(
                (NAMES[each.mode], each.dimension, _fit(each), "" if each.error else size(each.needed_bytes))
                for each in estimate.fits
            ),
            "Everything else stays the same. Weights, gradients and the optimizer's state are included.",
        )
    yield Table(
        "Options of checkpointing",
        ("Option", "Saved on the device", "In the host's memory", peak, "FLOPs"),
        tuple(_option_row(each, estimate.optimizer_bytes) for each in estimate.options),
        "Non-reentrant; with offloading, the peak includes the host's memory.",
    )
    yield Table(
        "Each additional block",
        ("Stack", "Mode", "Adds", "Boundary", "In addition"),
        tuple(_added(each) for each in estimate.additions),
        "With checkpointing, a block should add only its boundary.",
    )
    for names, mode in _alike(estimate, lambda each: each.largest):
        yield Table(
            f"Most of what is saved, {names}",
            ("Bytes", "Module", "Tensors", "Kept by", "Line"),
            tuple(_largest(each) for each in mode.largest),
        )


def _mode(each: ModeEstimate, state: int) -> tuple[str, ...]:
    inside = sum(block.saved_bytes for block in each.blocks)
    return (
        NAMES[each.mode],
        size(each.saved_bytes),
        size(inside),
        size(each.saved_bytes - inside),
        "" if each.peak_bytes is None else size(each.peak_bytes + state),
        f"{each.flops:.3g}",
    )


def _measured(estimate: MemoryEstimate) -> Iterator[tuple[str, ...]]:
    for each in estimate.measurements:
        expected = estimate.mode(each.mode)
        if each.error:
            yield NAMES[each.mode], each.device, "", each.error, "", ""
            continue
        yield (
            NAMES[each.mode],
            each.device,
            "" if expected is None else f"{expected.saved_bytes:,} B",
            f"{each.saved_bytes:,} B",
            "" if each.peak_bytes is None else size(each.peak_bytes),
            f"{each.seconds:.3g} s",
        )


def _fit(each: Fit) -> str:
    if each.error:
        return f"not known: {each.error}"
    if not each.largest:
        return "not even 1"
    return f"{each.largest:,} or more" if each.is_limit else f"{each.largest:,}"


def _option_row(each: Option, state: int) -> tuple[str, ...]:
    sizes = (each.saved_bytes, each.host_bytes, each.peak_bytes + state)
    return option_name(each), *map(size, sizes), f"{each.flops:.3g}"


def _added(each: Addition) -> tuple[str, ...]:
    if not each.recomputed:
        besides = "it is not checkpointed"
    else:
        extras = (f"{size(x.size)} of {x.module or 'the model'} ({tensors(x)})" for x in each.extras)
        besides = "; ".join(extras) or "nothing"
    shape = " x ".join(map(str, each.boundary_shape))
    return (
        f"{each.stack} ({each.blocks} of {each.kind})",
        NAMES[each.mode],
        size(each.added_bytes),
        f"{shape} = {size(each.boundary_bytes)}",
        besides,
    )


def _largest(each: Saved) -> tuple[str, ...]:
    place = "" if each.place is None else f"{brief(each.place.path)}:{each.place.line}"
    return size(each.size), each.module or "the model", tensors(each), each.operation, place


def _depths(estimate: MemoryEstimate) -> Iterator[Depth]:
    """Yield what has been saved when each block has run."""
    for names, mode in _alike(estimate, lambda each: each.blocks):
        total = 0
        for number, block in enumerate(mode.blocks, 1):
            total += block.saved_bytes
            label = f"{block.name}, {names}: {size(block.saved_bytes)}, {size(total)} in total"
            yield Depth(names, number, total, label)


def _alike(
    estimate: MemoryEstimate, key: Callable[[ModeEstimate], object]
) -> Iterator[tuple[str, ModeEstimate]]:
    """Yield the modes with their names; those with the same values once."""
    found: dict[object, list[ModeEstimate]] = {}
    for mode in estimate.modes:
        if not mode.error:
            found.setdefault(key(mode), []).append(mode)
    for modes in found.values():
        yield " and ".join(NAMES[each.mode] for each in modes), modes[0]


def _trades(estimate: MemoryEstimate) -> Iterator[Trade]:
    """Yield what each option saves, and what it costs."""
    plain = estimate.mode("plain")
    if plain is None or not plain.flops or not estimate.options:
        return
    points = [("nothing checkpointed", plain.saved_bytes, plain.flops)]
    points += [(option_name(each), each.saved_bytes, each.flops) for each in estimate.options]
    for name, saved, flops in points:
        more = flops / plain.flops - 1
        yield Trade(name, more, saved, f"{name}: {size(saved)}, {more:+.1%} FLOPs")
