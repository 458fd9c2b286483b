"""Inputs made by a function that the user's settings name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from gclint.verify.worker.known import Known
from gclint.verify.worker.specimen import NotSynthesisable
from gclint.verify.worker.synthesis.configurations.known import SETTINGS, function_for_inputs
from gclint.verify.worker.synthesis.inputs.situation import Situation

_SEED = 20


def given_inputs(situation: Situation) -> dict[str, Any] | None:
    """Return the inputs that the user's function makes for a class, or None if there is no such function.

    It is called with the configuration and, if it takes two arguments, the model class, after seeding torch.

    Raises:
        NotSynthesisable: The function cannot be imported, fails, or does not return keyword arguments.
    """
    known = function_for_inputs(situation.model_class)
    if known is None:
        return None
    try:
        function = _imported(known)
        arguments = (situation.config, situation.model_class)[: _positional(function)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            inputs = function(*arguments)
    except Exception as error:
        message = f"inputs in {known.origin}: {known.inputs}: {type(error).__name__}: {error}"
        raise NotSynthesisable(SETTINGS, message[:400]) from error
    if not isinstance(inputs, dict) or not all(isinstance(name, str) for name in inputs):
        message = (
            f"inputs in {known.origin}: {known.inputs} returned {type(inputs).__name__}; "
            "it must return the keyword arguments of forward, as a dict"
        )
        raise NotSynthesisable(SETTINGS, message)
    return inputs


@cache
def _function(inputs: str, folder: str) -> Callable[..., Any]:
    where, _, name = inputs.rpartition(":")
    sys.path.insert(0, folder)
    try:
        module = _module_from_file(where) if where.endswith(".py") else importlib.import_module(where)
    finally:
        sys.path.remove(folder)
    found: Callable[..., Any] = getattr(module, name)
    return found


def _imported(known: Known) -> Callable[..., Any]:
    assert known.inputs is not None
    return _function(known.inputs, known.folder)


def _module_from_file(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"gclint_inputs_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _positional(function: Callable[..., Any]) -> int:
    """Return how many positional arguments ``function`` takes, at most two."""
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return 2
    return min(2, sum(each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters))
