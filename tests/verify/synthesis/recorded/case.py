"""A recorded case of a hint, and stand-ins for all that hints look at: no case needs torch."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gclint.verify.worker.synthesis.hints.failure import ForwardError
from gclint.verify.worker.synthesis.hints.table import Hint
from gclint.verify.worker.synthesis.inputs.situation import Plan, Situation

Frame = tuple[str, Mapping[str, Any]]
"""The line that a frame is at, and the variables that it sees."""


def name_of(hint: Hint) -> str:
    """Return what a hint is called, with its module."""
    return f"{hint.__module__.rpartition('.')[2]}.{hint.__name__}"


def is_needed_by(hint: Hint, model: str) -> bool:
    """Tell whether that hint is needed by a model of that name, as its own says."""
    start = "".join(word.capitalize() for word in hint.__name__.split("_"))
    return re.match(f"{start}(?![a-z])", model) is not None and not model.endswith("Config")


class Floats:
    """A tensor of numbers, of which nothing but the shape is known."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def is_floating_point(self) -> bool:
        return True

    def tolist(self) -> Any:
        return None

    def __len__(self) -> int:
        return self.shape[0]


class Integers(Floats):
    """A tensor of integers."""

    def is_floating_point(self) -> bool:
        return False


class Listed(Integers):
    """A tensor of these integers."""

    def __init__(self, *content: int) -> None:
        super().__init__(len(content))
        self._content = list(content)

    def tolist(self) -> Any:
        return self._content


class Part:
    """A part of a model; those of a case are written like those of models, and never built."""

    def named_parameters(self) -> tuple[()]:
        return ()


class ToyConfig:
    """A configuration: one that has these fields."""

    model_type = "toy"
    attribute_map: Mapping[str, str] = {}

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def get_text_config(self, decoder: bool = False) -> Any:
        return vars(self).get("text_config", self)


class ToyTextConfig(ToyConfig):
    """One of a part of a model."""


@dataclass(frozen=True)
class Case:
    """An error, as torch or a model words it, and how a hint changes the plan for it."""

    message: str
    changes: Mapping[str, Any] | None
    """Fields of the plan, and what they are then; None where it is not for this hint."""
    error: type[BaseException] = RuntimeError
    obj: Any = None
    """What lacks an attribute."""
    frames: tuple[Frame, ...] = ()
    """Innermost first."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """What was given, by name."""
    not_given: tuple[str, ...] = ()
    """Further parameters of ``forward``, which may be left out."""
    required: tuple[str, ...] = ()
    """Further ones that nothing is known of."""
    config: Any = field(default_factory=ToyConfig)
    plan: Plan = field(default_factory=Plan)
    """The plan of the attempt that failed."""
    name: str = "ToyModel"
    """What the class is called."""
    main_input: str = "input_ids"

    def failure(self) -> ForwardError:
        """Return the failure, as hints see it."""
        error = self.error(*([self.message] if self.message else []))
        if self.obj is not None:
            error.obj = self.obj  # type: ignore[attr-defined]
        failure = ForwardError(error, lambda: dict(self.inputs))
        vars(failure)["frames"] = [(dict(variables), line) for line, variables in self.frames]
        return failure

    def situation(self) -> Situation:
        """Return the situation that the attempt was made in."""

        def forward(*arguments: Any) -> None:
            raise NotImplementedError

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind) for name in ("self", *self.required, *self.inputs)]
        parameters += [inspect.Parameter(name, kind, default=None) for name in self.not_given]
        forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        members = {"forward": forward, "main_input_name": self.main_input, "__module__": __name__}
        return Situation(type(self.name, (), members), self.config, self.plan, self.config)

    def expected(self) -> Plan | None:
        """Return the plan that follows."""
        return None if self.changes is None else replace(self.plan, **self.changes)

    def about(self, message: str) -> Case:
        """Return the same with an error of another ``message``, which says nothing."""
        return replace(self, message=message, error=RuntimeError, obj=None)


def at(line: str, **variables: Any) -> Frame:
    """Return a frame at ``line``."""
    return line, variables
