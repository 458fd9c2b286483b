"""Fields that a configuration class derives from others."""

from __future__ import annotations

import inspect
from typing import Any

from gclint.verify.worker.synthesis.configurations.fields import Kind, kind_of
from gclint.verify.worker.synthesis.configurations.tree import (
    descendants,
    fields_of,
    is_configuration_class,
    own_fields,
)

_STAGES = ("stage_names", "_out_indices", "_out_features")


def derive(config: Any) -> Any:
    """Return ``config`` rebuilt from the fields that its class takes, so that it derives all others again.

    A number whose default is None counts as derived. Errors of the class are passed on.
    """
    rebuilt: dict[int, Any] = {}
    for part in reversed(list(descendants(config))):
        if is_configuration_class(type(part)):
            rebuilt[id(part)] = _rebuild(part, rebuilt)
    return rebuilt[id(config)]


def _rebuild(part: Any, rebuilt: dict[int, Any]) -> Any:
    fields = fields_of(part)
    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(type(part).__init__).parameters.items():
        value = fields.get(name, parameter.empty)
        derived = (
            parameter.default is None and isinstance(value, int | float) and kind_of(name) is not Kind.TOKEN
        )
        if value is not parameter.empty and not derived:
            given[name] = rebuilt.get(id(value), value)
    new = type(part)(**given)
    fields_of(new).update({name: value for name, value in own_fields(part) if not hasattr(new, name)})
    if all(name in fields for name in _STAGES) and len(new.stage_names) == len(fields["stage_names"]):
        fields_of(new).update({name: fields[name] for name in _STAGES})
    return new
