"""The text format of memory estimates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gclint.code.paths import printable, shown
from gclint.report.printing import is_coloured, width_of, write_lines
from gclint.verify.memory import Estimated
from gclint.verify.worker.estimates import (
    Addition,
    Fit,
    Measurement,
    MemoryEstimate,
    ModeEstimate,
    Option,
    Saved,
)

_LINES = 6
_WIDEST = 1000
NAMES = {"plain": "no checkpointing", "non-reentrant": "non-reentrant", "reentrant": "reentrant"}
"""The names of modes in output."""


def write(found: Estimated, stream: TextIO) -> None:
    """Write an estimate; on a terminal, long lines are wrapped at words."""
    estimate = found.estimate
    write_lines((*_end(estimate), *_answer(estimate), *_head(found), ""), stream)
    width = width_of(stream) if stream.isatty() else _WIDEST
    console = Console(
        file=stream, highlight=False, width=width, color_system="auto" if is_coloured(stream) else None
    )
    console.print(_modes(estimate))
    write_lines(_rest(estimate), stream)


def size(number: float) -> str:
    """Return a number of bytes with a unit, in powers of ten."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(number) < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.2f} {unit}"
        number /= 1000
    return f"{number:.2f} TB"


def _end(estimate: MemoryEstimate) -> Iterator[str]:
    """Yield what is missing, if the estimate ended before all was known."""
    if estimate.ended:
        missing = ", ".join(NAMES.get(each, each) for each in estimate.missing)
        yield f"This is not complete, since {estimate.ended}. Not known: {missing}."


def _answer(estimate: MemoryEstimate) -> Iterator[str]:
    """Yield what fits the budget, if there is one."""
    fits = {each.mode: each for each in estimate.fits if each.dimension == "batch" and not each.error}
    plain, checkpointed = fits.get("plain"), fits.get("non-reentrant")
    if estimate.budget is None or plain is None or checkpointed is None:
        return
    budget, of = size(estimate.budget), f" of {estimate.sequence:,} tokens" if estimate.sequence else ""
    if checkpointed.largest:
        less = f"{plain.largest:,}" if plain.largest else "not even 1"
        yield f"{budget} fits a batch of {checkpointed.largest:,}{of} with checkpointing; without it, {less}."
        return
    needed = size(checkpointed.needed_bytes)
    yield f"{budget} fits no batch{of}, also with checkpointing: 1 needs {needed}."
    for each in estimate.helps:
        verdict = "fits" if each.needed_bytes <= estimate.budget else "does not fit either"
        yield f"    {each.option}: 1 needs {size(each.needed_bytes)}, which {verdict}"


def _head(found: Estimated) -> Iterator[str]:
    estimate, environment = found.estimate, found.environment
    yield (
        f"{estimate.name} ({shown(estimate.source)}), "
        f"torch {environment.torch}, transformers {environment.transformers}"
    )
    sequence = "" if estimate.sequence is None else f" x {estimate.sequence:,} tokens"
    trained = "" if estimate.trained == estimate.parameters else f" ({estimate.trained:,} trained)"
    how = f", {estimate.training}" if estimate.training else ""
    count = f"{estimate.parameters:,} parameters{trained}"
    yield f"batch {estimate.batch}{sequence}, {estimate.dtype}, {count}{how}"
    inputs = ", ".join(f"{name} {each}" for name, each in estimate.inputs.items() if " " in each)
    yield f"inputs: {inputs}"
    yield (
        f"weights {size(estimate.weight_bytes)}, gradients {size(estimate.gradient_bytes)}, "
        f"{estimate.optimizer} {size(estimate.optimizer_bytes)}"
        f"{' (by formula)' if estimate.by_formula else ''}"
    )


def _modes(estimate: MemoryEstimate) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("checkpointing")
    peak = f"peak with {printable(estimate.optimizer)}"
    for name in ("saved for backward", "less", peak, "FLOPs of a step", "more"):
        table.add_column(Text(name), justify="right")
    plain = estimate.mode("plain")
    for each in estimate.modes:
        table.add_row(NAMES[each.mode], *_cells(each, plain, estimate.optimizer_bytes))
    return table


def _cells(mode: ModeEstimate, plain: ModeEstimate | None, state: int) -> list[str]:
    if mode.error:
        return ["cannot be run", "", "", "", ""]
    peak = "-" if mode.peak_bytes is None else size(mode.peak_bytes + state)
    less, more = "", ""
    if plain is not None and mode is not plain and plain.saved_bytes and plain.flops:
        less = f"{1 - mode.saved_bytes / plain.saved_bytes:.1%}"
        more = f"{mode.flops / plain.flops - 1:+.1%}"
    return [size(mode.saved_bytes), less, peak, f"{mode.flops:.3g}", more]


def _rest(estimate: MemoryEstimate) -> Iterator[str]:
    for mode in estimate.modes:
        if mode.error:
            yield f"{NAMES[mode.mode]} cannot be run: {mode.error}"
    for each in estimate.measurements:
        yield _measured(each, estimate)
    for addition in _different(estimate.additions):
        yield from _addition(addition)
    for mode in estimate.modes:
        if mode.mode != "reentrant" and mode.largest:
            yield ""
            yield f"Most of what is saved, {NAMES[mode.mode]}:"
            yield from (f"  {_line(each)}" for each in mode.largest[:_LINES])
    if estimate.options:
        yield ""
        yield "Options of activation_checkpointing_enable, non-reentrant:"
        yield from (f"  {_option(each)}" for each in estimate.options)
    if estimate.budget is not None and estimate.fits:
        yield ""
        yield f"Largest that fit {size(estimate.budget)}, all else being the same:"
        yield from (f"  {_fit(each)}" for each in estimate.fits)
    yield ""
    yield from estimate.notes


def _different(additions: tuple[Addition, ...]) -> list[Addition]:
    """Return the additions, without those that repeat what an earlier mode adds."""
    found: dict[tuple[object, ...], Addition] = {}
    for each in additions:
        key = (each.stack, each.kind, each.boundary_bytes, each.added_bytes, each.extras, each.recomputed)
        found.setdefault(key, each)
    return list(found.values())


def _measured(each: Measurement, estimate: MemoryEstimate) -> str:
    if each.error:
        return f"measured on {each.device}, {NAMES[each.mode]}: {each.error}"
    expected = estimate.mode(each.mode)
    difference = 0 if expected is None else each.saved_bytes - expected.saved_bytes
    same = "as estimated, to the byte" if not difference else f"{difference:+,} bytes of what was estimated"
    peak = "" if each.peak_bytes is None else f", peak {size(each.peak_bytes)}"
    saved = f"{size(each.saved_bytes)} saved ({same})"
    return f"measured on {each.device}, {NAMES[each.mode]}: {saved}{peak}, {each.seconds:.3g} s a step"


def _option(each: Option) -> str:
    host = f" and {size(each.host_bytes)} in the host's memory" if each.offload else ""
    name = "offload=True" if each.offload else f"every_n_layers={each.every_n_layers}"
    return f"{name:<18} {size(each.saved_bytes):>10} saved{host}, {each.flops:.3g} FLOPs"


def _fit(each: Fit) -> str:
    if each.error:
        return f"{each.dimension}, {NAMES[each.mode]}: not known, because another size raises {each.error}"
    if not each.largest:
        return f"{each.dimension}, {NAMES[each.mode]}: not even 1, which needs {size(each.needed_bytes)}"
    limit = ", the most that was tried" if each.is_limit else ""
    return f"{each.dimension}, {NAMES[each.mode]}: {each.largest:,} ({size(each.needed_bytes)}){limit}"


def _addition(each: Addition) -> Iterator[str]:
    yield ""
    stack = f"{each.blocks} blocks of {each.kind} in {each.stack}"
    what = f"{stack}; with checkpointing, each additional block adds"
    boundary = f"its boundary, {' x '.join(map(str, each.boundary_shape))} = {size(each.boundary_bytes)}"
    if each.is_exact:
        yield f"{what} {boundary}, and nothing else."
    elif not each.recomputed:
        yield f"{what} {size(each.added_bytes)}: it is not checkpointed."
    else:
        yield f"{what} {size(each.added_bytes)}: {boundary}, and in addition"
        yield from (f"  {_line(extra)}" for extra in each.extras)


def _line(saved: Saved) -> str:
    place = "" if saved.place is None else f"  {shown(saved.place.path)}:{saved.place.line}"
    return f"{size(saved.size):>10}  {saved.module or 'the model'}  {tensors(saved)}{place}"


def tensors(saved: Saved) -> str:
    """Return how many tensors of which type and shape are saved."""
    shape = " x ".join(map(str, saved.shape)) or "scalar"
    return f"{f'{saved.count} x ' if saved.count > 1 else ''}{saved.dtype} {shape}"
