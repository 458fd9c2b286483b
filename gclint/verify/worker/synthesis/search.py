"""Finding a configuration and inputs with which a class runs."""

from __future__ import annotations

import importlib
import inspect
import sys
import time
import typing
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from transformers import PretrainedConfig

from gclint.verify.worker.specimen import NotSynthesisable, Specimen
from gclint.verify.worker.synthesis import trial
from gclint.verify.worker.synthesis.backbones import complete, make_default, use_native_backbones
from gclint.verify.worker.synthesis.configuration import Sizes, shrink
from gclint.verify.worker.synthesis.inputs import make_inputs
from gclint.verify.worker.synthesis.known import apply_known
from gclint.verify.worker.synthesis.outer import recorded
from gclint.verify.worker.synthesis.plan import Plan, Situation
from gclint.verify.worker.synthesis.repair import repair
from gclint.verify.worker.synthesis.rope import fill_sections
from gclint.verify.worker.synthesis.scenarios import further_plans, takes_part
from gclint.verify.worker.synthesis.towers import deepen_towers
from gclint.verify.worker.synthesis.tree import descendants, fields_of

_ATTEMPTS = 10
_SECONDS = 6.0
"""Of processor time, so that a busy machine finds no less than an idle one."""
_LADDER = (
    Sizes(),
    Sizes(derived=True),
    Sizes(multiples=True),
    Sizes(width=128, heads=8),
    Sizes(width=96),
    Sizes(proportional=True),
    Sizes(plain=True),
)


def specimens(model_class: Any) -> Iterator[Specimen]:
    """Yield tiny versions of ``model_class`` with inputs, each of which has been run forwards and backwards.

    The first one is the scenario ``default``.

    Raises:
        NotSynthesisable: No configuration or no inputs were found with which the class runs.
    """
    try:
        default, not_covered = _find(model_class)
    except NotSynthesisable:
        found = recorded(model_class, "default", _whole)
        if found is None:
            raise
        yield found
        return
    yield _specimen(default, "default", not_covered)
    for scenario, plan in further_plans(default):
        further = _further(default, scenario, plan)
        if further is not None:
            yield further


def _whole(model_class: Any) -> Specimen:
    situation, not_covered = _find(model_class)
    return _specimen(situation, "default", not_covered)


def _further(default: Situation, scenario: str, plan: Plan) -> Specimen | None:
    """Return the specimen of another scenario, or None where the class cannot be run in it."""
    errors: list[Exception] = []
    found = _climb(
        default.model_class, _default_config(default.model_class), plan, errors, time.process_time()
    )
    if found is None or not takes_part(default, scenario, found[2]):
        return None
    return _specimen(found[0], scenario, found[1])


def _find(model_class: Any) -> tuple[Situation, tuple[str, ...]]:
    """Return what makes ``model_class`` run, and the parts of it that do not run then."""
    config = _default_config(model_class)
    errors: list[Exception] = []
    started = time.process_time()
    plan = Plan()
    for sizes in _LADDER:
        plan = replace(plan, sizes=replace(sizes, image=plan.sizes.image), shapes={}, counts={})
        found = _climb(model_class, config, plan, errors, started)
        if found is not None:
            return found[0], found[1]
    raise _explained(errors)


def _climb(
    model_class: Any, config: Any, plan: Plan, errors: list[Exception], started: float
) -> tuple[Situation, tuple[str, ...], Any] | None:
    """Attempt ``plan`` and what the errors make of it; return what ran, what of it did not, and the model."""
    tried: list[Plan] = []
    for _ in range(_ATTEMPTS):
        tried.append(plan)
        try:
            situation = _situate(model_class, config, plan)
        except Exception as error:
            # A configuration class may refuse what the rules made of its fields.
            errors.append(error)
            return None
        try:
            model, not_covered = _attempt(situation)
        except NotSynthesisable as error:
            errors.append(error)
            return None
        except Exception as error:
            errors.append(error)
            following = repair(situation, error, tried)
            if following is None or time.process_time() - started > _SECONDS:
                return None
            plan = following
        else:
            return situation, not_covered, model
    return None


def _situate(model_class: Any, default: Any, plan: Plan) -> Situation:
    small = shrink(default, plan.sizes)
    apply_known(list(descendants(small)))
    deepen_towers(small, plan.sizes.layers)
    whole = small
    fill_sections(small, _source(model_class))
    for part in list(descendants(small)):
        # A part may belong to a model of its own, whose text has a default for it.
        fill_sections(part, _source_beside(type(part).__module__))
    if plan.inside is not None:
        small = getattr(small, plan.inside)
    for (owner, name), value in plan.values.items():
        for part in descendants(small):
            fields = fields_of(part)
            if (
                (owner == "=" and name in fields)
                or (owner == "" and name in fields and fields[name] is None)
                or (owner == type(part).__name__)
            ):
                fields[name] = value
    if plan.attention is not None:
        small._attn_implementation = plan.attention
    return Situation(model_class, small, plan, whole)


@cache
def _source(model_class: Any) -> str:
    try:
        return inspect.getsource(sys.modules[model_class.__module__])
    except (KeyError, OSError):
        # A class made on the fly has no text; then there are no defaults to be read from it.
        return ""


@cache
def _source_beside(name: str) -> str:
    if ".configuration_" not in name:
        return ""
    try:
        return inspect.getsource(importlib.import_module(name.replace(".configuration_", ".modeling_")))
    except ImportError:
        # The model needs what is not installed, or has no file of its own.
        return ""


def _attempt(situation: Situation) -> tuple[Any, tuple[str, ...]]:
    trial.size(situation.model_class, situation.config)
    model = trial.build(situation.model_class, situation.config)
    return model, trial.step(model, make_inputs(situation))


def _specimen(situation: Situation, scenario: str, not_covered: tuple[str, ...]) -> Specimen:
    return Specimen(
        scenario=scenario,
        config=situation.config,
        build=lambda: trial.build(situation.model_class, situation.config),
        inputs=lambda: make_inputs(situation),
        not_covered=not_covered,
    )


def _default_config(model_class: Any) -> Any:
    config_class = _config_class(model_class)
    if config_class is None:
        raise NotSynthesisable("configuration", "the class names no configuration class")
    config = make_default(config_class)
    complete(config)
    use_native_backbones(config)
    return config


def _config_class(model_class: Any) -> Any:
    try:
        hints = typing.get_type_hints(model_class.__init__)
    except (NameError, TypeError):
        hints = {}
    for name in inspect.signature(model_class.__init__).parameters:
        hint = hints.get(name)
        if inspect.isclass(hint) and issubclass(hint, PretrainedConfig) and hint is not PretrainedConfig:
            return hint
    return model_class.config_class


def _explained(errors: list[Exception]) -> NotSynthesisable:
    """Return the error to raise after all attempts failed with ``errors``.

    It is about the first one, which nothing had been changed for.
    """
    first = errors[0]
    told = NotSynthesisable(_category(first), f"{type(first).__name__}: {first}"[:400])
    told.__cause__ = first
    return told


def _category(error: BaseException) -> str:
    if isinstance(error, NotSynthesisable):
        return error.category
    if isinstance(error, ImportError):
        return "extra library"
    return "inputs"
