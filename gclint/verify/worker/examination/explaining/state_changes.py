"""What has changed before a recomputation: which of it is read nearest to the first difference, in words."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.comparison import Comparison, FailedCheck
from gclint.verify.worker.examination.explaining.explanation import checkpoint_at
from gclint.verify.worker.examination.explaining.mentions import ELSEWHERE, IN_CALLED, ON_LINE, nearness
from gclint.verify.worker.examination.inspection.difference import FirstDifference
from gclint.verify.worker.examination.inspection.inspector import Checkpointed
from gclint.verify.worker.examination.inspection.readable import (
    SAVING,
    TORCH,
    AttributeAssignment,
    Holder,
    StateChange,
)
from gclint.verify.worker.examination.inspection.tape import Input
from gclint.verify.worker.examination.phrases import line, names, without_package
from gclint.verify.worker.protocol import SourcePlace

_SHARED: dict[Holder, str] = {
    "global": "the variable",
    "class": "the attribute",
    "default": "the default argument",
    "config": "the setting",
    "environment": "the environment variable",
}
"""Kinds of state that all blocks share, in words."""

CAUSES: dict[Holder, Cause] = {
    "generator": Cause.RANDOM_NUMBERS,
    "mode": Cause.MODE,
    "torch": Cause.AUTOCAST,
    "module": Cause.STATE,
    "hook": Cause.FORWARD_HOOK,
    "attribute": Cause.STATE,
    "unnamed": Cause.STATE,
    "argument": Cause.CHANGED_ARGUMENT,
    "weight": Cause.STATE,
    **dict.fromkeys(_SHARED, Cause.GLOBAL_STATE),
    "context": Cause.CONTEXT,
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
    "context": "{first.name} around the layers were {first.before} in the forward pass and are {first.now} "
    "in the recomputation. Enter such a context within the checkpointed code",
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

_TEXTS["unnamed"] = _TEXTS["attribute"]
_ORDER = tuple(CAUSES)

_UNNAMED = frozenset(("mode", "hook", "module", "weight", "unnamed"))
"""What code reads without its name, by the module that has it."""


def nearest(
    each: Checkpointed,
    origin: FirstDifference | None,
    stack: tuple[SourcePlace, ...],
    farthest: int = IN_CALLED,
) -> list[StateChange]:
    """Return the changes of one kind that are read nearest to the first difference."""
    swapped = {change.owner for change in each.changes if change.holder == "module"}
    ranks: dict[tuple[int, int], list[StateChange]] = {}
    for change in each.changes:
        is_within = change.holder != "module" and any(_is_in(change.owner, owner) for owner in swapped)
        if change.holder in CAUSES and not is_within and _may_matter(change, each):
            rank = _rank(change, each, origin, stack)
            if not change.is_new or rank <= ON_LINE:
                ranks.setdefault((rank, _ORDER.index(change.holder)), []).append(change)
    best = min(ranks, default=(ELSEWHERE, 0))
    return ranks[best] if best[0] <= farthest else []


def stack_of(comparison: Comparison, origin: FirstDifference | None) -> tuple[SourcePlace, ...]:
    """Return the lines of the first difference, or that of the error."""
    if origin is not None:
        return (*origin.stack[:1], *origin.other_stack[:1], *origin.stack[1:])
    place = comparison.run.error.place_in(comparison.source) if comparison.run.error is not None else None
    return (place,) if place is not None else ()


def _may_matter(change: StateChange, each: Checkpointed) -> bool:
    if change.holder == "generator":
        return change.place + change.part in each.drawn or (change.is_new and change.in_block)
    if change.holder == "argument":
        # A checkpoint's arguments are saved tensors as well.
        return all(other.name != SAVING for other in each.changes)
    return change.name != TORCH or not each.preserves_random_state


def _rank(
    change: StateChange, each: Checkpointed, origin: FirstDifference | None, stack: tuple[SourcePlace, ...]
) -> int:
    """Return how near to the first difference a change is read; 0 if the difference itself shows it."""
    if origin is not None and any(_shows(change, *pair) for pair in origin.inputs):
        return 0
    # Without a first difference, all that runs in the checkpoint is as near.
    is_around = any(_is_in(change.owner, module) for module in each.modules)
    if origin is not None:
        is_around = _is_in(origin.module, change.owner)
    if (is_around and change.holder in _UNNAMED) or change.holder in ("generator", "torch", "context"):
        return ON_LINE
    path = getattr(sys.modules.get(change.owner), "__file__", "") or ""
    return ELSEWHERE if change.holder == "mode" else nearness(_words(change), stack, path)


def _shows(change: StateChange, one: Input | None, other: Input | None) -> bool:
    given = [each for each in (one, other) if each is not None]
    keys = tuple(each.digest.key for each in given)
    is_value = len(set(keys)) == 2 and keys == (change.before_key, change.now_key)
    return is_value or change.place in [each.held for each in given if each.held]


def _is_in(module: str, owner: str) -> bool:
    return bool(owner) and (module == owner or module.startswith(f"{owner}."))


def _words(change: StateChange) -> tuple[str, ...]:
    """Return the words by which code reads what has changed."""
    owner = change.owner.rpartition(".")[2]
    if change.holder in _UNNAMED:
        return (owner,)
    return (owner, change.name) if change.holder == "default" else (change.name, change.part)


def described_change(each: Checkpointed, changed: list[StateChange]) -> tuple[str, tuple[SourcePlace, ...]]:
    """Return the sentences about a change, and the lines that make it."""
    first = changed[0]
    set_by = setters(changed)
    is_whole = sum(change.place == first.place for change in changed) == 1
    is_known = is_whole and first.before and first.now
    values = f", {first.before} in the forward pass and {first.now} now" if is_known else ""
    holder = "attribute" if first.holder == "weight" and first.part else first.holder
    template = _TEXTS.get("random" if first.name == TORCH else holder, _TEXTS["global"])
    text = template.format(
        shown=names(named(changed)),
        owners=names(dict.fromkeys(change.owner or "the model" for change in changed)),
        shared=_SHARED.get(first.holder, ""),
        inner=names(named(replace(change, owner="") for change in changed)),
        of=f" of `{first.owner}`" if first.owner else "",
        since=f"whose value has changed since the forward pass began {checkpoint_at(each)}{values}",
        who=_setter(set_by[0]) if set_by else _who(first),
        checkpoint=checkpoint_at(each),
        first=first,
    )
    return without_package(text), tuple(dict.fromkeys(setting.place for setting in set_by))


def setters(changed: Iterable[StateChange]) -> list[AttributeAssignment]:
    """Return what sets the attributes that have changed, as far as it was seen."""
    return [change.set_by for change in changed if change.set_by is not None]


def left_behind(comparison: Comparison, failed_checks: Sequence[FailedCheck]) -> list[StateChange]:
    """Return what a block reads and changes, and its recomputation again, if only later steps are wrong."""
    if comparison.divergent is not None or all(each.check != "second step" for each in failed_checks):
        return []
    own = [
        replace(each, changes=tuple(change for change in each.changes if change.in_block))
        for each in comparison.checkpoints
    ]
    return next(filter(None, (nearest(each, None, each.lines) for each in own)), [])


def named(changed: Iterable[StateChange]) -> list[str]:
    """Return what has changed, with the part of it if that is only one."""
    parts: dict[str, list[str]] = {}
    for change in changed:
        parts.setdefault(change.place, []).append(change.part)
    return [place + (inner[0] if len(inner) == 1 else "") for place, inner in parts.items()]


def _setter(setting: AttributeAssignment) -> str:
    who = "a block sets it" if setting.in_checkpoint else "the model sets it outside of checkpoints"
    return f"{who} at {line(setting.place)}"


def _who(change: StateChange) -> str:
    if change.holder == "argument" and change.is_gone:
        return "the checkpoint passes on another object, without it"
    return (
        "the block itself changes it" if change.in_block else "something changes it after the block has run"
    )
