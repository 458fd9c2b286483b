"""The configurations of a model class: its default one with all towers, and the tiny one made of it."""

from __future__ import annotations

import ast
import copy
import doctest
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

import transformers
from transformers import AutoConfig, PretrainedConfig, ResNetConfig, ViTConfig

from gclint.verify.worker.synthesis.configurations.class_settings import (
    apply_known,
    given_configuration,
    is_given,
)
from gclint.verify.worker.synthesis.configurations.layers import deepen_towers, drop_unread_layers
from gclint.verify.worker.synthesis.configurations.rope import fill_sections
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes, shrink
from gclint.verify.worker.synthesis.configurations.tree import descendants, fields_of, own_fields
from gclint.verify.worker.tiny_model import EXTRA_LIBRARY, NotSynthesisable


def use_native_backbones(config: Any) -> None:
    """Replace each backbone below ``config`` that the timm library would build by a native one."""
    for part in list(descendants(config)):
        fields = fields_of(part)
        if fields.get("use_timm_backbone") and fields.get("backbone_config", 0) is None:
            levels = int(fields.get("num_feature_levels", 1))
            fields["backbone_config"] = _residual_network(out_indices=[2, 3, 4] if levels > 1 else [4])
            fields["use_timm_backbone"] = fields["use_pretrained_backbone"] = False
            fields["backbone"] = fields["backbone_kwargs"] = None
        for name, value in list(fields.items()):
            kind = value.get("model_type") if isinstance(value, dict) else getattr(value, "model_type", None)
            if name == "backbone_config" and kind == "timm_backbone":
                indices = value.get("out_indices") if isinstance(value, dict) else value.out_indices
                wanted = [index for index in indices or (4,) if 1 <= index <= 4]
                fields[name] = _residual_network(out_indices=wanted or [4])
                fields["use_timm_backbone"] = False
                fields["backbone"] = None
            elif all(hasattr(value, field) for field in ("architecture", "model_args", "do_pooling")):
                fields[name] = _native_tower(value, has_class_token="vision_use_cls_token" in fields)


def unsuitable_backbone(config: Any, error: BaseException) -> NotSynthesisable | None:
    """Return the error to report if ``error`` shows that a native tower cannot replace one of timm."""
    found = re.match(r"(ResNet|ViT)Model\.forward\(\) got an unexpected keyword", str(error))
    if found is None or not any("architecture" in fields_of(part) for part in descendants(config)):
        return None
    message = f"the tower is a timm model, and a native {found[1]} cannot replace it"
    raised = NotSynthesisable(EXTRA_LIBRARY, f"{message} ({error}); it needs timm: pip install timm")
    raised.__cause__ = error
    return raised


def _residual_network(**given: Any) -> ResNetConfig:
    # A model may scale the output of its backbone in place, which autograd forbids for the output of a ReLU.
    return ResNetConfig(hidden_act="gelu", **given)


def _native_tower(timm: Any, has_class_token: bool) -> Any:
    """Return a vision transformer or a residual network that has the other fields of ``timm`` as well."""
    if has_class_token or timm.architecture.startswith("vit"):
        native = ViTConfig()
    else:
        native = _residual_network()
        native.hidden_size = native.hidden_sizes[-1]
    for name, value in own_fields(timm):
        if not hasattr(native, name):
            fields_of(native)[name] = value
    # The only way to ask timm for a width.
    native.model_args = {"embed_dim": Sizes().width}
    return native


def example_of(config_class: Any) -> Any:
    """Return the first ``config_class`` that the example in its documentation makes, or None.

    Only constructors of configurations are executed, and methods called ``from_…`` that load nothing.
    """
    values: dict[str, Any] = {config_class.__name__: config_class}
    for name, expression in _assignments(inspect.getdoc(config_class) or ""):
        try:
            values[name] = _Configurations(config_class, values).evaluate(expression)
        except Exception:
            # A line may build a model or use an unknown name; a later one may still make a configuration.
            continue
        if type(values[name]) is config_class:
            return values[name]
    return None


def _assignments(text: str) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that the examples in ``text`` assign to, with the expressions assigned."""
    try:
        examples = doctest.DocTestParser().get_examples(text)
        statements = [each for example in examples for each in ast.parse(example.source).body]
    except (SyntaxError, ValueError):
        return
    for each in statements:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            yield each.targets[0].id, each.value


class _Configurations:
    """Evaluates expressions that make configurations, and raises ``ValueError`` at anything else."""

    def __init__(self, config_class: Any, values: dict[str, Any]) -> None:
        self._module = sys.modules.get(config_class.__module__)
        self._values = values

    def evaluate(self, expression: ast.expr) -> Any:
        if isinstance(expression, ast.Call):
            arguments = [self.evaluate(each) for each in expression.args]
            keywords = {each.arg: self.evaluate(each.value) for each in expression.keywords if each.arg}
            return self._function(expression.func)(*arguments, **keywords)
        if isinstance(expression, ast.Name):
            return self._named(expression.id)
        return ast.literal_eval(expression)

    def _function(self, expression: ast.expr) -> Any:
        method = expression.attr if isinstance(expression, ast.Attribute) else None
        owner = self.evaluate(expression.value if isinstance(expression, ast.Attribute) else expression)
        if not inspect.isclass(owner) or not issubclass(owner, PretrainedConfig):
            raise ValueError
        if method is None:
            return owner
        if not method.startswith("from_") or method == "from_pretrained":
            raise ValueError
        return getattr(owner, method)

    def _named(self, name: str) -> Any:
        for found in (
            self._values.get(name),
            getattr(self._module, name, None),
            getattr(transformers, name, None),
        ):
            if found is not None:
                return found
        raise ValueError(name)


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


def make_tiny(model_class: Any, default: Any, sizes: Sizes) -> Any:
    """Return a tiny copy of ``default``, a configuration of ``model_class``.

    One from the user's settings is kept, except for the single fields that they set.
    """
    if is_given(model_class, default):
        given = copy.deepcopy(default)
        apply_known(model_class, given)
        return given
    small = shrink(default, sizes)
    apply_known(model_class, small)
    deepen_towers(small, sizes.layers)
    drop_unread_layers(small)
    fill_sections(small, _source(model_class))
    for part in list(descendants(small)):
        # A part may belong to another model, whose source has the default.
        fill_sections(part, _source_of_modeling(type(part).__module__))
    return small


@cache
def _source(model_class: Any) -> str:
    try:
        return inspect.getsource(sys.modules[model_class.__module__])
    except (KeyError, OSError):
        # A class that was created dynamically has no source, and hence no defaults to read.
        return ""


@cache
def _source_of_modeling(name: str) -> str:
    if ".configuration_" not in name:
        return ""
    try:
        return inspect.getsource(importlib.import_module(name.replace(".configuration_", ".modeling_")))
    except ImportError:
        # The model needs a library that is not installed, or has no file of its own.
        return ""
