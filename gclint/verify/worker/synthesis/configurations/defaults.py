"""The configuration of a model class before it is made tiny: its defaults, with all towers."""

from __future__ import annotations

import inspect
import re
import typing
from typing import Any

from transformers import AutoConfig, PretrainedConfig

from gclint.verify.worker.specimen import NotSynthesisable
from gclint.verify.worker.synthesis.configurations.backbones import use_native_backbones
from gclint.verify.worker.synthesis.configurations.examples import example_of
from gclint.verify.worker.synthesis.configurations.known import given_configuration
from gclint.verify.worker.synthesis.configurations.tree import descendants, fields_of


def default_configuration(model_class: Any) -> Any:
    """Return the configuration that ``model_class`` has by default, with each tower that it can have.

    Raises:
        NotSynthesisable: The class names no configuration class, or that one rejects its own defaults.
    """
    config_class = configuration_class(model_class)
    if config_class is None:
        raise NotSynthesisable("configuration", "the class names no configuration class")
    given = given_configuration(model_class, config_class)
    if given is not None:
        return given
    return completed(_make_default(config_class))


def completed(config: Any) -> Any:
    """Return ``config`` with each tower that it can have, changed in place."""
    _complete(config)
    use_native_backbones(config)
    return config


def configuration_class(model_class: Any) -> Any:
    """Return the configuration class of ``model_class``, or None if it names none."""
    try:
        types = typing.get_type_hints(model_class.__init__)
    except (NameError, TypeError):
        types = {}
    for name in inspect.signature(model_class.__init__).parameters:
        given = types.get(name)
        if inspect.isclass(given) and issubclass(given, PretrainedConfig) and given is not PretrainedConfig:
            return given
    return model_class.config_class


def _make_default(config_class: Any) -> Any:
    """Return a ``config_class`` with its defaults, and with the values that its validation asks for.

    If the class rejects its defaults, the example in its documentation is used.

    Raises:
        NotSynthesisable: The class rejects its defaults, and its documentation has no example.
    """
    given: dict[str, dict[str, int]] = {}
    while True:
        try:
            return config_class(**given)
        except ImportError as error:
            raise NotSynthesisable.for_import(error) from error
        except Exception as error:
            rejection = error
        wanted = re.search(r"\b(\w+) must be (\d+), got \d+", str(rejection))
        part = next(iter(getattr(config_class, "sub_configs", {})), None)
        if wanted is None or part is None or wanted[1] in given.get(part, {}):
            example = example_of(config_class)
            if example is not None:
                return example
            raise NotSynthesisable(
                "configuration", f"{type(rejection).__name__}: {rejection}"[:400]
            ) from rejection
        given.setdefault(part, {})[wanted[1]] = int(wanted[2])


def _complete(config: Any) -> None:
    """Give ``config`` each sub-configuration that it can have, so that a model has all of its towers."""
    for part in list(descendants(config)):
        for name, child in getattr(part, "sub_configs", {}).items():
            if fields_of(part).get(name, 0) is None and not child.__name__.startswith("Auto"):
                fields_of(part)[name] = child()
        for name, spec in getattr(type(part), "sub_configs_defaults", {}).items():
            # Without a backbone, a model for which it is optional cuts patches itself.
            if (
                name != "backbone_config"
                and fields_of(part).get(name, 0) is None
                and isinstance(getattr(spec, "model_type", None), str)
            ):
                fields_of(part)[name] = AutoConfig.for_model(spec.model_type)
