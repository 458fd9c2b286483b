"""Causes that make a recomputation differ from the forward pass: each shows what has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.case import Case, Symptom
from gclint.verify.worker.examination.explaining.explanation import (
    COUNTS,
    FROZEN,
    GRADIENTS,
    SIDE_EFFECTS,
    VALUES,
    Explanation,
    PossibleCause,
    checkpoint_at,
    difference,
    first_operation,
    writers,
)
from gclint.verify.worker.examination.inspection.difference import Origin
from gclint.verify.worker.examination.inspection.inspector import Checkpointed, Inspection
from gclint.verify.worker.examination.inspection.readable import Change, Holder
from gclint.verify.worker.examination.words import capitalised, line, names
from gclint.verify.worker.protocol import Place


def _late_binding(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
        changed = [change for change in each.changes if change.holder == "closure"]
        if changed and origin.what in ("module", "path", "input", "argument", "output"):
            variables = names(dict.fromkeys(change.name for change in changed))
            return _explained(
                Cause.LATE_BINDING,
                origin,
                f"`{changed[0].owner}`, the function that {checkpoint_at(each)} is given, reads "
                f"{variables} from the enclosing scope, and the values have changed by the time of the "
                "recomputation: a loop variable has its last value then. Bind each value when the function "
                "is created, or pass it as an argument",
                each,
            )
    return None


def _random_numbers(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
        drawn = [
            change for change in each.changes if change.holder == "generator" and _name(change) in each.drawn
        ]
        if drawn:
            return _explained(
                Cause.RANDOM_NUMBERS,
                origin,
                f"A block draws random numbers from {names(dict.fromkeys(map(_name, drawn)))}, whose state "
                "checkpointing does not restore, so the recomputation draws different ones. Draw them with "
                "torch, without a generator of your own",
                each,
            )
        if not each.preserves_random_state and any(change.name == TORCH for change in each.changes):
            return _explained(
                Cause.RANDOM_NUMBERS,
                origin,
                f"{checkpoint_at(each)} is called with `preserve_rng_state=False`, so the recomputation "
                "draws different random numbers. Remove it",
                each,
            )
    return None


def _random_outside(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    generators = case.run.side_effects.generators
    if not generators or case.divergent is not None:
        return None
    return Explanation(
        Cause.RANDOM_NUMBERS,
        f"The backward pass draws random numbers from {names(generators)}, whose state checkpointing does "
        "not restore. Draw them with torch.",
        tuple(dict.fromkeys(each.place for each in case.checkpoints if each.place)),
    )


def _changed_argument(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
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


def _mode(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for origin in _all_origins(case):
        if origin.question:
            return _explained(
                Cause.GRADIENT_MODE,
                origin,
                f"The model checks {origin.question} at {line(origin.question_stack[0])}, and the answer "
                "differs between the run without checkpointing, the first run in a checkpoint and the "
                "recomputation. Make the result independent of it",
                None,
                origin.question_stack[:1],
            )
    for each, origin in _divergent(case):
        modes = [change for change in each.changes if change.holder == "mode"]
        if modes:
            return _explained(
                Cause.MODE,
                origin,
                f"`training` of {names([change.owner for change in modes])} was {modes[0].before} in the "
                f"forward pass and is {modes[0].now} in the recomputation. Do not switch between training "
                "and evaluation mode before the backward pass",
                each,
            )
    return None


def _autocast(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
        found = [change for change in each.changes if change.holder == "torch" and change.name != TORCH]
        if found:
            change = found[0]
            return _explained(
                Cause.AUTOCAST,
                origin,
                f"{change.name} was {change.before} in the forward pass and is {change.now} in the "
                "recomputation",
                each,
            )
    return None


def _hooks(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
        found = [change for change in each.changes if change.holder == "hook"]
        if found:
            return _explained(
                Cause.FORWARD_HOOK,
                origin,
                f"The forward hooks of {names([change.owner or 'the model' for change in found])} changed "
                "between the forward pass and its recomputation. Keep the hooks until the backward pass is "
                "over",
                each,
            )
    return None


def _attribute(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
        changed = _relevant(each, origin, "attribute")
        if changed:
            return _of_attributes(case, each, origin, changed)
    return None


def _of_attributes(case: Case, each: Checkpointed, origin: Origin, changed: Sequence[Change]) -> Explanation:
    assert case.inspection is not None
    attributes = dict.fromkeys(map(_name, changed))
    first = changed[0]
    values = f", {first.before} in the forward pass and {first.now} now" if first.before and first.now else ""
    return _explained(
        Cause.STATE,
        origin,
        f"The recomputation reads {names(attributes)}, whose value has changed since the forward pass "
        f"began {checkpoint_at(each)}{values}: {_setter(case.inspection, attributes, changed)}. Return such "
        "values or pass them as arguments instead of storing them, or set them outside the checkpointed "
        "code",
        each,
        _set_at(case.inspection, attributes),
    )


def _setter(inspection: Inspection, attributes: dict[str, None], changed: Sequence[Change]) -> str:
    """Return what has set attributes, in words."""
    for name in attributes:
        setting = inspection.settings.get(name)
        if setting is not None:
            who = "a block sets it" if setting.in_checkpoint else "the model sets it outside of checkpoints"
            return f"{who} at {line(setting.place)}"
    owner = changed[0].owner
    return f"something changes it within `{owner}`" if owner else "something changes it in the model"


def _set_at(inspection: Inspection, attributes: dict[str, None]) -> tuple[Place, ...]:
    settings = [inspection.settings[name] for name in attributes if name in inspection.settings]
    return tuple(dict.fromkeys(each.place for each in settings))


_SHARED: dict[Holder, str] = {
    "global": "the variable",
    "class": "the attribute",
    "default": "the default argument",
    "config": "the setting",
}
"""Kinds of state that all blocks share, in words."""


def _global_state(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
        changed = _relevant(each, origin, *_SHARED)
        if changed:
            first = changed[0]
            kind = _SHARED[first.holder]
            values = (
                f", {first.before} in the forward pass and {first.now} now"
                if first.before and first.now
                else ""
            )
            return _explained(
                Cause.GLOBAL_STATE,
                origin,
                f"The recomputation reads {kind} "
                f"{names(dict.fromkeys(change.name for change in changed))} of `{first.owner}`, whose "
                f"value has changed since the forward pass began {checkpoint_at(each)}{values}. Pass it as "
                "an argument",
                each,
            )
    return None


def _other_forward(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    origin = case.forward_origin
    if origin is None:
        return None
    sentence = first_operation(origin, "the pass with it", "the one without")
    if origin.what == "argument" and origin.kind == "module":
        return Explanation(
            Cause.ARGUMENTS,
            f"With checkpointing, the forward pass itself differs: {_swapped(origin)}{sentence}. Make both "
            "calls pass the same arguments.",
            origin.other_stack[:1] + origin.stack[:1],
            difference(origin),
        )
    return Explanation(
        Cause.OTHER_FORWARD,
        f"With checkpointing, the forward pass itself differs: {sentence}. Make both do the same.",
        origin.other_stack[:1] + origin.stack[:1],
        difference(origin),
    )


def _detached(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    cut = case.cut
    if cut is None:
        return None
    return Explanation(
        Cause.DETACHED,
        f"With checkpointing, `{cut.name}` at {line(cut.stack[0])} detaches a tensor from its graph, which "
        "does not happen without. Let the gradient through.",
        cut.stack[:1],
    )


def _swapped(origin: Origin) -> str:
    """Return a sentence about arguments that are passed in another order, if there are any."""
    both = [(one, other) for one, other in origin.inputs if one is not None and other is not None]
    for one, other in both:
        for mine, yours in both:
            if one is not mine and one.digest == yours.digest and mine.digest == other.digest:
                return f"`{one.name}` and `{mine.name}` of `{origin.name}` are swapped; "
    return ""


def _unknown(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
        return _explained(
            Cause.DISAGREEMENT,
            origin,
            f"The code that {checkpoint_at(each)} runs again differs from the forward pass; the cause is "
            "not known",
            each,
            origin.stack[:1],
        )
    rounded = [each.origin for each in case.checkpoints if each.origin is not None]
    if rounded:
        return Explanation(
            Cause.DISAGREEMENT,
            "No operation of the recomputation differs by more than rounding; it uses another kernel: "
            f"{first_operation(rounded[0])}.",
            difference=difference(rounded[0]),
        )
    if case.run.error is not None and case.run.error.kind == "CheckpointError":
        return Explanation(
            Cause.DISAGREEMENT,
            "The recomputation differs from the forward pass: something that it depends on has changed, but "
            "it is not known what.",
        )
    return Explanation(Cause.DISAGREEMENT, "The cause is not known.")


def _divergent(case: Case) -> Iterator[tuple[Checkpointed, Origin]]:
    """Yield the checkpoints whose recomputation differs, and where it begins to differ."""
    for each in case.checkpoints:
        if each.origin is not None and not each.origin.is_rounding:
            yield each, each.origin


def _all_origins(case: Case) -> Iterator[Origin]:
    yield from (origin for _, origin in _divergent(case))
    if case.forward_origin is not None:
        yield case.forward_origin


def _relevant(each: Checkpointed, origin: Origin, *holders: str) -> list[Change]:
    """Return the changes of a kind that the first difference reads, or all if that is unknown."""
    changed = [change for change in each.changes if change.holder in holders]
    seen = {
        (one.digest.key, other.digest.key)
        for one, other in origin.inputs
        if one is not None and other is not None
    }
    held = {one.held for one, _ in origin.inputs if one is not None and one.held}
    return [
        change for change in changed if (change.before_key, change.now_key) in seen or _name(change) in held
    ] or changed


def _name(change: Change) -> str:
    return f"{change.owner}.{change.name}" if change.owner else change.name


def _explained(
    cause: Cause, origin: Origin, text: str, each: Checkpointed | None, lines: tuple[Place, ...] = ()
) -> Explanation:
    shown = lines or ((each.place,) if each is not None and each.place is not None else ())
    return Explanation(cause, f"{text}. {capitalised(first_operation(origin))}.", shown, difference(origin))


TORCH = "the state of torch's random numbers"
CLOSURES = (PossibleCause(VALUES | COUNTS, _late_binding),)
RECOMPUTED = (
    PossibleCause(SIDE_EFFECTS, _random_numbers),
    PossibleCause(SIDE_EFFECTS, _random_outside),
    PossibleCause(SIDE_EFFECTS, _changed_argument),
    PossibleCause(SIDE_EFFECTS, _mode),
    PossibleCause(SIDE_EFFECTS, _autocast),
    PossibleCause(SIDE_EFFECTS, _hooks),
    PossibleCause(SIDE_EFFECTS | {"state"}, _attribute),
    PossibleCause(SIDE_EFFECTS, _global_state),
)
DETACHED = (PossibleCause(GRADIENTS | FROZEN, _detached),)
FORWARD = (PossibleCause(SIDE_EFFECTS, _other_forward),)
UNKNOWN = (PossibleCause(SIDE_EFFECTS, _unknown),)
