"""The checks, in the order of their importance; each can be disabled in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
from gclint.verify.worker.examination.fault import ENDLESS, NO_GRADIENT, NO_INPUT
from gclint.verify.worker.examination.phrases import ORDINALS, described, names, plural, without_package
from gclint.verify.worker.examination.run import ENABLING
from gclint.verify.worker.scenarios import AGAIN

VALUES = "values"
"""The name of the check that recomputed tensors equal those of the forward pass."""
FROZEN = "frozen base"
"""The name of the check of steps with a frozen base."""


def _error(comparison: Comparison) -> Iterator[FailedCheck]:
    error, stage = comparison.run.error, comparison.run.stage
    if error is None:
        return
    if error.is_death:
        place = error.place_in(comparison.source)
        yield FailedCheck(
            error.kind,
            f"there was {error.message} during {stage}{f', on line {place.line}' if place else ''}",
            places=(place,) if place else (),
        )
    elif error.kind == ENDLESS:
        yield FailedCheck(
            "error",
            f"{error.message} {AGAIN}: the backward pass never ends",
            blocks=(error.message,),
        )
    elif error.kind == NO_GRADIENT:
        yield FailedCheck("error", "no output requires grad any more, so `loss.backward()` raises")
    else:
        # If checkpointing cannot be enabled at all, this is about the blocks that are not layers yet.
        left = [each.name for each in comparison.blocks if not each.is_layer] if stage == ENABLING else []
        yield FailedCheck("error", f"{stage} raises {described(error)}", blocks=tuple(left))


def _switches(comparison: Comparison) -> Iterator[FailedCheck]:
    off = tuple(each for each in comparison.run.still_off if each not in comparison.deliberate)
    on = comparison.run.still_on
    if off:
        yield FailedCheck("switches", f"enabling checkpointing leaves it disabled in {names(off)}", about=off)
    if on:
        yield FailedCheck("switches", f"disabling checkpointing leaves it enabled in {names(on)}", about=on)


def _recomputation(comparison: Comparison) -> Iterator[FailedCheck]:
    if comparison.run.error is not None:
        return
    generator = comparison.run.replay.generator
    if generator is not None:
        yield FailedCheck(
            "recomputation",
            "a checkpoint runs a generator function, so nothing is recomputed of it",
            blocks=comparison.run.replay.generators,
            places=(generator,),
            cause=Cause.NOTHING_RECOMPUTED,
        )
    run = {each.name: each for each in comparison.blocks if comparison.run.forward[each.name]}
    # A block that lost all its gradients cannot be recomputed, and another check reports it.
    left = [name for name in comparison.left if name not in comparison.deliberate]
    steps = comparison.steps_with(left)
    kinds = dict.fromkeys(comparison.kinds[name].__name__ for name in left)
    if comparison.is_partial(left):
        in_steps = f"in the {' and '.join(ORDINALS[each] for each in steps[: len(ORDINALS)])} step"
        only = in_steps if len(steps) < len(comparison.run.steps) else "after some of their runs"
        text = f"stacked blocks are recomputed only {only}: {plural(len(left), kinds)}"
    elif run and not comparison.recomputed and set(left) == set(run):
        text = "nothing is recomputed: checkpointing is enabled but does nothing"
    elif left:
        text = f"stacked blocks are not recomputed: {plural(len(left), kinds)}"
    else:
        return
    is_layer = all(run[name].is_layer for name in left)
    cause = Cause.NOTHING_RECOMPUTED if is_layer else Cause.NOT_A_LAYER
    yield FailedCheck("recomputation", text, blocks=tuple(left), cause=cause)


def _double_recomputation(comparison: Comparison) -> Iterator[FailedCheck]:
    if comparison.run.error is not None:
        return
    nested = {
        name
        for name in comparison.recomputed
        for other in comparison.recomputed
        if name.startswith(f"{other}.")
    }
    often = {
        each.name: comparison.again(each) / comparison.most(each)
        for each in comparison.blocks
        if each.name in comparison.recomputed - nested and comparison.times(each)
    }
    twice = [name for name, times in often.items() if times > 1]
    if twice:
        times = max(often.values())
        yield FailedCheck(
            "double recomputation",
            f"{names(sorted(twice))}: recomputed {times:g} times in one backward pass",
            blocks=tuple(sorted(twice)),
        )


def _saved_bytes(comparison: Comparison) -> Iterator[FailedCheck]:
    # With a cache, its content is kept as well, and the reference has none.
    if not comparison.has(0) or comparison.run.conditions.scenario.use_cache:
        return
    if not any(each.saves_more for each in comparison.blocks):
        return  # There is nothing that could be saved.
    before, after = comparison.reference.steps[0].saved_bytes, comparison.run.steps[0].saved_bytes
    if before is not None and after is not None and after >= before and not comparison.lost:
        nothing = "checkpointing saves nothing: " if comparison.recomputed else ""
        yield FailedCheck(
            "saved bytes",
            f"{nothing}autograd keeps {after:,} bytes for "
            f"the backward pass, compared to {before:,} without checkpointing",
            blocks=tuple(sorted(each.name for each in comparison.blocks)),
            cause=Cause.NOTHING_SAVED,
        )


def _missing_gradients(comparison: Comparison) -> Iterator[FailedCheck]:
    if comparison.lost:
        yield FailedCheck(
            "missing gradients",
            f"{len(comparison.lost)} of {comparison.compared} parameters receive no gradient: "
            f"{names(comparison.lost)}",
            comparison.lost,
        )


def _gradients(comparison: Comparison) -> Iterator[FailedCheck]:
    if comparison.wrong:
        yield FailedCheck(
            "gradients",
            f"{len(comparison.wrong)} of {comparison.compared} parameters receive a wrong gradient: "
            f"{names(comparison.wrong)}",
            comparison.wrong,
        )


def _values(comparison: Comparison) -> Iterator[FailedCheck]:
    replay = comparison.run.replay
    if replay.different:
        yield FailedCheck(
            VALUES,
            f"recomputation gives different values for {replay.different} of {replay.compared} tensors, "
            f"the first a {replay.first}",
        )


def _loss(comparison: Comparison) -> Iterator[FailedCheck]:
    if comparison.different_loss(0):
        expected, found = comparison.reference.steps[0].own_loss, comparison.run.steps[0].own_loss
        yield FailedCheck("loss", f"the loss is {found}, but {expected} without checkpointing")


def _outputs(comparison: Comparison) -> Iterator[FailedCheck]:
    different = comparison.different_outputs(0)
    if different:
        expected, found = comparison.reference.steps[0].outputs, comparison.run.steps[0].outputs
        missing = [name for name in different if name not in found]
        new = [name for name in different if name not in expected]
        others = [name for name in different if name in found and name in expected]
        parts = [
            f"{what} {names(which)}"
            for what, which in (("missing:", missing), ("new:", new), ("with other values:", others))
            if which
        ]
        yield FailedCheck(
            "outputs",
            f"the outputs differ from those without checkpointing; {'; '.join(parts)}",
            about=tuple(different),
        )


def _buffers(comparison: Comparison) -> Iterator[FailedCheck]:
    if comparison.run.error is not None:
        return
    different = comparison.different_values
    if different:
        yield FailedCheck(
            "buffers",
            f"buffers differ from those without checkpointing ({len(different)}): {names(different)}",
            different,
        )


def _state(comparison: Comparison) -> Iterator[FailedCheck]:
    if comparison.run.error is not None:
        return
    different = comparison.different_attributes
    if different:
        yield FailedCheck(
            "state",
            f"attributes of modules differ from those without checkpointing: {names(different)}",
            about=tuple(different),
        )
    left_over = comparison.left_over
    if left_over:
        yield FailedCheck(
            "state",
            without_package(
                f"the steps leave {names(left_over)} changed, and unchanged without checkpointing"
            ),
            about=left_over,
        )


def _second_step(comparison: Comparison) -> Iterator[FailedCheck]:
    later = [
        each
        for each in range(1, len(comparison.run.steps))
        if comparison.has(each) and comparison.differs(each)
    ]
    if later and not comparison.differs(0):
        yield FailedCheck(
            "second step",
            f"the first step is right but the {ORDINALS[later[0]]} is not: "
            f"{'the first one leaves' if later[0] == 1 else 'earlier ones leave'} state behind",
            about=comparison.later,
        )


def _caches(comparison: Comparison) -> Iterator[FailedCheck]:
    written = [
        each
        for each in comparison.run.calls
        if not comparison.run.side_effects.caches.isdisjoint(each.caches)
    ]
    if written:
        kinds = dict.fromkeys(kind for each in written for kind in each.caches.values())
        yield FailedCheck(
            "cache",
            f"the recomputation writes to the cache a second time ({', '.join(kinds)})",
            blocks=tuple(dict.fromkeys(each.block for each in written)),
        )


def _warning(comparison: Comparison) -> Iterator[FailedCheck]:
    if any(NO_INPUT in each for each in comparison.run.warnings):
        yield FailedCheck("warning", f'torch warns: "{NO_INPUT}=True. Gradients will be None"')


def frozen_base(comparison: Comparison) -> Iterator[FailedCheck]:
    """Check that adapters in a frozen base get the gradients that they get without checkpointing."""
    where = "with a frozen base, "
    for name in ("error", "missing gradients", "gradients"):
        for failed_check in CHECKS[name](comparison):
            yield replace(
                failed_check, check=FROZEN, message=f"{where}{failed_check.message}", kind=failed_check.check
            )
            where = ""


CHECKS: dict[str, Callable[[Comparison], Iterable[FailedCheck]]] = {
    "error": _error,
    "switches": _switches,
    "recomputation": _recomputation,
    "missing gradients": _missing_gradients,
    "gradients": _gradients,
    "loss": _loss,
    "outputs": _outputs,
    VALUES: _values,
    "saved bytes": _saved_bytes,
    "double recomputation": _double_recomputation,
    "buffers": _buffers,
    "second step": _second_step,
    "state": _state,
    "cache": _caches,
    "warning": _warning,
    FROZEN: frozen_base,
}
"""Functions that find failed checks in a run with checkpointing, by the names of the checks."""
