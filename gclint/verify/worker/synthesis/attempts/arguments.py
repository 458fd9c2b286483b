"""The arguments that a class needs to be built, besides a configuration."""

from __future__ import annotations

import inspect
from typing import Any

from gclint.verify.worker.synthesis.configurations.tree import descendants, find


def constructor_arguments(model_class: Any, config: Any) -> dict[str, Any]:
    """Return values for the required parameters of ``model_class`` other than its configuration."""
    parameters = list(inspect.signature(model_class.__init__).parameters.values())[2:]
    needed = [
        each for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    return {each.name: _value(each, config) for each in needed}


def _value(parameter: inspect.Parameter, config: Any) -> Any:
    wanted = parameter.annotation if inspect.isclass(parameter.annotation) else None
    for part in descendants(config):
        if wanted is not None and wanted is not int and isinstance(part, wanted):
            return part
    if "grid" in parameter.name or "resolution" in parameter.name:
        size, patch = find(config, "image_size", default=32), find(config, "patch_size", default=8)
        count = (size[0] if isinstance(size, list | tuple) else size) // (
            patch[0] if isinstance(patch, list | tuple) else patch
        )
        return (count, count)
    found = find(config, parameter.name)
    # The number of the first layer, unless the configuration has a field of that name.
    return 0 if found is None else found
