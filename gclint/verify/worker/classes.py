"""Finds the model classes of a module, and those for which checkpointing cannot be enabled."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from gclint.verify.worker.behaviour import checkpoints

_FLAG = "supports_gradient_checkpointing"


def model_classes(module: ModuleType) -> list[Any]:
    """Return the model classes that ``module`` defines, in the order of their names.

    These are the subclasses of ``PreTrainedModel`` that have a ``forward``, their own or an inherited one,
    and that claim to support checkpointing, or whose code uses it; a base class without a ``forward`` is not
    a model. A class that the module has under another name than its own, such as one that a function has
    made, gets that name.
    """
    known = vars(module)
    found: dict[Any, str] = {}
    for name, value in known.items():
        if inspect.isclass(value) and value.__module__ == module.__name__ and _is_model(value):
            found.setdefault(value, name)
    for value, name in found.items():
        if known.get(value.__name__) is not value:
            value.__name__ = name
    return sorted(found, key=lambda each: str(each.__name__))


def unsupported(model_class: Any) -> str | None:
    """Return why checkpointing cannot be enabled for a class whose code uses it; None if it can."""
    if getattr(model_class, _FLAG, False):
        return None
    is_set = any(_FLAG in vars(each) for each in model_class.__mro__ if each is not PreTrainedModel)
    flag = f"`{_FLAG}` is {'False' if is_set else 'not set'}"
    return f"{flag}, so checkpointing cannot be enabled, but {checkpoints(model_class)}"


def _is_model(candidate: Any) -> bool:
    return (
        issubclass(candidate, PreTrainedModel)
        and candidate.forward is not nn.Module.forward
        and (bool(getattr(candidate, _FLAG, False)) or checkpoints(candidate) is not None)
    )
