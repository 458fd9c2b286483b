"""How transformers names its models: all that is known of a class whose file is not available."""

from __future__ import annotations

import re

MODEL_BASE = "PreTrainedModel"
# A base model, or one with a head for a task.
_OF_LIBRARY = re.compile(r"(?:Model|For[A-Z]\w*)\Z")


def names_model(name: str, *, is_librarys: bool) -> bool:
    """Return whether a class of this name, perhaps with that of its module before it, is a model.

    The library uses names such as ``…Model`` for nothing else.
    """
    return name.endswith(MODEL_BASE) or (is_librarys and _OF_LIBRARY.search(name) is not None)
