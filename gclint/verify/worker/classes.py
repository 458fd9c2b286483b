"""Which classes of a module are models that can be trained with checkpointing."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from torch import nn
from transformers import PreTrainedModel


def model_classes(module: ModuleType) -> list[Any]:
    """Return the model classes that ``module`` defines, in the order of their names.

    Those are the subclasses of ``PreTrainedModel`` that say they support checkpointing and have a
    ``forward`` of their own or an inherited one; a base class that has none is not a model.
    """
    own = {
        name: value
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and name == value.__name__
    }
    return [own[name] for name in sorted(own) if _is_model(own[name])]


def _is_model(candidate: Any) -> bool:
    return (
        issubclass(candidate, PreTrainedModel)
        and bool(candidate.supports_gradient_checkpointing)
        and candidate.forward is not nn.Module.forward
    )
