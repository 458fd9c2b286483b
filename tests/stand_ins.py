"""Runs generated modeling files without torch or transformers, and writes down who receives what."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


class Value(str):
    """Stands for a tensor; what is computed from it says how."""

    def __getitem__(self, index: object) -> Value:
        return Value(f"{self}[{index}]")


@dataclass
class Trace:
    """What happened, in order."""

    received: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    """Each run of a ``forward`` that says so: its class, and what its parameters received."""
    effects: list[str] = field(default_factory=list)
    """The arguments whose evaluation has effects."""
    by_keyword: list[frozenset[str]] = field(default_factory=list, compare=False)
    """What each run of a checkpointing layer received by keyword."""


class Module:
    def __init__(self, *_args: object) -> None:
        pass

    def __call__(self, *args: object, **kwargs: object) -> object:
        forward: Any = self.forward  # type: ignore[attr-defined]
        return forward(*args, **kwargs)


class PreTrainedModel(Module):
    gradient_checkpointing = False
    training = True

    def _gradient_checkpointing_func(self, function: Any, *args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)


def run_models(texts: Mapping[str, str], variables: Mapping[str, str], *, checkpointing: bool = False) -> Trace:
    """Run the ``forward`` of all models in files that import one another by their names.

    Args:
        texts: the files, an imported one before its users.
        variables: what to pass to each model by keyword, beside ``hidden_states``.
        checkpointing: what their flag says.
    """
    trace = Trace()
    files: dict[str, SimpleNamespace] = {}

    class GradientCheckpointingLayer(Module):
        def __call__(self, *args: object, **kwargs: object) -> object:
            trace.by_keyword.append(frozenset(kwargs))
            return super().__call__(*args, **kwargs)

    library = SimpleNamespace(
        nn=SimpleNamespace(Module=Module, ModuleList=list, Linear=Module),
        GradientCheckpointingLayer=GradientCheckpointingLayer,
        PreTrainedModel=PreTrainedModel,
        Tensor=object,
        Any=object,
        Optional={object: object},
    )

    def load(name: str, *_args: object) -> SimpleNamespace:
        return files.get(name, library)

    def write(name: str, received: Mapping[str, object]) -> None:
        shown = {key: value for key, value in received.items() if key not in ("self", "__class__")}
        trace.received.append((name, shown))

    def effect(name: str) -> Value:
        trace.effects.append(name)
        return Value(f"effect {name}")

    for file, text in texts.items():
        names: dict[str, Any] = {
            "__builtins__": {**vars(builtins), "__import__": load},
            "__name__": file.removesuffix(".py"),
            "trace": write,
            "effect": effect,
            "advance": lambda value: Value(f"{value}+"),
        }
        exec(compile(text, file, "exec", dont_inherit=True), names)
        files[file.removesuffix(".py")] = SimpleNamespace(**names)
        for found in list(names.values()):
            if isinstance(found, type) and issubclass(found, PreTrainedModel) and found is not PreTrainedModel:
                model: Any = found(None)
                model.gradient_checkpointing = checkpointing
                values = {name: Value(value) for name, value in variables.items()}
                model(hidden_states=Value("<hidden_states>"), **values)
    return trace
