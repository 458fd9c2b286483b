"""Causes in what is passed to blocks, and in what they return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.block_calls import BlockCall
from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
from gclint.verify.worker.examination.explaining.explanation import (
    FROZEN,
    GRADIENTS,
    SIDE_EFFECTS,
    VALUES,
    Diagnosis,
    PossibleCause,
    at,
    places,
    where,
)
from gclint.verify.worker.examination.explaining.state_changes import left_behind, nearest, stack_of
from gclint.verify.worker.examination.fault import NO_INPUT
from gclint.verify.worker.examination.inspection.inspector import AS_TUPLE
from gclint.verify.worker.examination.phrases import line, names

_MESSAGES = {
    "CheckpointFunction is a view and is being modified inplace": (
        Cause.CHANGED_OUTPUT,
        "What a reentrant checkpoint returns is changed in place although it is a view. Change a copy.",
    ),
    "only supported when use_reentrant=False": (
        Cause.ARGUMENTS,
        "The model gives its checkpoints a setting that reentrant checkpointing does not have. Train with "
        "`use_reentrant=False`, or leave the setting out.",
    ),
    "Unexpected keyword arguments:": (
        Cause.ARGUMENTS,
        "The model passes its checkpoints arguments by keyword, which reentrant checkpointing does not take. "
        "Pass them by position.",
    ),
}
"""What errors of torch's own mean, by parts of their messages."""
_DEATHS = frozenset(("time limit", "memory limit", "crash"))
_LOST = (
    "second time",
    "never ends",
    "no output requires grad",
    "does not require grad",
    "receive no gradient",
    "none of output has requires_grad",
)
"""Parts of messages about lost gradients."""


def _positional_cache(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    written = comparison.run.side_effects.caches
    calls = [
        each
        for each in comparison.run.calls
        if each.positional_caches and not written.isdisjoint(each.caches)
    ]
    if not calls or not comparison.run.conditions.scenario.use_cache:
        return None
    arguments = dict.fromkeys(name for each in calls for name in each.positional_caches)
    return Diagnosis(
        Cause.POSITIONAL_CACHE,
        f"{where(calls, 'pass')} {names(arguments)} by position, so the base class cannot disable it and "
        "the recomputation finds a cache that the forward pass has filled. Pass it by keyword.",
        places(calls),
    )


def _written_cache(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    calls = [
        each
        for each in comparison.run.calls
        if not comparison.run.side_effects.caches.isdisjoint(each.caches)
    ]
    if not calls:
        return None
    return Diagnosis(
        Cause.WRITTEN_CACHE,
        f"The cache that {where(calls, 'pass')} is written to by the forward pass and again by the "
        "recomputation. Pass it by keyword under a name that the base class disables, or pass no cache "
        "while checkpointing.",
        places(calls),
    )


def _shared_dictionary(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    changed = comparison.run.side_effects.dictionaries
    calls = [each for each in comparison.run.calls if not changed.isdisjoint(each.dictionaries.values())]
    if not calls:
        return None
    arguments = dict.fromkeys(
        name for each in calls for name, value in each.dictionaries.items() if value in changed
    )
    if _reads_another(comparison, failed_checks, arguments):
        return None
    return Diagnosis(
        Cause.DICTIONARY,
        f"The dictionary {names(arguments)} that {where(calls, 'pass')} is changed by the block, so the "
        "recomputation finds and leaves different values in it. Pass and return tensors instead.",
        places(calls),
    )


def _reads_another(
    comparison: Comparison, failed_checks: Sequence[FailedCheck], arguments: Container[str]
) -> bool:
    """Return whether something else than arguments has changed that is read as near to the difference."""
    each = comparison.divergent
    changed = left_behind(comparison, failed_checks)
    if each is not None:
        changed = nearest(each, each.origin, stack_of(comparison, each.origin))
    return any(change.holder != "argument" or change.name not in arguments for change in changed)


def _lost_activation(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    if any(sign in each.message for each in failed_checks for sign in _LOST):
        return _keyword_activation(comparison, failed_checks)
    return None


def _keyword_activation(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    if not comparison.is_reentrant:
        return None
    # The arguments of calls within a layer are recomputed with it.
    layers = {block.name for block in comparison.blocks if block.is_layer}
    within = tuple(f"{name}." for name in layers)
    layers |= {
        name
        for each in comparison.checkpoints
        for name in each.modules
        if not (within and name.startswith(within))
    }
    passed = [call for call in comparison.run.calls if call.block in layers]
    keywords = dict.fromkeys(name for call in passed for name in call.keyword)
    contained = dict.fromkeys(name for call in passed for name in call.contained)
    if "second time" in " ".join(each.message for each in failed_checks):
        keywords, contained = _only_shared(comparison, keywords, contained)
        passed = _sharing(comparison, passed)
    calls = [call for call in passed if not keywords.keys().isdisjoint(call.keyword)]
    if calls:
        return Diagnosis(
            Cause.KEYWORD_ACTIVATION,
            f"{where(calls, 'pass')} {names(keywords)} by keyword, so reentrant checkpointing does not see "
            "that it requires grad. Pass it by position.",
            places(calls),
        )
    calls = [call for call in passed if not contained.keys().isdisjoint(call.contained)]
    if not calls:
        return None
    return Diagnosis(
        Cause.CONTAINED_ACTIVATION,
        f"{where(calls, 'pass')} tensors that require grad inside {names(contained)}, where reentrant "
        "checkpointing does not see them. Pass each tensor by position, as a separate argument.",
        places(calls),
    )


def _only_shared(
    comparison: Comparison, keywords: dict[str, None], contained: dict[str, None]
) -> tuple[dict[str, None], dict[str, None]]:
    """Keep only the arguments that pass one tensor to several calls, if there are any."""
    shared = _shared(comparison)
    by_keyword = {
        name: None for call in comparison.run.calls for name, each in call.keyword.items() if each in shared
    }
    inside = {
        name: None
        for call in comparison.run.calls
        for name, each in call.contained.items()
        if shared.intersection(each)
    }
    return (by_keyword, inside) if by_keyword or inside else (keywords, contained)


def _sharing(comparison: Comparison, calls: list[BlockCall]) -> list[BlockCall]:
    """Keep only the calls to which such an argument passes a tensor that others get too, if there are any."""
    shared = _shared(comparison)
    return [call for call in calls if not shared.isdisjoint(_hidden(call))] or calls


def _shared(comparison: Comparison) -> set[int]:
    times = Counter(each for call in comparison.run.calls for each in _hidden(call))
    return {key for key, count in times.items() if count > 1}


def _hidden(call: BlockCall) -> set[int]:
    """Return the tensors that a call gets by keyword or in containers."""
    return {*call.keyword.values(), *(each for inner in call.contained.values() for each in inner)}


def _unseen_activation(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    return None if _is_other_error(failed_checks) else _keyword_activation(comparison, failed_checks)


def _is_other_error(failed_checks: Sequence[FailedCheck]) -> bool:
    """Return whether there is an error that a lost gradient cannot cause."""
    return any(
        "error" in (each.check, each.kind) and not any(sign in each.message for sign in _LOST)
        for each in failed_checks
    )


def _captured_activation(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    seen = [each for each in comparison.checkpoints if each.is_reentrant and each.captured]
    if not seen or not any(sign in each.message for each in failed_checks for sign in _LOST):
        return None
    left = {name for each in seen for name in each.stored}  # By the block itself, in its last run.
    variables = dict.fromkeys(name for each in seen for name in each.captured if name not in left)
    if not variables:
        return None
    lines = places(seen)
    return Diagnosis(
        Cause.CAPTURED_ACTIVATION,
        f"The function that {at(lines, 'checkpoint')} reads {names(variables)}, which is not among its "
        "arguments, so reentrant checkpointing does not see that it requires grad. Pass it by position.",
        lines,
    )


def _hidden_output(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    # If no input requires grad, no output does, whatever contains it.
    seen = [
        each
        for each in comparison.checkpoints
        if each.is_reentrant
        and each.returned_in
        and (AS_TUPLE in each.returned_in if _is_other_error(failed_checks) else each.has_gradient)
    ]
    if not seen:
        return None
    lines = places(seen)
    containers = dict.fromkeys(each.returned_in for each in seen)
    return Diagnosis(
        Cause.NESTED_OUTPUT,
        f"The block that {at(lines, 'run')} returns tensors in {', '.join(containers)}, but reentrant "
        "checkpointing passes gradients only through a tensor or a flat tuple of tensors. Return one of "
        "these.",
        lines,
    )


def _recorded_output(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    if not (comparison.is_reentrant and comparison.gone and comparison.run.conditions.scenario.router_losses):
        return None
    outputs = dict.fromkeys(name.partition(".")[0] for name in comparison.gone)
    return Diagnosis(
        Cause.RECORDED_OUTPUT,
        f"The model returns {names(outputs)} from inside its blocks, where reentrant checkpointing records "
        "no graph, so a loss computed from it has no gradient and nothing balances the experts. Train with "
        "`use_reentrant=False`, or return it from the blocks, in a flat tuple of tensors.",
    )


def _no_input_grads(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    if not comparison.is_reentrant or not any(NO_INPUT in each for each in comparison.run.warnings):
        return None
    lost = [each for each in comparison.checkpoints if each.is_reentrant and not each.has_gradient]
    if lost and all(each.outer is not None for each in lost):
        return None  # Torch warns of checkpoints within others, which record no gradients.
    frozen = (
        ", which `enable_input_require_grads()` does not reach"
        if comparison.run.conditions.scenario.require_input_grads
        else ""
    )
    lines = places(lost)[:1]
    shown = f" at {line(lines[0])}" if lines else ""
    return Diagnosis(
        Cause.NO_INPUT_GRADIENT,
        f"No input of the first blocks{shown} requires grad{frozen} (torch warns about it), so with "
        "reentrant checkpointing nothing inside them receives a gradient. Train with "
        "`use_reentrant=False`, or make the output of the embeddings require grad.",
    )


def _by_message(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    fault = comparison.run.error
    known = [each for part, each in _MESSAGES.items() if fault is not None and part in fault.message]
    if fault is None or not known:
        return None
    place = fault.place_in(comparison.source)
    cause, text = known[0]
    shown = f" See {line(place)}." if place else ""
    return Diagnosis(cause, f"{text}{shown}", (place,) if place else ())


def _no_gradient_at_first(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    if comparison.run.calls and not comparison.run.calls[0].has_gradient:
        return _no_input_grads(comparison, failed_checks)
    return None


MESSAGES = (PossibleCause(frozenset(("error", "frozen base")), _by_message),)
RECORDED = (PossibleCause(GRADIENTS, _recorded_output),)
CACHES = (
    PossibleCause(VALUES | {"cache"}, _positional_cache),
    PossibleCause(VALUES | {"cache"}, _written_cache),
)
LOST = (
    # If a layer's output reaches a later one by keyword, the backward pass recurses endlessly.
    PossibleCause(_DEATHS, _keyword_activation),
    PossibleCause(GRADIENTS | FROZEN, _lost_activation),
    PossibleCause(GRADIENTS | FROZEN, _hidden_output),
    PossibleCause(GRADIENTS | FROZEN, _captured_activation),
)
DICTIONARIES = (PossibleCause(SIDE_EFFECTS, _shared_dictionary),)
UNSEEN = (
    PossibleCause(GRADIENTS | FROZEN, _unseen_activation),
    PossibleCause(GRADIENTS | FROZEN, _no_gradient_at_first),
    PossibleCause(GRADIENTS | FROZEN, _no_input_grads),
)
