"""Finds a configuration and inputs with which a class runs, and inputs as in training."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from gclint.verify.worker import child
from gclint.verify.worker.examination.forked import Fork, in_fork
from gclint.verify.worker.scenarios import DEEP, OPTION
from gclint.verify.worker.synthesis.attempts import trial
from gclint.verify.worker.synthesis.attempts.options import (
    ConfigurationOption,
    find_options,
    further_plans,
    largest,
    takes_part,
    with_options,
)
from gclint.verify.worker.synthesis.attempts.outer import recorded
from gclint.verify.worker.synthesis.attempts.own import own_error
from gclint.verify.worker.synthesis.configurations.class_settings import is_given
from gclint.verify.worker.synthesis.configurations.defaults import (
    default_configuration,
    make_tiny,
    unsuitable_backbone,
)
from gclint.verify.worker.synthesis.configurations.fields import Unit, kind_of
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes
from gclint.verify.worker.synthesis.configurations.tree import descendants, fields_of
from gclint.verify.worker.synthesis.hints.failure import ForwardError
from gclint.verify.worker.synthesis.hints.table import next_plan
from gclint.verify.worker.synthesis.inputs.forward import LABELS, Variants, make_inputs, optional_inputs
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation
from gclint.verify.worker.tiny_model import NotSynthesisable, TinyModel
from gclint.verify.worker.vocabulary import USE_CACHE

_LONGER = (3, -3)
"""How many more tokens the second batch has; a longer one first, since truncation cannot hide it."""
_ATTEMPTS = 10
_SECONDS = 6.0
"""The limit in processor time, so that a busy machine finds as much as an idle one."""
_LIMIT = 120.0
"""The time limit of a class that has none."""
_SIZES = (
    Sizes(),
    Sizes(derived=True),
    Sizes(multiples=True),
    Sizes(width=128, heads=8),
    Sizes(width=96),
    Sizes(width=128),
    Sizes(proportional=True),
    Sizes(plain=True),
)
"""The sizes to try, one after the other."""


def as_trained(situation: Situation, model: Any) -> tuple[Situation, tuple[str, ...]]:
    """Return the situation with the optional inputs that the class runs with, and the others' names."""
    bare = make_inputs(situation)
    # The labels are always kept, since which of them count depends on the masks.
    names = [name for name in optional_inputs(situation) if name == LABELS or _changes(situation, name, bare)]
    if not set(names) - {LABELS}:
        return situation, ()
    whole = _given_also(situation, names)
    if _runs(whole, model):
        return whole, ()
    runs = _runs
    if not _runs(situation, model):
        # It needs its cache with any inputs.
        runs = partial(_runs, cached=True)
        if runs(whole, model):
            return whole, ()
    kept: list[str] = []
    for name in names:
        if runs(_given_also(situation, [*kept, name]), model):
            kept.append(name)
    return _given_also(situation, kept), tuple(name for name in names if name not in kept)


def with_other_length(situation: Situation, model: Any) -> Situation | None:
    """Return the situation with a text of another length, or None if that changes nothing or fails."""
    before = trial.shapes(make_inputs(situation))
    for more in _LONGER:
        other = replace(situation, plan=replace(situation.plan, length=situation.length + more))
        try:
            if trial.shapes(make_inputs(other)) == before:
                return None
        except Exception:
            # The plan for the first length may not fit another one.
            continue
        if _runs(other, model) or (not _runs(situation, model) and _runs(other, model, cached=True)):
            return other
    return None


def _given_also(situation: Situation, names: Sequence[str]) -> Situation:
    return replace(situation, plan=replace(situation.plan, training=tuple(names)))


def _changes(situation: Situation, name: str, bare: dict[str, Any]) -> bool:
    """Return whether the optional input ``name`` can be made, and differs from the one in ``bare``."""
    value = make_inputs(_given_also(situation, [name])).get(name)
    return value is not None and (bare.get(name) is None or not torch.equal(value, bare[name]))


def _runs(situation: Situation, model: Any, *, cached: bool = False) -> bool:
    """Return whether a model can be run, without a cache as in training, or with its own."""
    was_finite = trial.has_finite_gradients(model)
    model.zero_grad(set_to_none=True)
    inputs = make_inputs(situation)
    if not cached and USE_CACHE in situation.parameters:
        inputs[USE_CACHE] = False
    try:
        with nullcontext() if cached else _uncached(model):
            trial.step(model, inputs)
    except Exception:
        # Whatever the error is, these inputs caused it: the class has run without them.
        return False
    return trial.has_finite_gradients(model) or not was_finite


@contextmanager
def _uncached(model: Any) -> Iterator[None]:
    """Disable the cache in all configurations of a model."""
    before = [
        (each, value)
        for each in descendants(model.config)
        if (value := getattr(each, USE_CACHE, None)) is not None
    ]
    for each, _ in before:
        setattr(each, USE_CACHE, False)
    try:
        yield
    finally:
        for each, value in before:
            setattr(each, USE_CACHE, value)


@dataclass(frozen=True)
class _Found:
    """A situation in which a class runs."""

    situation: Situation
    model: Any
    """The model, after a step."""
    not_covered: tuple[str, ...]
    """The parts of the model that did not run."""


def tiny_models(model_class: Any) -> Iterator[TinyModel]:
    """Yield tiny versions of ``model_class`` with inputs, each of which has been run forwards and backwards.

    The first one is for the scenario ``default``; each further one has an optional feature, and is for the
    scenario of that name.

    Raises:
        NotSynthesisable: No configuration or no inputs were found with which the class runs.
    """
    try:
        found = _find(model_class)
    except NotSynthesisable:
        within = recorded(model_class, "default", _default_tiny_model)
        if within is None:
            raise
        yield within
        return
    default = found.situation
    yield replace(_as_trained(found, "default"), deeper=partial(_deeper, default))
    for feature, plan in further_plans(default):
        further = _with_feature(default, feature, plan)
        if further is not None:
            yield further
    optional = _with_runnable_options(found)
    if optional is not None:
        yield optional


def rehearsed(model_class: Any) -> Iterator[TinyModel]:
    """Yield what :func:`tiny_models` does, made in a fork.

    An attempt changes counters, caches and random states as a run does, and runs a backward pass: none of
    that may remain in the process from which all runs start.

    Raises:
        NotSynthesisable: no tiny model was found, or the attempts killed the process.
    """

    def work(fork: Fork) -> None:
        known, found, error = frozenset(sys.modules), [], None
        waiting = iter(tiny_models(model_class))
        while error is None:
            try:
                found.append(next(waiting))
            except StopIteration:
                break
            except NotSynthesisable as reason:
                error = reason
            # This is all that remains if the next one kills this process.
            fork.keep((found, error, [name for name in sys.modules if name not in known]))

    kept, end = in_fork(work, lambda line: None, child.seconds() or _LIMIT)
    if end.cause == "error":
        raise RuntimeError(end.message)
    found, error, imported = kept or ([], None, [])
    for name in imported:
        # Otherwise every run would import it.
        with suppress(Exception):
            importlib.import_module(name)
    yield from found
    if end.cause != "done":
        raise NotSynthesisable(end.cause, f"there was {end.message} in an attempt to run it")
    if error is not None:
        raise error


def _deeper(default: Situation) -> TinyModel | None:
    """Return the tiny model with as many layers as by default, or None if it does not run."""
    counts = [
        value
        for part in descendants(default_configuration(default.model_class))
        for name, value in fields_of(part).items()
        if kind_of(name) is Unit.LAYERS and type(value) is int
    ]
    sizes = replace(default.plan.sizes, layers=max(counts, default=0))
    if sizes.layers <= default.plan.sizes.layers:
        return None
    return _with_feature(default, DEEP, replace(default.plan, sizes=sizes))


def _with_runnable_options(found: _Found) -> TinyModel | None:
    """Return the tiny model with all the options that work together; None if there are none."""
    ran: list[_Found] = []

    def run(situation: Situation) -> bool:
        made = _run_with(situation)
        ran.extend(() if made is None else (made,))
        return made is not None

    options = largest(found.situation, find_options(found.situation, found.model), run)
    # The last successful run has the chosen options.
    return _with_options(found.situation, options, ran[-1]) if options else None


def _run_with(situation: Situation) -> _Found | None:
    """Return what runs with the plan of ``situation``, after making its configuration."""
    model_class = situation.model_class
    try:
        made = _make_situation(model_class, default_configuration(model_class), situation.plan)
        return _Found(made, *_attempt(made))
    except Exception:
        # Options may be incompatible, or need something that is not installed.
        return None


def _retry_with(default: Situation, options: tuple[ConfigurationOption, ...]) -> TinyModel:
    """Return the tiny model with these options alone; raise NotSynthesisable if the class does not run."""
    found = _run_with(with_options(default, options))
    if found is None:
        raise NotSynthesisable("options", f"{_name(options)}: no longer runs")
    return _with_options(default, options, found)


def _with_options(default: Situation, options: tuple[ConfigurationOption, ...], found: _Found) -> TinyModel:
    """Return the tiny model that ran with these options, which can make those with one option less."""
    fewer = [tuple(each for each in options if each is not one) for one in options]
    without = tuple(partial(_retry_with, default, each) for each in fewer if each)
    return replace(_as_trained(found, _name(options)), without=without)


def _name(options: tuple[ConfigurationOption, ...]) -> str:
    return f"{OPTION} {', '.join(map(str, options))}"


def _default_tiny_model(model_class: Any) -> TinyModel:
    found = _find(model_class)
    return _tiny_model(found.situation, "default", found.not_covered)


def _with_feature(default: Situation, feature: str, plan: Plan) -> TinyModel | None:
    """Return the tiny model with an optional ``feature``, or None if the class cannot be run with it."""
    errors: list[Exception] = []
    found = _try_with_hints(
        default.model_class, default_configuration(default.model_class), plan, errors, time.process_time()
    )
    if found is None or not takes_part(default, feature, found.model):
        return None
    return _as_trained(found, feature)


def _find(model_class: Any) -> _Found:
    """Return a situation in which ``model_class`` runs."""
    config = default_configuration(model_class)
    errors: list[Exception] = []
    started = time.process_time()
    plan = Plan()
    for sizes in _SIZES[:1] if is_given(model_class, config) else _SIZES:
        plan = replace(plan, sizes=replace(sizes, image=plan.sizes.image), shapes={}, counts={})
        found = _try_with_hints(model_class, config, plan, errors, started)
        if found is not None:
            return found
    raise unsuitable_backbone(config, errors[0]) or own_error(errors, model_class) or _first_error(errors)


def _try_with_hints(
    model_class: Any, config: Any, plan: Plan, errors: list[Exception], started: float
) -> _Found | None:
    """Try ``plan``, and the plans that hints make from errors; return what ran."""
    tried: list[Plan] = []
    for _ in range(_ATTEMPTS):
        tried.append(plan)
        try:
            situation = _make_situation(model_class, config, plan)
        except Exception as error:
            # A configuration class may reject the tiny values of its fields.
            errors.append(error)
            return None
        try:
            model, not_covered = _attempt(situation)
        except NotSynthesisable as error:
            errors.append(error)
            return None
        except Exception as error:
            errors.append(error)
            following = next_plan(situation, ForwardError(error, partial(make_inputs, situation)), tried)
            if following is None or time.process_time() - started > _SECONDS:
                return None
            plan = following
        else:
            return _Found(situation, model, not_covered)
    return None


def _make_situation(model_class: Any, default: Any, plan: Plan) -> Situation:
    """Return the situation of a class with the configuration ``default`` under ``plan``."""
    whole = make_tiny(model_class, default, plan.sizes)
    config = whole if plan.inside is None else getattr(whole, plan.inside)
    for (owner, name), value in plan.values.items():
        for part in descendants(config):
            fields = fields_of(part)
            if (
                (owner == "=" and name in fields)
                or (owner == "" and name in fields and fields[name] is None)
                or (owner == type(part).__name__)
            ):
                fields[name] = value
    return Situation(model_class, config, plan, whole)


def _attempt(situation: Situation) -> tuple[Any, tuple[str, ...]]:
    trial.size(situation.model_class, situation.config)
    model = trial.build(situation.model_class, situation.config)
    return model, trial.step(model, make_inputs(situation))


def _as_trained(found: _Found, scenario: str) -> TinyModel:
    """Return the tiny model of what was found, with optional inputs and a second length as in training."""
    situation, refused = as_trained(found.situation, found.model)
    other = with_other_length(situation, found.model)
    made = replace(_tiny_model(situation, scenario, found.not_covered), refused=refused)
    return made if other is None else replace(made, other_inputs=partial(make_inputs, other))


def _tiny_model(situation: Situation, scenario: str, not_covered: tuple[str, ...]) -> TinyModel:
    return TinyModel(
        scenario=scenario,
        config=situation.config,
        build=partial(trial.build, situation.model_class, situation.config),
        inputs=partial(make_inputs, situation),
        not_covered=not_covered,
        variants=Variants(situation),
    )


def _first_error(errors: list[Exception]) -> NotSynthesisable:
    """Return the error to raise after all attempts failed with ``errors``.

    It is about the first one, before anything was changed.
    """
    first = errors[0]
    if isinstance(first, ImportError):
        return NotSynthesisable.for_import(first)
    raised = NotSynthesisable(_category(first), f"{type(first).__name__}: {first}"[:400])
    raised.__cause__ = first
    return raised


def _category(error: BaseException) -> str:
    return error.category if isinstance(error, NotSynthesisable) else "inputs"
