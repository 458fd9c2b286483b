"""Causes that make a recomputation differ from the forward pass: each shows what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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

TORCH = "the state of torch's random numbers"
_SHARED: dict[Holder, str] = {
    "global": "the variable",
    "class": "the attribute",
    "default": "the default argument",
    "config": "the setting",
}
"""Kinds of state that all blocks share, in words."""


def _of_changes(
    cause: Cause,
    select: Callable[[Checkpointed, Origin], list[Change]],
    text: Callable[[Checkpointed, list[Change]], str],
) -> Callable[[Case, Sequence[Symptom]], Explanation | None]:
    """Return what finds a cause: changes of what a checkpoint reads, between its two runs."""

    def find(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
        for each, origin in _divergent(case):
            changed = select(each, origin)
            if changed:
                return _explained(cause, origin, text(each, changed), each)
        return None

    return find


def _bound_late(each: Checkpointed, origin: Origin) -> list[Change]:
    is_explained = origin.what in ("module", "path", "input", "argument", "output")
    return _held(each, "closure") if is_explained else []


_late_binding = _of_changes(
    Cause.LATE_BINDING,
    _bound_late,
    lambda each, changed: (
        f"`{changed[0].owner}`, the function that {checkpoint_at(each)} is given, reads "
        f"{names(dict.fromkeys(change.name for change in changed))} from the enclosing scope, and the values "
        "have changed by the time of the recomputation: a loop variable has its last value then. Bind each "
        "value when the function is created, or pass it as an argument"
    ),
)


def _drawn(each: Checkpointed, _origin: Origin) -> list[Change]:
    drawn = [change for change in _held(each, "generator") if _name(change) in each.drawn]
    return drawn or [
        change for change in each.changes if change.name == TORCH and not each.preserves_random_state
    ]


def _draws(each: Checkpointed, changed: list[Change]) -> str:
    if changed[0].holder != "generator":
        return (
            f"{checkpoint_at(each)} is called with `preserve_rng_state=False`, so the recomputation "
            "draws different random numbers. Remove it"
        )
    return (
        f"A block draws random numbers from {names(dict.fromkeys(map(_name, changed)))}, whose state "
        "checkpointing does not restore, so the recomputation draws different ones. Draw them with "
        "torch, without a generator of your own"
    )


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


def _gradient_mode(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
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
    return None


_mode = _of_changes(
    Cause.MODE,
    lambda each, _: _held(each, "mode"),
    lambda _, changed: (
        f"`training` of {names([change.owner for change in changed])} was {changed[0].before} in the "
        f"forward pass and is {changed[0].now} in the recomputation. Do not switch between training "
        "and evaluation mode before the backward pass"
    ),
)
_autocast = _of_changes(
    Cause.AUTOCAST,
    lambda each, _: [change for change in _held(each, "torch") if change.name != TORCH],
    lambda _, changed: (
        f"{changed[0].name} was {changed[0].before} in the forward pass and is {changed[0].now} in the "
        "recomputation"
    ),
)
_hooks = _of_changes(
    Cause.FORWARD_HOOK,
    lambda each, _: _held(each, "hook"),
    lambda _, changed: (
        f"The forward hooks of {names([change.owner or 'the model' for change in changed])} changed between "
        "the forward pass and its recomputation. Keep the hooks until the backward pass is over"
    ),
)


def _attribute(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
        changed = _relevant(each, origin, "attribute")
        if changed and case.inspection is not None:
            attributes = dict.fromkeys(map(_name, changed))
            return _explained(
                Cause.STATE,
                origin,
                f"The recomputation reads {names(attributes)}, whose value has changed since the forward "
                f"pass began {checkpoint_at(each)}{_values(changed[0])}: "
                f"{_setter(case.inspection, attributes, changed)}. Return such values or pass them as "
                "arguments instead of storing them, or set them outside the checkpointed code",
                each,
                _set_at(case.inspection, attributes),
            )
    return None


def _values(change: Change) -> str:
    both = change.before and change.now
    return f", {change.before} in the forward pass and {change.now} now" if both else ""


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


_global_state = _of_changes(
    Cause.GLOBAL_STATE,
    lambda each, origin: _relevant(each, origin, *_SHARED),
    lambda each, changed: (
        f"The recomputation reads {_SHARED[changed[0].holder]} "
        f"{names(dict.fromkeys(change.name for change in changed))} of `{changed[0].owner}`, whose value has "
        f"changed since the forward pass began {checkpoint_at(each)}{_values(changed[0])}. Pass it as an "
        "argument"
    ),
)


def _other_forward(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    origin = case.forward_origin
    if origin is None:
        return None
    is_called_otherwise = origin.what == "argument" and origin.kind == "module"
    cause, swapped, advice = (
        (Cause.ARGUMENTS, _swapped(origin), "Make both calls pass the same arguments")
        if is_called_otherwise
        else (Cause.OTHER_FORWARD, "", "Make both do the same")
    )
    return Explanation(
        cause,
        f"With checkpointing, the forward pass itself differs: {swapped}"
        f"{first_operation(origin, 'the pass with it', 'the one without')}. {advice}.",
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


def _held(each: Checkpointed, *holders: str) -> list[Change]:
    return [change for change in each.changes if change.holder in holders]


def _relevant(each: Checkpointed, origin: Origin, *holders: str) -> list[Change]:
    """Return the changes of a kind that the first difference reads, or all if that is unknown."""
    changed = _held(each, *holders)
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


CLOSURES = (PossibleCause(VALUES | COUNTS, _late_binding),)
RECOMPUTED = (
    PossibleCause(SIDE_EFFECTS, _of_changes(Cause.RANDOM_NUMBERS, _drawn, _draws)),
    PossibleCause(SIDE_EFFECTS, _random_outside),
    PossibleCause(SIDE_EFFECTS, _changed_argument),
    PossibleCause(SIDE_EFFECTS, _gradient_mode),
    PossibleCause(SIDE_EFFECTS, _mode),
    PossibleCause(SIDE_EFFECTS, _autocast),
    PossibleCause(SIDE_EFFECTS, _hooks),
    PossibleCause(SIDE_EFFECTS | {"state"}, _attribute),
    PossibleCause(SIDE_EFFECTS, _global_state),
)
DETACHED = (PossibleCause(GRADIENTS | FROZEN, _detached),)
FORWARD = (PossibleCause(SIDE_EFFECTS, _other_forward),)
UNKNOWN = (PossibleCause(SIDE_EFFECTS, _unknown),)
