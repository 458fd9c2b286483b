"""What is worse in a class after a repair: what it no longer does, and what fails more severely."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from gclint.verify.worker.protocol import ClassResult, Fingerprint, Mode, Observation, Verdict
from gclint.verify.worker.scenarios import SCENARIOS, scenario_named
from gclint.wording import first_of

_TOLERANCE = 1e-3
"""How much values on a GPU may differ, relative to their norm."""
_TIMES = 10
"""How much they may differ, as a multiple of the difference between two runs."""
_SHARE_OF_BYTES = 0.5
"""How much of what checkpointing saved may be kept again: arguments that are now passed by position, say, are
counted where they were not."""
_SHOWN = 3
_ERROR = "error"
_LOST = "missing gradients"
_WARNING = "warning"
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d[\d,.]*(?:e[+-]?\d+)?")
_Key = tuple[str, Mode]


@dataclass(frozen=True)
class Regression:
    """Something that a repair makes worse."""

    name: str
    """The class."""
    text: str
    scenario: str | None = None
    mode: Mode | None = None
    before: str = ""
    """How it was before, as a sentence."""
    kind: tuple[object, ...] = ()
    """The same for regressions of several classes that are really one."""


def was_run(result: ClassResult | None) -> TypeGuard[ClassResult]:
    """Return whether anything of a class was run; a class that is broken by itself has failed earlier."""
    if result is None or result.outcome == "not run":
        return False
    return bool(result.scenarios or result.verdicts or result.fingerprints)


def why_not_run(result: ClassResult) -> str:
    """Return why nothing of a class was run."""
    reason = result.reason or next((failure.text for failure in result.failures), "for an unknown reason")
    return f"{result.category}: {reason}" if result.category else reason


def regressions(
    before: ClassResult | None, after: ClassResult | None, *, exact: bool
) -> Iterator[Regression]:
    """Yield what is worse in a class, if it is there, than before the repair.

    With ``exact``, results without checkpointing must be the same bit for bit.
    """
    if after is None:
        if before is not None:
            yield Regression(before.name, "was found before the repair and is not found any more")
        return
    if not was_run(after):
        if was_run(before):
            yield Regression(after.name, f"cannot be run any more: {why_not_run(after)}")
        return
    if was_run(before):
        yield from _other_results(before, after, exact=exact)
        yield from _missing_runs(before, after)
    yield from _graver(before, after)


def _other_results(before: ClassResult, after: ClassResult, *, exact: bool) -> Iterator[Regression]:
    """Yield where steps without checkpointing give other results."""
    found = {each.scenario: each for each in after.fingerprints}
    for expected in before.fingerprints:
        now = found.get(expected.scenario)
        if now is not None and _are_adapted_otherwise(expected, now):
            continue
        if now is None:
            text = "ran without checkpointing before, and does not any more"
            yield Regression(after.name, text, expected.scenario, "plain", kind=("plain",))
        elif expected.digest != now.digest and (exact or any(_apart(expected, now))):
            yield Regression(
                after.name,
                f"computes different values without checkpointing: {_difference(expected, now, exact=exact)}",
                expected.scenario,
                "plain",
                kind=("plain",),
            )


def _missing_runs(before: ClassResult, after: ClassResult) -> Iterator[Regression]:
    """Yield what was run or covered before, but not after."""
    verdicts = {(each.scenario, each.mode): each for each in after.verdicts}
    lost = [name for name in after.not_covered if name not in before.not_covered]
    if lost:
        yield Regression(after.name, f"does not run {_names(lost)} any more")
    for verdict in before.verdicts:
        now = verdicts.get((verdict.scenario, verdict.mode))
        where = verdict.scenario, verdict.mode
        if now is None:
            why = next((note for note in after.notes if verdict.scenario in note), "")
            text = "ran before, and does not any more"
            yield Regression(after.name, f"{text}{f' ({why})' if why else ''}", *where, kind=("not run",))
            continue
        if any(each.check == _ERROR for each in (*now.observations, *verdict.observations)):
            continue  # The error itself is reported; a run with an error has nothing else.
        fewer = [name for name in now.not_compared if name not in verdict.not_compared]
        if fewer:
            text = f"{_names(fewer)} could be compared before, and cannot be any more"
            yield Regression(after.name, text, *where, kind=("not compared",))
        elif now.compared < verdict.compared:
            text = f"{now.compared} parameters are compared, but {verdict.compared} were before"
            yield Regression(after.name, text, *where, kind=("not compared",))
        idle = [name for name in verdict.recomputed if not _is_covered(name, now.recomputed)]
        if idle:
            text = f"{_names(idle)} was recomputed before, and is not any more"
            yield Regression(after.name, text, *where, kind=("recomputed",))
        # With a frozen base, a repair may be there to give a graph to what is made to require grad.
        is_frozen = scenario_named(verdict.scenario).frozen_base
        is_same = not verdict.observations and verdict.compared == now.compared and not is_frozen
        if is_same and _grows(verdict.saved_bytes, now.saved_bytes, after.saved.get("plain")):
            kept, known = f"{now.saved_bytes:,}", f"{verdict.saved_bytes:,}"
            text = f"{kept} bytes are kept for the backward pass, compared to {known} before"
            yield Regression(after.name, text, *where, kind=("saved",))


def _is_covered(name: str, names: Iterable[str]) -> bool:
    """Return whether a block, or a part of it, or what contains it, is among others."""
    return any(
        name == each or name.startswith(f"{each}.") or each.startswith(f"{name}.") or not each
        for each in names
    )


def _grows(before: int | None, after: int | None, plain: int | None) -> bool:
    if before is None or after is None or plain is None:
        return False
    return after - before > _SHARE_OF_BYTES * max(plain - before, 0) and after > before


def _graver(before: ClassResult | None, after: ClassResult) -> Iterator[Regression]:
    """Yield the failures that are new, or more severe than before."""
    known = _observed(before) if was_run(before) else {}
    earlier = {(each.scenario, each.mode): each for each in before.verdicts} if before else {}
    for key, observations in _observed(after).items():
        # A warning of torch is left out if what it warns of is reported as well.
        for each in [each for each in observations if each.check != _WARNING] or observations:
            if not any(_is_as_grave(other, each) for other in known.get(key, ())):
                scenario, mode = key
                yield Regression(
                    after.name,
                    f"{each.message}. {each.explanation}" if each.explanation else each.message,
                    scenario,
                    mode,
                    _before(each, known.get(key), earlier.get(key)),
                    (each.check, each.cause, _NUMBERS.sub("0", each.message) if not each.about else ""),
                )


def _observed(result: ClassResult) -> dict[_Key, list[Observation]]:
    """Return what was wrong by scenario and mode, according to the checks or else to the failures."""
    found: dict[_Key, list[Observation]] = {
        (each.scenario, each.mode): list(each.observations) for each in result.verdicts
    }
    reported = {key for key, observations in found.items() if observations}
    for failure in result.failures:
        key = failure.scenario, failure.mode
        # A failure that ended the process, or of a step without checkpointing, has no verdict of its own.
        if key not in reported:
            observation = Observation(
                failure.check, failure.message, failure.parameters, failure.cause, failure.explanation
            )
            found.setdefault(key, []).append(observation)
    return found


def _is_as_grave(before: Observation, after: Observation) -> bool:
    """Return whether a failure is no more severe than one that was there before."""
    if before.check != after.check:
        return False
    if after.about:
        # No gradient is no gradient, whatever the cause.
        is_same = after.check == _LOST or before.cause == after.cause
        return is_same and set(before.about).issuperset(after.about)
    return _NUMBERS.sub("0", before.message) == _NUMBERS.sub("0", after.message)


def _before(now: Observation, known: list[Observation] | None, verdict: Verdict | None) -> str:
    """Return how it was before, as a sentence."""
    same = [each for each in known or () if each.check == now.check and each.about]
    if same and now.about:
        new = [name for name in now.about if not any(name in each.about for each in same)]
        if new:
            return f"Before, it was {len(same[0].about)}, without {_names(new)}."
        return "Before, it had another cause."
    if known:
        return f"Before, {known[0].message}."
    if verdict is None:
        return "It was not run there before."
    if not verdict.recomputed:
        return "Before, nothing was recomputed there, and the result was right."
    return "Before, the result was right."


def _are_adapted_otherwise(expected: Fingerprint, found: Fingerprint) -> bool:
    """Return whether adapters are in other modules, such as those that only the repair makes blocks."""
    is_frozen = any(each.frozen_base for each in SCENARIOS if each.name == expected.scenario)
    return is_frozen and expected.parts.keys() != found.parts.keys()


def _apart(expected: Fingerprint, found: Fingerprint) -> Iterator[str]:
    """Yield the names of values that differ more than a GPU explains."""
    for name in {**expected.parts, **found.parts}:
        if expected.parts.get(name) == found.parts.get(name):
            continue
        mine, yours = expected.sketches.get(name), found.sketches.get(name)
        if mine is None or yours is None or not _is_close(mine, yours):
            yield name


def _is_close(mine: list[float], yours: list[float]) -> bool:
    norm, noise, infinite, *products = mine
    _, other_noise, other_infinite, *others = yours
    squares = sum((one - other) ** 2 for one, other in zip(products, others, strict=True))
    distance = (squares / len(products)) ** 0.5
    allowed = _TOLERANCE * norm + _TIMES * max(noise, other_noise)
    return infinite == other_infinite and distance <= allowed


def _difference(expected: Fingerprint, found: Fingerprint, *, exact: bool) -> str:
    if expected.loss != found.loss and (exact or not expected.sketches):
        return f"the loss is {found.loss!r} instead of {expected.loss!r}"
    names: Mapping[str, object] = {**expected.parts, **found.parts}
    apart = (
        [name for name in names if expected.parts.get(name) != found.parts.get(name)]
        if exact
        else list(_apart(expected, found))
    )
    return first_of(apart, _SHOWN) if apart else "its digest differs"


def _names(names: Iterable[str]) -> str:
    return first_of((f"`{each}`" for each in names), _SHOWN)


def summarised(
    found: Iterable[Regression], ran: Mapping[str, frozenset[Mode]]
) -> Iterator[tuple[str, Hashable]]:
    """Yield a sentence or two for each regression, once for all classes, and its kind.

    The kind is the same in all scenarios and modes; ``ran`` has the modes in which the classes were run.
    """
    everything = list(found)
    groups: dict[tuple[object, ...], list[Regression]] = {}
    for each in everything:
        own = (each.text,) if not each.kind else each.kind
        groups.setdefault((each.scenario, each.mode, *own), []).append(each)
    hurt = {each.mode for each in everything}
    modes = {mode for group in ran.values() for mode in group}
    for group in groups.values():
        first = group[0]
        names = list(dict.fromkeys(each.name for each in group))
        more = len(names) - 1
        others = f" (and {more} other class{'es' if more > 1 else ''})" if more else ""
        mode = "" if first.mode == "plain" else f", {first.mode}"
        where = "" if first.scenario is None else f"{mode}, {first.scenario}"
        text = f"{first.name}{others}{where}: {first.text}".rstrip(".")
        spared = [] if hurt & {None, "plain"} else sorted(modes - hurt - {"plain"})
        after = f" Under {spared[0]} checkpointing nothing is worse." if len(spared) == 1 else ""
        sentence = f"{text}.{f' {first.before}' if first.before else ''}{after}".removesuffix(".")
        yield sentence, first.kind or first.text
