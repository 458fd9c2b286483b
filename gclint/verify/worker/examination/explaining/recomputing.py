"""Causes that make a recomputation differ from the forward pass: each shows what has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
from gclint.verify.worker.examination.explaining.explanation import (
    COUNTS,
    FROZEN,
    GRADIENTS,
    SIDE_EFFECTS,
    VALUES,
    Diagnosis,
    PossibleCause,
    checkpoint_at,
    difference,
    first_operation,
    places,
    writers,
)
from gclint.verify.worker.examination.explaining.mentions import (
    IN_CALLED,
    ON_LINE,
    code_at,
    handler_of,
    nearness,
)
from gclint.verify.worker.examination.explaining.state_changes import (
    CAUSES,
    described_change,
    left_behind,
    named,
    nearest,
    setters,
    stack_of,
)
from gclint.verify.worker.examination.inspection.difference import CUTS, FirstDifference
from gclint.verify.worker.examination.inspection.inspector import Checkpointed
from gclint.verify.worker.examination.inspection.readable import TORCH
from gclint.verify.worker.examination.inspection.tape import IDENTITY, events_within
from gclint.verify.worker.examination.phrases import capitalised, line, names, without_package
from gclint.verify.worker.protocol import SourcePlace

_MOST_BRANCHES = 3
_NO_GRAPH = "does not require grad"
_UNCOMPARED = {
    "the variables of its callers": ("_getframe", "currentframe"),
    "files": ("open", "read_text", "read_bytes"),
    "the time": ("perf_counter", "monotonic", "time_ns"),
}
"""What a recomputation may read that is not compared, with the words by which code does so."""
_COMPARED = (
    "What was compared is the same{but}: attributes of modules, arguments, variables of the model's code, "
    "the environment, random numbers. "
)
_LEFT = (
    "What is left is variables of other packages, contexts and modes around "
    "the loop, the caller, which tensor object it is, files, settings of Python, the time, and whether a "
    "backward pass runs. "
)


def _late_binding(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    for each, origin in _divergent(comparison):
        changed = [change for change in each.changes if change.holder == "closure"]
        if changed and origin.what in ("module", "path", "input", "argument", "output"):
            return _explained(
                Cause.LATE_BINDING,
                origin,
                f"`{changed[0].owner}`, the function that {checkpoint_at(each)} is given, reads "
                f"{names(dict.fromkeys(change.name for change in changed))} from the enclosing scope, and "
                "the values have changed by the time of the recomputation: a loop variable has its last "
                "value then. Bind each value when the function is created, or pass it as an argument",
                each,
            )
    return None


def _stored(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    """Return what leaves a reentrant checkpoint without a graph, if all values are as they should be."""
    seen = [each for each in comparison.checkpoints if each.stored]
    if not seen or any(each.again is None or each.first.outputs != each.again.outputs for each in seen):
        return None
    if comparison.forward_origin is not None:
        return None
    return Diagnosis(
        Cause.RECORDED_OUTPUT,
        f"The block leaves tensors in {names(dict.fromkeys(name for each in seen for name in each.stored))}, "
        "and reentrant checkpointing records no gradients when it runs, so what is computed from these has "
        "none. Return them from the block, in a flat tuple of tensors, or train with `use_reentrant=False`.",
        places(seen),
    )


def _hooked_twice(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    lines = comparison.inspection.hooks if comparison.inspection is not None else ()
    if not lines or comparison.divergent is not None:
        return None
    return Diagnosis(
        Cause.TENSOR_HOOK,
        f"The checkpointed code registers a hook at {' and '.join(map(line, lines))}, and the "
        "recomputation registers it again, so it changes a gradient twice. Register hooks outside the "
        "checkpointed code, or remove them before the backward pass ends.",
        lines,
    )


def _random_outside(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    generators = comparison.run.side_effects.generators
    if not generators or comparison.divergent is not None:
        return None
    return Diagnosis(
        Cause.RANDOM_NUMBERS,
        f"The backward pass draws random numbers from {names(generators)}, whose state checkpointing does "
        "not restore. Draw them with torch.",
        tuple(dict.fromkeys(each.place for each in comparison.checkpoints if each.place)),
    )


def _changed_argument(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    for each, origin in _divergent(comparison):
        if origin.kind != "checkpoint" and not (each.modified and origin.what in ("argument", "input")):
            continue
        positions = [one.name for one, _ in origin.inputs if one is not None]
        changed = [name for name in each.modified if name in positions] or list(each.modified)
        if changed:
            lines = tuple(dict.fromkeys(place for name in changed for place in writers(each.first, name)))
            shown = f" at {' and '.join(map(line, lines))}" if lines else ""
            return _explained(
                Cause.CHANGED_ARGUMENT,
                origin,
                f"The code that {checkpoint_at(each)} runs changes its argument {', '.join(changed)} in "
                f"place{shown}, so the recomputation starts from other values than the forward pass. Work "
                "on a copy",
                each,
                lines,
            )
    return None


def _caught(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    """Return the exception that is caught, if it ends a block, or is torch's own."""
    for each in comparison.checkpoints:
        if each.stopped_at:
            place = next(filter(None, map(handler_of, each.stopped_at)), each.stopped_at[0])
            return Diagnosis(
                Cause.CAUGHT,
                f"Torch ends a recomputation by an exception once it has all that it needs, and the code at "
                f"{line(place)} catches it and goes on. Catch only the exceptions that are meant.",
                (place,),
            )
        if each.is_reentrant and not each.first.is_complete and comparison.run.error is None:
            return Diagnosis(
                Cause.CAUGHT,
                f"The code that {checkpoint_at(each)} runs ends with an exception, which the model catches: "
                "reentrant checkpointing gives a graph only to what is returned. Return what the exception "
                "holds, or train with `use_reentrant=False`.",
                places([each]),
            )
    return None


def _gradient_mode(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    fault = comparison.run.error
    if fault is not None and any(
        each.is_reentrant and not each.first.is_complete for each in comparison.checkpoints
    ):
        place = fault.place_in(comparison.source)
        if _NO_GRAPH in fault.message and place is not None:
            return Diagnosis(
                Cause.GRADIENT_MODE,
                f"The checkpointed code computes a gradient itself at {line(place)}, but reentrant "
                "checkpointing records none in the forward pass. Train with `use_reentrant=False`.",
                (place,),
            )
    for origin in _all_origins(comparison):
        if origin is comparison.forward_origin and origin.question == IDENTITY:
            continue
        if origin.question and not _is_beside(comparison, origin):
            return _explained(
                Cause.GRADIENT_MODE,
                origin,
                f"The model checks {origin.question} at {line(origin.question_stack[0])}, and the answer "
                "differs between the run without checkpointing, the first run in a checkpoint and the "
                "recomputation. Make the result independent of it",
                None,
                origin.question_stack[:1],
            )
    return None


def _is_beside(comparison: Comparison, origin: FirstDifference) -> bool:
    """Return whether the line that first differs does not ask, but reads what has changed."""
    if origin.stack and origin.stack[0] in origin.question_stack:
        return False
    farthest = IN_CALLED if origin.is_asked_elsewhere else ON_LINE
    return any(
        not change.is_cache
        for each, other in _divergent(comparison)
        if other is origin
        for change in nearest(each, origin, stack_of(comparison, origin), farthest)
    )


def _changed_state(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    """Return what has changed that the recomputation reads, as near to the first difference as possible."""
    for each, origin in _suspects(comparison):
        changed = nearest(each, origin, stack_of(comparison, origin) or each.lines)
        if changed:
            text, lines = described_change(each, changed)
            first = changed[0]
            cause = Cause.RANDOM_NUMBERS if first.name == TORCH else CAUSES[first.holder]
            return _explained(cause, origin, text, each, lines)
    return None


def _trained_otherwise(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    """Return the weights with a wrong gradient that have other hooks or are trained, but the same values.

    Or return the context in which a gradient was computed otherwise.
    """
    wrong = {name for each in failed_checks for name in each.parameters}
    for each in comparison.checkpoints if comparison.divergent is None else ():
        changed = [
            change
            for change in each.changes
            if (change.holder == "weight" and change.before_key == change.now_key and change.place in wrong)
            or change.holder == "context"
        ][:1]
        if changed:
            text, lines = described_change(each, changed)
            return _explained(CAUSES[changed[0].holder], None, text, each, lines)
    return None


def _other_module(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    """Return what makes a recomputation run another module, so that both are counted wrongly."""
    is_other = any(origin.what == "module" for _, origin in _divergent(comparison))
    return _changed_state(comparison, failed_checks) if is_other else None


def _suspects(comparison: Comparison) -> Iterator[tuple[Checkpointed, FirstDifference | None]]:
    """Yield the checkpoints whose recomputation differs, or those that may have ended with an error."""
    yield from _divergent(comparison)
    fault = comparison.run.error
    if comparison.divergent is None and fault is not None:
        # Torch compares what is saved only when a recomputation has ended.
        again = [(each, each.again) for each in comparison.checkpoints if each.again is not None]
        is_torch = fault.kind == "CheckpointError"
        yield from ((each, None) for each, run in again if is_torch or not run.is_complete)


def _other_forward(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    origin = comparison.forward_origin
    if origin is None:
        return None
    is_called_otherwise = origin.what == "argument" and origin.kind == "module"
    cause, swapped, advice = (
        (Cause.ARGUMENTS, _swapped(origin), "Make both calls pass the same arguments")
        if is_called_otherwise
        else (Cause.OTHER_FORWARD, "", "Make both do the same")
    )
    return Diagnosis(
        cause,
        f"With checkpointing, the forward pass itself differs: {swapped}"
        f"{first_operation(origin, 'the pass with it', 'the one without')}. {advice}.",
        origin.other_stack[:1] + origin.stack[:1],
        difference(origin),
    )


def _detached(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    cut = comparison.cut
    if cut is None:
        return None
    again = [each for each in comparison.checkpoints if each.again and cut in events_within(each.again)]
    for each in again:
        changed = nearest(each, None, cut.stack)
        if changed:
            text, lines = described_change(each, changed)
            return _explained(CAUSES[changed[0].holder], None, text, each, lines)
    if cut.name in CUTS and not any(_is_in(cut.stack[0], each) for each, _ in comparison.only_with):
        return None  # The plain run may do so, too.
    is_recorded = cut.takes_graph and not cut.has_graph and cut.name not in CUTS
    what = "records no gradient" if is_recorded else "detaches a tensor from its graph"
    return Diagnosis(
        Cause.DETACHED,
        f"With checkpointing, `{cut.name}` at {line(cut.stack[0])} {what}, which does not happen without. "
        "Let the gradient through.",
        cut.stack[:1],
    )


def _is_in(place: SourcePlace, lines: SourcePlace) -> bool:
    return place.path == lines.path and lines.line <= place.line <= lines.end_line


def _swapped(origin: FirstDifference) -> str:
    """Return a sentence about arguments that are passed in another order, if there are any."""
    both = [(one, other) for one, other in origin.inputs if one is not None and other is not None]
    for one, other in both:
        for mine, yours in both:
            if one is not mine and one.digest == yours.digest and mine.digest == other.digest:
                return f"`{one.name}` and `{mine.name}` of `{origin.name}` are swapped; "
    return ""


def _left_behind(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    """Return what a later step begins with that recomputation has changed once more."""
    changed = left_behind(comparison, failed_checks)
    if not changed:
        return None
    lines = tuple(dict.fromkeys(each.place for each in setters(changed)))
    read = without_package(names(named(changed)))
    shown = f" at {' and '.join(map(line, lines))}" if lines else ""
    return Diagnosis(
        CAUSES[changed[0].holder],
        f"The checkpointed code reads {read} and changes it{shown}, and the recomputation changes it again, "
        "so the next step begins with another value. Pass it as an argument, or change it outside the "
        "checkpointed code.",
        lines,
    )


def _detour(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    """Return where a recomputation comes to the same values in another way, so that gradients may differ."""
    if comparison.divergent is not None or not comparison.is_shown:
        return None
    for each in comparison.checkpoints:
        if each.origin is not None and each.origin.what in ("path", "module"):
            changed = nearest(each, each.origin, stack_of(comparison, each.origin))
            if changed:
                text, lines = described_change(each, changed)
                return _explained(CAUSES[changed[0].holder], each.origin, text, each, lines)
            return _explained(
                Cause.DISAGREEMENT,
                each.origin,
                "The recomputation comes to the values of the forward pass in another way, so gradients flow "
                "otherwise. Let both run the same operations",
                each,
                stack_of(comparison, each.origin)[:1],
            )
    return None


def _unknown(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> Diagnosis | None:
    for each, origin in _divergent(comparison):
        return _explained(
            Cause.DISAGREEMENT,
            origin,
            f"The code that {checkpoint_at(each)} runs again differs from the forward pass; the cause is "
            f"not known. {_COMPARED.format(but=_meanwhile(each))}"
            f"{_uncompared(stack_of(comparison, origin))}{_branches(comparison)}{_compare(origin.stack)}",
            each,
            origin.stack[:1],
        )
    if not comparison.is_shown:
        return Diagnosis(
            Cause.DISAGREEMENT,
            "It fails only while nothing else holds what the model computes: with all of it held, the same "
            "run is right. Something is read by a weak reference, by `id()`, or when an object is deleted; "
            "let the code hold what it reads.",
        )
    origins = [each.origin for each in comparison.checkpoints if each.origin is not None]
    rounded = [each for each in origins if each.what not in ("path", "module")]
    if rounded:
        return Diagnosis(
            Cause.DISAGREEMENT,
            "No operation of the recomputation differs by more than rounding; it uses another kernel: "
            f"{first_operation(rounded[0])}.",
            difference=difference(rounded[0]),
        )
    if comparison.run.error is not None and comparison.run.error.kind == "CheckpointError":
        return Diagnosis(
            Cause.DISAGREEMENT,
            "The recomputation differs from the forward pass: something that it depends on has changed, but "
            f"it is not known what. {_branches(comparison)}".rstrip(),
        )
    is_same = (
        comparison.plain is not None and comparison.forward_origin is None and comparison.run.error is None
    )
    if is_same and comparison.checkpoints and all(each.again is not None for each in comparison.checkpoints):
        return _alike(comparison, {each.check for each in failed_checks})
    stack = stack_of(comparison, None)
    shown = f" It fails at {line(stack[0])}: `{code_at(stack[0])}`." if stack else ""
    text = f"The cause is not known.{shown} {_branches(comparison)}".rstrip()
    return Diagnosis(Cause.DISAGREEMENT, text, stack)


def _uncompared(stack: Sequence[SourcePlace]) -> str:
    """Return what may have changed that is not compared: what the code there names, or all of it."""
    named = [
        (word, what)
        for what, words in _UNCOMPARED.items()
        for word in words
        if nearness((word,), stack) <= IN_CALLED
    ]
    if not named:
        return _LEFT
    shown = " and ".join(f"`{word}`, so it may read {what}" for word, what in named)
    return f"What runs there names {shown}, which is not compared. "


def _branches(comparison: Comparison) -> str:
    """Return sentences about what runs in only one of the modes."""
    modes = (("with", comparison.only_with), ("without", comparison.only_without))
    found = [(place, how) for how, branches in modes for place, is_own in branches if is_own]
    return "".join(
        f"`{code_at(place)}` at {line(place)} runs only {how} checkpointing. "
        for place, how in found[:_MOST_BRANCHES]
    )


def _meanwhile(each: Checkpointed) -> str:
    changed = without_package(names(named(change for change in each.changes if change.holder in CAUSES)))
    return f", but for {changed}, which is not seen to be read there" if changed else ""


def _alike(comparison: Comparison, failed: Set[str]) -> Diagnosis:
    """Return what may be wrong where a recomputation is the same as the forward pass."""
    changed = [change for each in comparison.checkpoints for change in each.changes if change.in_block]
    state = (
        f" The block changes {without_package(names(named(changed)))}, and its recomputation does so again."
        if changed
        else ""
    )
    if "second step" in failed:
        why = (
            "In the first step, all is the same. Recomputation changes something that a later step reads and "
            "that is not compared: see variables of other packages, and settings of Python and torch"
        )
    elif not failed.isdisjoint(("loss", "outputs")):
        why = "The operations of the forward pass are the same, and what it returns is not"
        if not _branches(comparison):
            why += (
                ". The cause is not known: see what depends on other objects, such as how many there are, "
                "and on other packages"
            )
    else:
        why = (
            "The recomputation is the same as the forward pass, so it is the backward pass that reads or "
            "does something else: see hooks, `.grad` that is read or set, and autograd functions"
        )
    return Diagnosis(
        Cause.DISAGREEMENT,
        f"{why}.{state} {_branches(comparison)}".rstrip(),
        tuple(dict.fromkeys(each.place for each in comparison.checkpoints if each.place is not None)),
    )


def _compare(stack: Sequence[SourcePlace]) -> str:
    code = code_at(stack[0]) if stack else ""
    return f"Compare what `{code}` reads in the two passes" if code else "Compare the two passes"


def _divergent(comparison: Comparison) -> Iterator[tuple[Checkpointed, FirstDifference]]:
    """Yield the checkpoints whose recomputation differs, and where it begins to differ."""
    for each in comparison.checkpoints:
        if each.origin is not None and not each.origin.is_rounding:
            yield each, each.origin


def _all_origins(comparison: Comparison) -> Iterator[FirstDifference]:
    yield from (origin for _, origin in _divergent(comparison))
    if comparison.forward_origin is not None:
        yield comparison.forward_origin


def _explained(
    cause: Cause,
    origin: FirstDifference | None,
    text: str,
    each: Checkpointed | None,
    lines: tuple[SourcePlace, ...] = (),
) -> Diagnosis:
    shown = lines or ((each.place,) if each is not None and each.place is not None else ())
    if origin is None:
        return Diagnosis(cause, f"{text}.", shown)
    return Diagnosis(cause, f"{text}. {capitalised(first_operation(origin))}.", shown, difference(origin))


CLOSURES = (PossibleCause(VALUES | COUNTS, _late_binding),)
RECOMPUTED = (
    PossibleCause(GRADIENTS | FROZEN, _caught),
    PossibleCause(GRADIENTS, _stored),
    PossibleCause(GRADIENTS, _hooked_twice),
    PossibleCause(SIDE_EFFECTS, _random_outside),
    PossibleCause(SIDE_EFFECTS, _changed_argument),
    PossibleCause(SIDE_EFFECTS, _gradient_mode),
    PossibleCause(SIDE_EFFECTS | COUNTS, _other_module),
    PossibleCause(SIDE_EFFECTS | {"state"}, _changed_state),
    PossibleCause(GRADIENTS | FROZEN, _trained_otherwise),
)
DETACHED = (PossibleCause(GRADIENTS | FROZEN, _detached),)
FORWARD = (PossibleCause(SIDE_EFFECTS, _other_forward),)
LEFT_BEHIND = (PossibleCause(frozenset(("state", "second step")), _left_behind),)
UNKNOWN = (PossibleCause(GRADIENTS | FROZEN, _detour), PossibleCause(SIDE_EFFECTS, _unknown))
