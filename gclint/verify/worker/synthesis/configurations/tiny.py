"""The tiny configuration of a model class: its default one, made smaller and completed."""

from __future__ import annotations

import copy
import importlib
import inspect
import sys
from functools import cache
from typing import Any

from gclint.verify.worker.synthesis.configurations.known import apply_known, is_given
from gclint.verify.worker.synthesis.configurations.rope import fill_sections
from gclint.verify.worker.synthesis.configurations.shrinking import Sizes, shrink
from gclint.verify.worker.synthesis.configurations.towers import deepen_towers, drop_unread_layers
from gclint.verify.worker.synthesis.configurations.tree import descendants


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
