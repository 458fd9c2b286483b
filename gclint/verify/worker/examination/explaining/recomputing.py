"""Causes that make a recomputation differ from the forward pass: each shows what has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

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
from gclint.verify.worker.examination.explaining.mentions import ELSEWHERE, ON_LINE, code_at, nearness
from gclint.verify.worker.examination.inspection.difference import CUTS, Origin
from gclint.verify.worker.examination.inspection.inspector import Checkpointed, Setting
from gclint.verify.worker.examination.inspection.readable import TORCH, Change, Holder
from gclint.verify.worker.examination.inspection.tape import HOOKED, Input, events_within
from gclint.verify.worker.examination.words import capitalised, line, names
from gclint.verify.worker.protocol import Place

_SHARED: dict[Holder, str] = {
    "global": "the variable",
    "class": "the attribute",
    "default": "the default argument",
    "config": "the setting",
    "environment": "the environment variable",
    "context": "the context variable",
}
"""Kinds of state that all blocks share, in words."""
_CAUSES: dict[Holder, Cause] = {
    "generator": Cause.RANDOM_NUMBERS,
    "mode": Cause.MODE,
    "torch": Cause.AUTOCAST,
    "module": Cause.STATE,
    "hook": Cause.FORWARD_HOOK,
    "attribute": Cause.STATE,
    "argument": Cause.CHANGED_ARGUMENT,
    "weight": Cause.STATE,
    **dict.fromkeys(_SHARED, Cause.GLOBAL_STATE),
}
"""The causes of changes, those that come first where two are equally near."""
_TEXTS: dict[str, str] = {
    "random": "{checkpoint} is called with `preserve_rng_state=False`, so the recomputation draws different "
    "random numbers. Remove it",
    "generator": "A block draws random numbers from {shown}, whose state checkpointing does not restore, so "
    "the recomputation draws different ones. Draw them with torch, without a generator of your own",
    "mode": "`training` of {owners} was {first.before} in the forward pass and is {first.now} in the "
    "recomputation. Do not switch between training and evaluation mode before the backward pass",
    "torch": "{first.name} was {first.before} in the forward pass and is {first.now} in the recomputation",
    "module": "{owners}: the recomputation runs another module than the forward pass, since {who}. Keep the "
    "modules until the backward pass is over",
    "hook": "The forward hooks of {owners} changed between the forward pass and its recomputation. Keep the "
    "hooks until the backward pass is over",
    "attribute": "The recomputation reads {shown}, {since}: {who}. Return such values or pass them as "
    "arguments instead of storing them, or set them outside the checkpointed code",
    "argument": "The recomputation reads its argument {shown}, {since}: {who}. Pass values that nothing "
    "changes before the backward pass",
    "weight": "The recomputation reads {shown}, whose values, `requires_grad` or hooks have changed since "
    "the forward pass began {checkpoint}: {who}. Leave weights as they are until the backward "
    "pass is over, and do not run the model with others, as by `torch.func.functional_call`",
    "global": "The recomputation reads {shared} {inner}{of}, {since}. Pass it as an argument",
}
"""What to say of a change, by what holds it; all that is shared is told alike."""
_NO_GRAPH = "does not require grad"
_LEFT = (
    "Attributes, arguments, variables, the environment and random numbers are the same. What is left is the "
    "caller, which tensor object it is, files, settings of Python, the time, whether a backward pass runs. "
)
_ORDER = tuple(_CAUSES)
_UNNAMED = frozenset(("mode", "hook", "module", "weight"))
"""What code reads without its name, by the module that has it."""


def _late_binding(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    for each, origin in _divergent(case):
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


def _stored(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    """Return what leaves a reentrant checkpoint without a graph, if all values are as they should be."""
    seen = [each for each in case.checkpoints if each.stored]
    if not seen or any(each.again is None or each.first.outputs != each.again.outputs for each in seen):
        return None
    if case.forward_origin is not None:
        return None
    return Explanation(
        Cause.RECORDED_OUTPUT,
        f"The block leaves tensors in {names(dict.fromkeys(name for each in seen for name in each.stored))}, "
        "and reentrant checkpointing records no gradients when it runs, so what is computed from these has "
        "none. Return them from the block, in a flat tuple of tensors, or train with `use_reentrant=False`.",
        tuple(dict.fromkeys(each.place for each in seen if each.place is not None)),
    )


def _hooked_twice(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    hooked = [
        each
        for one in case.checkpoints
        for each in events_within(one.first)
        if each.name == HOOKED and each.stack
    ]
    if not hooked or case.divergent is not None:
        return None
    lines = tuple(dict.fromkeys(each.stack[0] for each in hooked))
    return Explanation(
        Cause.TENSOR_HOOK,
        f"The checkpointed code registers a hook on a tensor at {' and '.join(map(line, lines))}, and the "
        "recomputation registers it again, so it changes a gradient twice. Register hooks outside the "
        "checkpointed code, or remove them before the backward pass ends.",
        lines,
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
    fault = case.run.error
    if fault is not None and any(
        each.is_reentrant and not each.first.is_complete for each in case.checkpoints
    ):
        place = fault.place_in(case.source)
        if _NO_GRAPH in fault.message and place is not None:
            return Explanation(
                Cause.GRADIENT_MODE,
                f"The checkpointed code computes a gradient itself at {line(place)}, but reentrant "
                "checkpointing records none in the forward pass. Train with `use_reentrant=False`.",
                (place,),
            )
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


def _changed_state(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    """Return what has changed that the recomputation reads, as near to the first difference as possible."""
    for each, origin in _suspects(case):
        changed = _nearest(each, origin, _stack(case, origin))
        if changed:
            text, lines = _told(case, each, changed)
            first = changed[0]
            cause = Cause.RANDOM_NUMBERS if first.name == TORCH else _CAUSES[first.holder]
            return _explained(cause, origin, text, each, lines)
    return None


def _suspects(case: Case) -> Iterator[tuple[Checkpointed, Origin | None]]:
    """Yield the checkpoints whose recomputation differs, or those that may have ended with an error."""
    yield from _divergent(case)
    fault = case.run.error
    if case.divergent is None and fault is not None:
        # Torch compares what is saved only when a recomputation has ended.
        again = [(each, each.again) for each in case.checkpoints if each.again is not None]
        is_torch = fault.kind == "CheckpointError"
        yield from ((each, None) for each, run in again if is_torch or not run.is_complete)


def _stack(case: Case, origin: Origin | None) -> tuple[Place, ...]:
    """Return the lines of the first difference, or that of the error."""
    if origin is not None:
        return (*origin.stack[:1], *origin.other_stack[:1], *origin.stack[1:])
    place = case.run.error.place_in(case.source) if case.run.error is not None else None
    return (place,) if place is not None else ()


def _nearest(each: Checkpointed, origin: Origin | None, stack: tuple[Place, ...]) -> list[Change]:
    """Return the changes of one kind that are read nearest to the first difference."""
    swapped = {change.owner for change in each.changes if change.holder == "module"}
    ranks: dict[tuple[int, int], list[Change]] = {}
    for change in each.changes:
        is_within = change.holder != "module" and any(_is_in(change.owner, owner) for owner in swapped)
        if change.holder in _CAUSES and not is_within and _may_matter(change, each):
            rank = _rank(change, origin, stack)
            if not change.is_new or rank <= ON_LINE:
                ranks.setdefault((rank, _ORDER.index(change.holder)), []).append(change)
    return ranks[min(ranks)] if ranks else []


def _may_matter(change: Change, each: Checkpointed) -> bool:
    if change.holder == "generator":
        return change.place + change.part in each.drawn
    return change.name != TORCH or not each.preserves_random_state


def _rank(change: Change, origin: Origin | None, stack: tuple[Place, ...]) -> int:
    """Return how near to the first difference a change is read; 0 if the difference itself shows it."""
    if origin is not None and any(_shows(change, *pair) for pair in origin.inputs):
        return 0
    is_around = change.holder in _UNNAMED and origin is not None and _is_in(origin.module, change.owner)
    if is_around or change.holder in ("generator", "torch"):
        return ON_LINE
    return ELSEWHERE if change.holder == "mode" else nearness(_words(change), stack)


def _shows(change: Change, one: Input | None, other: Input | None) -> bool:
    given = [each for each in (one, other) if each is not None]
    keys = tuple(each.digest.key for each in given)
    is_value = len(set(keys)) == 2 and keys == (change.before_key, change.now_key)
    return is_value or change.place in [each.held for each in given if each.held]


def _is_in(module: str, owner: str) -> bool:
    return bool(owner) and (module == owner or module.startswith(f"{owner}."))


def _words(change: Change) -> tuple[str, ...]:
    """Return the words by which code reads what has changed."""
    owner = change.owner.rpartition(".")[2]
    if change.holder in _UNNAMED:
        return (owner,)
    return (owner, change.name) if change.holder == "default" else (change.name, change.part)


def _told(case: Case, each: Checkpointed, changed: list[Change]) -> tuple[str, tuple[Place, ...]]:
    """Return the sentences about a change, and the lines that make it."""
    first = changed[0]
    settings = case.inspection.settings if case.inspection is not None else {}
    set_by = [settings[change.place] for change in changed if change.place in settings]
    is_whole = sum(change.place == first.place for change in changed) == 1
    is_known = is_whole and first.before and first.now
    values = f", {first.before} in the forward pass and {first.now} now" if is_known else ""
    template = _TEXTS.get("random" if first.name == TORCH else first.holder, _TEXTS["global"])
    text = template.format(
        shown=names(_named(changed)),
        owners=names(dict.fromkeys(change.owner or "the model" for change in changed)),
        shared=_SHARED.get(first.holder, ""),
        inner=names(_named(replace(change, owner="") for change in changed)),
        of=f" of `{first.owner}`" if first.owner else "",
        since=f"whose value has changed since the forward pass began {checkpoint_at(each)}{values}",
        who=_setter(set_by[0]) if set_by else _who(first),
        checkpoint=checkpoint_at(each),
        first=first,
    )
    return text, tuple(dict.fromkeys(setting.place for setting in set_by))


def _named(changed: Iterable[Change]) -> list[str]:
    """Return what has changed, with the part of it if that is only one."""
    parts: dict[str, list[str]] = {}
    for change in changed:
        parts.setdefault(change.place, []).append(change.part)
    return [place + (inner[0] if len(inner) == 1 else "") for place, inner in parts.items()]


def _setter(setting: Setting) -> str:
    who = "a block sets it" if setting.in_checkpoint else "the model sets it outside of checkpoints"
    return f"{who} at {line(setting.place)}"


def _who(change: Change) -> str:
    if change.holder == "argument" and change.is_gone:
        return "the checkpoint passes on another object, without it"
    return (
        "the block itself changes it" if change.in_block else "something changes it after the block has run"
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
    is_recorded = cut.takes_graph and not cut.has_graph and cut.name not in CUTS
    what = "records no gradient" if is_recorded else "detaches a tensor from its graph"
    return Explanation(
        Cause.DETACHED,
        f"With checkpointing, `{cut.name}` at {line(cut.stack[0])} {what}, which does not happen without. "
        "Let the gradient through.",
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
            f"not known. {'' if each.changes else _LEFT}{_compare(origin.stack)}",
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
    stack = _stack(case, None)
    shown = f" It fails at {line(stack[0])}: `{code_at(stack[0])}`." if stack else ""
    return Explanation(Cause.DISAGREEMENT, f"The cause is not known.{shown}", stack)


def _compare(stack: Sequence[Place]) -> str:
    code = code_at(stack[0]) if stack else ""
    return f"Compare what `{code}` reads in the two passes" if code else "Compare the two passes"


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


def _explained(
    cause: Cause, origin: Origin | None, text: str, each: Checkpointed | None, lines: tuple[Place, ...] = ()
) -> Explanation:
    shown = lines or ((each.place,) if each is not None and each.place is not None else ())
    if origin is None:
        return Explanation(cause, f"{text}.", shown)
    return Explanation(cause, f"{text}. {capitalised(first_operation(origin))}.", shown, difference(origin))


CLOSURES = (PossibleCause(VALUES | COUNTS, _late_binding),)
RECOMPUTED = (
    PossibleCause(GRADIENTS, _stored),
    PossibleCause(GRADIENTS, _hooked_twice),
    PossibleCause(SIDE_EFFECTS, _random_outside),
    PossibleCause(SIDE_EFFECTS, _changed_argument),
    PossibleCause(SIDE_EFFECTS, _gradient_mode),
    PossibleCause(SIDE_EFFECTS | {"state"}, _changed_state),
)
DETACHED = (PossibleCause(GRADIENTS | FROZEN, _detached),)
FORWARD = (PossibleCause(SIDE_EFFECTS, _other_forward),)
UNKNOWN = (PossibleCause(SIDE_EFFECTS, _unknown),)
