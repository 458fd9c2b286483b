"""Why checks fail: symptoms of one cause become one failure that says what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gclint.verify.worker.cause import Cause
from gclint.verify.worker.examination.case import Case, Symptom
from gclint.verify.worker.examination.trace import Call
from gclint.verify.worker.examination.words import line, names
from gclint.verify.worker.protocol import Failure, Place

_DEATHS = frozenset(("time limit", "memory limit", "crash"))
_VALUES = frozenset(("error", "missing gradients", "gradients", "loss", "outputs", "second step"))
_GRADIENTS = frozenset(("error", "missing gradients", "gradients", "second step", "warning"))
_FROZEN = frozenset(("frozen base",))
_SIDE_EFFECTS = _VALUES | _FROZEN
_NO_INPUT = "None of the inputs have requires_grad"


@dataclass(frozen=True)
class Explanation:
    """What symptoms come from."""

    cause: Cause | None
    text: str = ""
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class _Suspect:
    explains: frozenset[str]
    """The checks whose failures it may be the cause of."""
    find: Callable[[Case, Sequence[Symptom]], Explanation | None]


def diagnose(case: Case, symptoms: Iterable[Symptom]) -> list[Failure]:
    """Return the failures that the symptoms amount to.

    Args:
        case: what the checks have seen.
        symptoms: what they found, the gravest first.
    """
    return [_failure(case, group, explanation) for group, explanation in explained(case, symptoms)]


def explained(case: Case, symptoms: Iterable[Symptom]) -> list[tuple[list[Symptom], Explanation]]:
    """Return the symptoms in groups of one cause each, with what it is."""
    left = list(symptoms)
    found = []
    for suspect in _SUSPECTS:
        group = [each for each in left if each.check in suspect.explains]
        explanation = suspect.find(case, group) if group else None
        if explanation is not None:
            left = [each for each in left if each not in group]
            found.append((group, explanation))
    return found + [([each], Explanation(each.cause)) for each in left]


def _failure(case: Case, symptoms: Sequence[Symptom], explanation: Explanation) -> Failure:
    first, *others = symptoms
    blocks = {name for each in symptoms for name in each.blocks}
    return Failure(
        first.check,
        case.run.mode,
        case.run.conditions.scenario.name,
        "; ".join([first.message, *(each.message for each in others)]),
        tuple(dict.fromkeys(name for each in symptoms for name in each.parameters)),
        explanation.places
        or tuple(dict.fromkeys(place for each in symptoms for place in each.places))
        or _places(call for call in case.run.calls if call.block in blocks),
        explanation.cause,
        explanation.text[:1].upper() + explanation.text[1:],
        tuple(sorted(blocks)),
    )


def _switch(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    # A switch that stays off has the others as its consequences.
    if not any(each.check == "switches" for each in symptoms):
        return None
    verbs = {"set": case.run.still_off, "clear": case.run.still_on}
    missing = " or ".join(verb for verb, modules in verbs.items() if modules)
    return Explanation(
        Cause.SWITCHES,
        f"An override of `_set_gradient_checkpointing` does not {missing} `gradient_checkpointing` there. "
        "Remove the override.",
    )


def _positional_cache(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    calls = [each for each in case.run.calls if each.positional_caches]
    if not calls or not case.run.conditions.scenario.use_cache:
        return None
    arguments = dict.fromkeys(name for each in calls for name in each.positional_caches)
    return Explanation(
        Cause.POSITIONAL_CACHE,
        f"{_where(calls)} passes {names(arguments)} by position, where the base class cannot switch it off, "
        "so the recomputation finds a cache that the forward pass has filled. Pass it by keyword.",
        _places(calls),
    )


def _written_cache(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    calls = [each for each in case.run.calls if not case.run.consequences.caches.isdisjoint(each.caches)]
    if not calls:
        return None
    return Explanation(
        Cause.WRITTEN_CACHE,
        f"The cache that {_where(calls)} passes is written to by the forward pass and again by the "
        "recomputation. Pass it by keyword under a name that the base class switches off, or none while "
        "checkpointing.",
        _places(calls),
    )


def _shared_dictionary(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    changed = case.run.consequences.dictionaries
    calls = [each for each in case.run.calls if not changed.isdisjoint(each.dictionaries.values())]
    if not calls:
        return None
    arguments = dict.fromkeys(
        name for each in calls for name, value in each.dictionaries.items() if value in changed
    )
    return Explanation(
        Cause.DICTIONARY,
        f"The dictionary {names(arguments)} that {_where(calls)} passes is changed by the block, so the "
        "recomputation finds and leaves others values in it than the forward pass. Pass tensors and return "
        "tensors instead.",
        _places(calls),
    )


def _lost_activation(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    signs = (
        "second time",
        "never ends",
        "no output carries gradient",
        "does not require grad",
        "get no gradient",
    )
    if any(sign in each.message for each in symptoms for sign in signs):
        return _keyword_activation(case, symptoms)
    return None


def _keyword_activation(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    if case.run.mode != "reentrant":
        return None
    # What calls within a layer pass is recomputed with it.
    layers = {block.name for block in case.blocks if block.is_layer}
    passed = [call for call in case.run.calls if call.block in layers]
    keywords = dict.fromkeys(name for call in passed for name in call.keyword)
    contained = dict.fromkeys(name for call in passed for name in call.contained)
    if "second time" in " ".join(each.message for each in symptoms):
        keywords, contained = _only_shared(case, keywords, contained)
    calls = [call for call in passed if not keywords.keys().isdisjoint(call.keyword)]
    if calls:
        return Explanation(
            Cause.KEYWORD_ACTIVATION,
            f"{_where(calls)} passes {names(keywords)} by keyword, where reentrant checkpointing does not "
            "see that it carries gradient. Pass it by position.",
            _places(calls),
        )
    calls = [call for call in passed if not contained.keys().isdisjoint(call.contained)]
    if not calls:
        return None
    return Explanation(
        Cause.CONTAINED_ACTIVATION,
        f"{_where(calls)} passes tensors that carry gradient inside of {names(contained)}, where reentrant "
        "checkpointing does not see them. Pass each by position, as an argument of its own.",
        _places(calls),
    )


def _only_shared(
    case: Case, keywords: dict[str, None], contained: dict[str, None]
) -> tuple[dict[str, None], dict[str, None]]:
    """Leave only the arguments that pass one tensor to several calls, if there are any."""
    times: Counter[int] = Counter()
    for call in case.run.calls:
        times.update({*call.keyword.values(), *(each for inner in call.contained.values() for each in inner)})
    shared = {key for key, count in times.items() if count > 1}
    by_keyword = {
        name: None for call in case.run.calls for name, each in call.keyword.items() if each in shared
    }
    inside = {
        name: None
        for call in case.run.calls
        for name, each in call.contained.items()
        if shared.intersection(each)
    }
    return (by_keyword, inside) if by_keyword or inside else (keywords, contained)


def _nested_output(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    if case.run.mode != "reentrant" or not case.run.nested:
        return None
    calls = [each for each in case.run.calls if each.block in case.run.nested]
    return Explanation(
        Cause.NESTED_OUTPUT,
        f"The block that {_where(calls)} calls returns tensors inside of a container in a container, "
        "through which reentrant checkpointing lets no gradient. Return a flat tuple.",
        _places(calls),
    )


def _random_numbers(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    generators = case.run.consequences.generators
    if not generators:
        return None
    return Explanation(
        Cause.RANDOM_NUMBERS,
        f"A block draws random numbers from {names(generators)}, whose state checkpointing does not "
        "restore, so the recomputation draws others. Draw them with torch.",
        _places(case.run.calls),
    )


def _state_on_self(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    return _state(case.run.consequences.attributes)


def _changing_state(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    inside = tuple(f"{block.name}." for block in case.blocks)
    return _state(tuple(each for each in case.run.consequences.set_before if each.startswith(inside)))


def _state(attributes: tuple[str, ...]) -> Explanation | None:
    if not attributes:
        return None
    return Explanation(
        Cause.STATE,
        f"A block sets {names(attributes)} while it runs, and the recomputation does so once more. Return "
        "such values instead of keeping them, or set them where nothing is recomputed.",
    )


def _statistics(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    owners = {name.rpartition(".")[0] for each in symptoms for name in each.parameters}
    kinds = dict.fromkeys(case.kinds[name].__name__ for name in sorted(owners) if name in case.kinds)
    return Explanation(
        Cause.STATISTICS,
        f"The recomputation updates them once more in each step, those of {', '.join(kinds)}. Keep what has "
        "running statistics out of the checkpointed blocks, or do not update while recomputing.",
    )


def _leaf(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    if not any("leaf Variable that requires grad" in each.message for each in symptoms):
        return None
    return Explanation(
        Cause.LEAF,
        "`enable_input_require_grads()`, which checkpointing needs with a frozen base, lets the "
        "embeddings' output require grad, and the model changes that output in place. Write `x = x * y` "
        "instead of `x *= y`.",
    )


def _no_input_grads(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    if case.run.mode != "reentrant" or not any(_NO_INPUT in each for each in case.run.warnings):
        return None
    frozen = (
        ", which `enable_input_require_grads()` does not reach"
        if case.run.conditions.scenario.require_input_grads
        else ""
    )
    return Explanation(
        Cause.NO_INPUT_GRADIENT,
        f"No input of the first blocks carries gradient{frozen} (torch warns of it), and reentrant "
        "checkpointing cuts off whatever would get one inside of them. Train with `use_reentrant=False`, "
        "or let what the embeddings return require grad.",
    )


def _no_gradient_at_first(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    if case.run.calls and not case.run.calls[0].has_gradient:
        return _no_input_grads(case, symptoms)
    return None


def _nothing_to_switch(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    if not any("is not compatible with gradient checkpointing" in each.message for each in symptoms):
        return None
    return Explanation(
        Cause.NOTHING_TO_SWITCH,
        "The class says `supports_gradient_checkpointing`, and no module in it has a "
        "`gradient_checkpointing` to switch. Let its blocks inherit from `GradientCheckpointingLayer`, "
        "or do not say so.",
    )


def _disagreement(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    if case.run.error is not None and case.run.error.kind == "CheckpointError":
        return Explanation(
            Cause.DISAGREEMENT,
            "The recomputation does not do what the forward pass has done: something that it depends "
            "on is another then.",
        )
    return Explanation(Cause.DISAGREEMENT)


def _nothing(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    cause = symptoms[0].cause
    if cause is Cause.NOT_A_LAYER:
        return Explanation(cause, "Let the blocks inherit from `GradientCheckpointingLayer`.")
    return Explanation(cause)


def _nested_checkpoint(case: Case, symptoms: Sequence[Symptom]) -> Explanation | None:
    return Explanation(
        Cause.NESTED_CHECKPOINT,
        "A checkpoint lies within a checkpoint. Remove the explicit one around the layer.",
    )


def _places(calls: Iterable[Call]) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(call.place for call in calls))


def _where(calls: Iterable[Call]) -> str:
    return " and ".join(dict.fromkeys(f"the call at {line(call.place)}" for call in calls))


_SUSPECTS = (
    _Suspect(frozenset(("switches", "recomputation", "saved bytes")), _switch),
    _Suspect(_VALUES | {"cache"}, _positional_cache),
    _Suspect(_VALUES | {"cache"}, _written_cache),
    # A layer's output that reaches a later one by keyword makes the backward pass recurse without end.
    _Suspect(_DEATHS, _keyword_activation),
    _Suspect(_GRADIENTS | _FROZEN, _lost_activation),
    _Suspect(_SIDE_EFFECTS, _random_numbers),
    _Suspect(_SIDE_EFFECTS, _shared_dictionary),
    _Suspect(_SIDE_EFFECTS | {"state"}, _state_on_self),
    _Suspect(_SIDE_EFFECTS, _leaf),
    _Suspect(_GRADIENTS | _FROZEN, _keyword_activation),
    _Suspect(_GRADIENTS | _FROZEN, _no_gradient_at_first),
    _Suspect(_GRADIENTS | _FROZEN, _nested_output),
    _Suspect(_GRADIENTS | _FROZEN, _no_input_grads),
    _Suspect(frozenset(("buffers",)), _statistics),
    _Suspect(frozenset(("recomputation", "saved bytes")), _nothing),
    _Suspect(_SIDE_EFFECTS, _changing_state),
    _Suspect(frozenset(("error",)), _nothing_to_switch),
    _Suspect(_SIDE_EFFECTS, _disagreement),
    _Suspect(frozenset(("double recomputation",)), _nested_checkpoint),
)
"""The known causes; the first one that is found takes all symptoms that it may be the cause of."""
