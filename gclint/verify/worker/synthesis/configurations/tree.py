"""Walks the tree of a configuration and its sub-configurations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

_BOOKKEEPING = {
    "transformers_version", "architectures", "id2label", "label2id", "dtype", "torch_dtype", "problem_type",
    "return_dict", "output_hidden_states", "output_attentions", "chunk_size_feed_forward", "name_or_path",
}  # fmt: skip


def is_configuration_class(value: Any) -> bool:
    """Return whether ``value`` is a class of configurations.

    It is recognised by attributes of every such class, so that nothing has to be imported.
    """
    return isinstance(value, type) and hasattr(value, "model_type") and hasattr(value, "attribute_map")


def fields_of(config: Any) -> dict[str, Any]:
    """Return the mutable mapping behind ``config``, which may be a configuration or a plain mapping.

    Writing to it bypasses the validation of single fields, which would reject a change of several in turn.
    """
    return config if isinstance(config, dict) else vars(config)


def is_bookkeeping(name: str) -> bool:
    """Return whether a field of this name says how a model was loaded, and nothing about the model."""
    return name in _BOOKKEEPING


def is_whole(value: Any) -> TypeGuard[int]:
    """Return whether ``value`` is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def along(size: Any, axis: int) -> Any:
    """Return a size along an axis; one number stands for all axes."""
    return size[axis] if isinstance(size, list | tuple) else size


def own_fields(config: Any) -> list[tuple[str, Any]]:
    """Return the fields of ``config`` that describe the model, without those that say how it was loaded."""
    return [
        (name, value)
        for name, value in fields_of(config).items()
        if isinstance(name, str) and not name.startswith("_") and not is_bookkeeping(name)
    ]


def children(config: Any) -> Iterator[tuple[str, Any]]:
    """Yield the sub-configurations of ``config`` with their names, including plain mappings."""
    for name, value in own_fields(config):
        if is_configuration_class(type(value)) or (
            isinstance(value, dict) and value and name.endswith(("config", "_cfg"))
        ):
            yield name, value


def descendants(config: Any) -> Iterator[Any]:
    """Yield ``config`` and everything below it, each once."""
    seen: set[int] = set()
    stack = [config]
    while stack:
        each = stack.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        stack.extend(child for _, child in children(each))


def find(config: Any, *names: str, default: Any = None) -> Any:
    """Return the first of the fields ``names`` in ``config``, or anything below it, that is not None."""
    for each in descendants(config):
        fields = fields_of(each)
        for name in names:
            if fields.get(name) is not None:
                return fields[name]
            if name in getattr(each, "attribute_map", {}) and getattr(each, name, None) is not None:
                return getattr(each, name)
    return default
