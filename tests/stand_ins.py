"""Runs generated modeling files without torch or transformers, and writes down who receives what."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tests.generated import CACHES, VARIABLES


class Value(str):
    """Stands for a tensor or a cache; what is computed from it says how."""

    def __getitem__(self, index: object) -> Value:
        return Value(f"{self}[{index}]")


@dataclass
class Trace:
    """What happened, in order."""

    received: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    """Each run of a ``forward``: its class, and what its parameters received."""
    effects: list[str] = field(default_factory=list)
    """The arguments whose evaluation has effects."""
    hidden: set[str] = field(default_factory=set, compare=False)
    """The parameters of checkpointing layers that received something by position."""
    named: set[str] = field(default_factory=set, compare=False)
    """The same by keyword."""


class Module:
    """What runs its ``forward`` when it is called."""

    gradient_checkpointing = False
    training = True

    def __init__(self, *_args: object) -> None:
        pass

    def __call__(self, *args: object, **kwargs: object) -> object:
        forward: Any = self.forward  # type: ignore[attr-defined]
        return forward(*args, **kwargs)

    def _gradient_checkpointing_func(self, function: Any, *args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)


class Model(Module):
    """Stands for ``PreTrainedModel``."""


def run_models(texts: Mapping[str, str], *, checkpointing: bool = False) -> Trace:
    """Run the ``forward`` of all models in files that import one another.

    Args:
        texts: the files by name, an imported one before its users.
        checkpointing: whether the models have it enabled.
    """
    trace = Trace()

    class Layer(Module):
        """Stands for ``GradientCheckpointingLayer``."""

        def __call__(self, *args: object, **kwargs: object) -> object:
            forward: Any = self.forward  # type: ignore[attr-defined]
            by_position = inspect.signature(forward).bind_partial(*args).arguments
            trace.hidden |= {name for name, value in by_position.items() if isinstance(value, Value)}
            trace.named |= {name for name, value in kwargs.items() if isinstance(value, Value)}
            if checkpointing:
                kwargs = {name: None if name in CACHES else value for name, value in kwargs.items()}
            return super().__call__(*args, **kwargs)

    def received(name: str, values: Mapping[str, object]) -> None:
        own = {key: value for key, value in values.items() if key not in ("self", "__class__")}
        trace.received.append((name, own))

    def effect(name: str) -> Value:
        trace.effects.append(name)
        return Value(f"effect {name}")

    library = SimpleNamespace(
        nn=SimpleNamespace(Module=Module, ModuleList=list),
        GradientCheckpointingLayer=Layer,
        PreTrainedModel=Model,
        Tensor=object,
        Any=object,
        Optional={object: object},
    )
    files: dict[str, SimpleNamespace] = {}
    for file, text in texts.items():
        names: dict[str, Any] = {
            "__builtins__": {**vars(builtins), "__import__": lambda name, *_: files.get(name, library)},
            "__name__": file.removesuffix(".py"),
            "trace": received,
            "effect": effect,
            "advance": lambda value: Value(f"{value}+"),
        }
        exec(compile(text, file, "exec", dont_inherit=True), names)
        files[file.removesuffix(".py")] = SimpleNamespace(**names)
        _run_model(names, checkpointing)
    return trace


def _run_model(names: Mapping[str, Any], checkpointing: bool) -> None:
    (found,) = (
        each
        for each in names.values()
        if isinstance(each, type) and issubclass(each, Model) and each is not Model
    )
    model = found(None)
    model.gradient_checkpointing = checkpointing
    given = {name: Value(f"<{name}>") for name in (*VARIABLES, "rest", "extra", "hidden_states")}
    model(**given)
