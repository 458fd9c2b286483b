"""Records the inputs of an inner model while a model that contains it runs.

No rule can make up what an outer model computes, such as reference points, the levels of a pyramid or the
codes of another tower: their shapes and values depend on what ran before.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedModel

from gclint.verify.worker.examination.tensors import all_tensors
from gclint.verify.worker.synthesis.attempts import trial
from gclint.verify.worker.tiny_model import EXTRA_LIBRARY, NotSynthesisable, TinyModel

_MOST_OUTER = 3
"""How many outer classes are tried at most."""


def recorded(model_class: Any, scenario: str, make: Callable[[Any], TinyModel]) -> TinyModel | None:
    """Return ``model_class`` as a model in the same file runs it, or None if none does.

    Raises:
        NotSynthesisable: No model runs it, and one could not be built because a library is not installed.
    """
    lacking: NotSynthesisable | None = None
    for outer_class in _outer_classes(model_class)[:_MOST_OUTER]:
        try:
            outer = make(outer_class)
        except NotSynthesisable as error:
            lacking = error if error.category == EXTRA_LIBRARY else lacking
            continue
        found = _record(model_class, outer)
        if found is not None:
            return _inner_tiny_model(model_class, scenario, outer, *found)
    if lacking is not None:
        raise lacking
    return None


def _outer_classes(model_class: Any) -> list[Any]:
    """Return the models in the file whose code leads to ``model_class``, the nearest first."""
    module = inspect.getmodule(model_class)
    classes = {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == model_class.__module__
    }
    texts = {name: inspect.getsource(value) for name, value in classes.items()}
    reached, border = [model_class.__name__], [model_class.__name__]
    while border:
        mentioned = re.compile(rf"\b({'|'.join(border)})\(")
        border = [name for name in texts if name not in reached and mentioned.search(texts[name])]
        reached += border
    models = [classes[name] for name in reached[1:] if name in classes]
    return [
        each for each in models if issubclass(each, PreTrainedModel) and not issubclass(each, model_class)
    ]


def _record(model_class: Any, outer: TinyModel) -> tuple[str, dict[str, Any]] | None:
    """Return the name of an inner model of ``model_class`` and the arguments that it is called with."""
    model = outer.build()
    calls: list[tuple[str, dict[str, Any]]] = []
    signature = inspect.signature(model_class.forward)

    def note(name: str) -> Callable[..., None]:
        def hook(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            # A copy, since the model may write to its arguments later.
            calls.append((name, _detached(_by_name(signature, module, args, kwargs))))

        return hook

    for name, module in model.named_modules():
        if type(module) is model_class and name:
            module.register_forward_pre_hook(note(name), with_kwargs=True)
    trial.seed()
    with torch.no_grad():
        model(**outer.inputs())
    return calls[0] if calls else None


def _by_name(
    signature: inspect.Signature, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for name, value in list(signature.bind(module, *args, **kwargs).arguments.items())[1:]:
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return named


def _inner_tiny_model(
    model_class: Any, scenario: str, outer: TinyModel, name: str, arguments: dict[str, Any]
) -> TinyModel | None:
    """Return a tiny model of the inner model, built in the first way that works."""
    config = outer.build().get_submodule(name).config

    alone: Callable[[], Any] = partial(trial.build, model_class, config)
    for build in (alone, partial(_within, outer, name)):
        try:
            model = build()
            not_covered = trial.step(model, _detached(arguments))
        except Exception:
            # Its constructor may need more than a configuration, and not every inner model has an output that
            # requires grad.
            continue
        return TinyModel(
            scenario=scenario,
            config=config,
            build=build,
            inputs=partial(_detached, arguments),
            not_covered=not_covered,
        )
    return None


def _within(outer: TinyModel, name: str) -> Any:
    return outer.build().get_submodule(name)


def _detached(value: Any) -> Any:
    """Return a detached copy of ``value`` that shares nothing with it."""
    memo: dict[int, Any] = {id(each): each.detach().clone() for each in all_tensors(value)}
    return copy.deepcopy(value, memo)
