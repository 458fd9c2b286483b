"""Causes in how checkpointing is enabled, in what is checkpointed, and in what the model keeps."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
from gclint.verify.worker.examination.explaining.explanation import SIDE_EFFECTS, Diagnosis, PossibleCause, at
from gclint.verify.worker.examination.explaining.mentions import called_at, condition_of
from gclint.verify.worker.examination.fault import Fault
from gclint.verify.worker.examination.phrases import described, line, names, without_package
from gclint.verify.worker.examination.run import BACKWARD, ENABLING, REQUIRING, Run
from gclint.verify.worker.protocol import Failure, SourcePlace

_LEAF = "leaf Variable that requires grad"
_NOT_A_TENSOR = "has no attribute 'requires_grad_'"
_TORCH = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120 (as frames have it)
HOOK_EXPLANATION = (
    f"`{REQUIRING}` makes the output of the module that `get_input_embeddings()` returns require grad, so "
    "this output must be a single tensor. Return a module whose output is one."
)


def is_leaf_changed(fault: Fault) -> bool:
    """Return whether a model changed a leaf that requires grad in place."""
    return _LEAF in fault.message


def is_hook_failed(fault: Fault) -> bool:
    """Return whether the hooked module returns something that cannot require grad."""
    return _NOT_A_TENSOR in fault.message


def changed_at(fault: Fault) -> tuple[SourcePlace, ...]:
    """Return the line of the model that changes something in place."""
    frame = next((each for each in fault.frames if not each.path.startswith(_TORCH)), None)
    return () if frame is None else (frame,)


def leaf_explanation(*, frozen: bool) -> str:
    """Return why an in-place change fails, and what to do about it."""
    when = ", which checkpointing needs with a frozen base," if frozen else ""
    return (
        f"`{REQUIRING}`{when} makes the output of the embeddings require grad, and the model changes that "
        "output in place. Clone it first."
    )


def failure_of_hook(check: str, run: Run, fault: Fault) -> Failure:
    """Return the failure of a plain run that occurs only if the output of the embeddings requires grad."""
    is_leaf = is_leaf_changed(fault)
    return Failure(
        check,
        "plain",
        run.conditions.scenario.name,
        f"with a frozen base, {run.stage} raises {described(fault)} as soon as {REQUIRING} is called",
        places=changed_at(fault) if is_leaf else (),
        cause=Cause.LEAF if is_leaf else Cause.HOOK,
        explanation=leaf_explanation(frozen=True) if is_leaf else HOOK_EXPLANATION,
    )


def _switch(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    # A flag that stays disabled has the others as its side_effects.
    if not any(each.check == "switches" for each in failed_checks):
        return None
    verbs = {"set": comparison.run.still_off, "clear": comparison.run.still_on}
    missing = " or ".join(verb for verb, modules in verbs.items() if modules)
    return Diagnosis(
        Cause.SWITCHES,
        f"An override of `_set_gradient_checkpointing` does not {missing} `gradient_checkpointing` there. "
        "Remove the override.",
    )


def _nothing_to_switch(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    if not any("is not compatible with gradient checkpointing" in each.message for each in failed_checks):
        return None
    return Diagnosis(
        Cause.NOTHING_TO_SWITCH,
        "The class sets `supports_gradient_checkpointing`, but no module in it has a "
        "`gradient_checkpointing` flag. Derive its blocks from `GradientCheckpointingLayer`, or remove the "
        "claim.",
    )


def _cannot_switch(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    error = comparison.run.error
    if error is None or comparison.run.stage != ENABLING:
        return None
    frame = error.place_in(comparison.source)
    lines = (frame,) if frame is not None else ()
    return Diagnosis(
        Cause.SWITCHES,
        "This release of transformers cannot enable checkpointing in the model's own "
        f"code{f', see {line(lines[0])}' if lines else ''}: an override does not take the arguments that "
        "it is given. Remove the override, or make it take and pass on all of them.",
        lines,
    )


def _nothing(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    cause = failed_checks[0].cause
    blocks = sorted({name for each in failed_checks for name in each.blocks})
    if comparison.run.replay.generator is not None:
        return Diagnosis(
            cause,
            "A checkpoint of a generator function ends once the generator is made, and what that computes is "
            "saved as without a checkpoint. Return the result instead of yielding it.",
        )
    if cause is Cause.NOT_A_LAYER:
        text, lines = _left_by_checkpoint(comparison, blocks)
        return Diagnosis(cause, f"{text}Derive the blocks from `GradientCheckpointingLayer`.", lines)
    evaluated = comparison.inspection.evaluated if comparison.inspection is not None else frozenset()
    if blocks and evaluated.issuperset(blocks):
        return Diagnosis(
            cause,
            f"{names(blocks)} {'is' if len(blocks) == 1 else 'are'} in evaluation mode although the model "
            "was put into training mode, and layers are recomputed only in training mode. Do not override "
            "`train()` so.",
        )
    if any(comparison.reference.backward[each.name] for each in comparison.blocks):
        made = [each.outer or each.place for each in comparison.checkpoints]
        lines = tuple(dict.fromkeys(each for each in made if each is not None))
        return Diagnosis(
            cause,
            f"Blocks are recomputed without checkpointing being enabled as well: {at(lines)} of torch's "
            "checkpoint function does not depend on it. Remove it, or make it depend on "
            "`gradient_checkpointing`.",
            lines,
        )
    settings = comparison.inspection.settings if comparison.inspection is not None else {}
    flags = [each for name in blocks if (each := settings.get(f"{name}.gradient_checkpointing"))]
    if not flags:
        return Diagnosis(cause)
    lines = tuple(dict.fromkeys(each.place for each in flags))
    return Diagnosis(
        cause,
        f"`gradient_checkpointing` of {names(blocks)} is set again at {' and '.join(map(line, lines))} when "
        "the model runs. Leave it as it was enabled.",
        lines,
    )


def _left_by_checkpoint(comparison: Comparison, blocks: list[str]) -> tuple[str, tuple[SourcePlace, ...]]:
    """Return why the model's own checkpoints leave blocks out, in a sentence, with the lines."""
    calls = dict.fromkeys(each.place for each in comparison.run.calls if each.block in blocks)
    in_segments = tuple(each for each in calls if "checkpoint_sequential" in called_at(each))
    if in_segments:
        return (
            f"Torch's `checkpoint_sequential`, which {at(in_segments, 'run')}, leaves its last segment "
            "without a checkpoint. ",
            in_segments,
        )
    lines = tuple(dict.fromkeys(each.place for each in comparison.checkpoints if each.place is not None))
    how = "only at some times"
    if not comparison.is_partial(blocks) or not lines:
        lines = tuple(each for each in comparison.unreached if _has_checkpoint(each))
        how = "at no time"
    if not lines:
        return "", ()
    shown = dict.fromkeys(f"`{condition}`" for each in lines if (condition := condition_of(each)))
    only = f": it depends on {' and '.join(shown)}" if shown else ""
    return f"The checkpoint at {' and '.join(map(line, lines))} is reached {how}{only}. ", lines


def _has_checkpoint(lines: SourcePlace) -> bool:
    return any("checkpoint" in name for name in called_at(lines))


def _nested_checkpoint(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    inner = [each for each in comparison.checkpoints if each.outer is not None]
    if not inner:
        return None
    lines = tuple(dict.fromkeys(each.outer for each in inner if each.outer is not None))
    return Diagnosis(
        Cause.NESTED_CHECKPOINT,
        f"A checkpoint is nested in another one, that of {at(lines)}. Remove the explicit one around the "
        "layer.",
        lines,
    )


def _statistics(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    changed = [name for each in failed_checks for name in each.parameters]
    weights = [name for name in changed if name in comparison.run.steps[0].gradients]
    if weights:
        return Diagnosis(
            Cause.STATE,
            f"The checkpointed code changes {names(weights)}, and the recomputation does so again. Change "
            "weights outside the checkpointed code.",
        )
    owners = {name.rpartition(".")[0] for name in changed}
    kinds = dict.fromkeys(
        comparison.kinds[name].__name__ for name in sorted(owners) if name in comparison.kinds
    )
    if not any(map(_is_statistic, changed)):
        return Diagnosis(
            Cause.STATISTICS,
            f"The recomputation changes the buffers {names(changed)} a second time in each step. Keep what "
            "changes buffers out of the checkpointed blocks, or do not change them while recomputing.",
        )
    return Diagnosis(
        Cause.STATISTICS,
        f"The recomputation updates the running statistics of {', '.join(kinds)} a second time in each "
        "step. Keep modules with running statistics out of the checkpointed blocks, or do not update them "
        "while recomputing.",
    )


def _is_statistic(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last.startswith("running_") or last == "num_batches_tracked"


def _state_on_self(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    attributes = comparison.run.side_effects.attributes
    if not attributes and not comparison.left_over:
        return None
    if not attributes:
        return Diagnosis(
            Cause.GLOBAL_STATE,
            f"A recomputation changes {without_package(names(comparison.left_over))}, and nothing undoes "
            "that, so it grows or drifts from step to step. Keep what the backward pass needs in the context "
            "of the function, or change nothing that is shared in the checkpointed code.",
        )
    settings = comparison.inspection.settings if comparison.inspection is not None else {}
    lines = tuple(dict.fromkeys(settings[name].place for name in attributes if name in settings))
    shown = f" at {' and '.join(map(line, lines))}" if lines else ""
    return Diagnosis(
        Cause.STATE,
        f"The checkpointed code sets {names(attributes)}{shown}, and the recomputation sets them again. "
        "Return such values instead of storing them, or set them outside the checkpointed code.",
        lines,
    )


def _embeddings(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    fault = comparison.run.error
    if fault is None:
        return None
    if is_hook_failed(fault):
        return Diagnosis(Cause.HOOK, HOOK_EXPLANATION)
    if is_leaf_changed(fault):
        if comparison.run.stage.startswith(BACKWARD):
            lines = changed_at(fault)
            shown = f" at {line(lines[0])}" if lines else ""
            return Diagnosis(
                Cause.CHANGED_ARGUMENT,
                f"The checkpointed code changes what it is passed in place{shown}. Reentrant checkpointing "
                "recomputes from tensors without a graph, which must not be changed so. Work on a copy.",
                lines,
            )
        frozen = comparison.run.conditions.scenario.frozen_base
        return Diagnosis(Cause.LEAF, leaf_explanation(frozen=frozen), changed_at(fault))
    return None


SWITCHES = (
    PossibleCause(frozenset(("switches", "recomputation", "saved bytes")), _switch),
    PossibleCause(frozenset(("error",)), _nothing_to_switch),
    PossibleCause(frozenset(("error",)), _cannot_switch),
)
EMBEDDINGS = (PossibleCause(SIDE_EFFECTS, _embeddings),)
NESTED = (PossibleCause(frozenset(("double recomputation", "warning")), _nested_checkpoint),)
STATISTICS = (PossibleCause(frozenset(("buffers",)), _statistics),)
NOTHING = (PossibleCause(frozenset(("recomputation", "saved bytes")), _nothing),)
STATE = (PossibleCause(frozenset(("state", "second step")), _state_on_self),)
