"""The values of expressions, as far as they matter for stacks of blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gclint.code.walk import Arg, FunctionNode

if TYPE_CHECKING:
    from gclint.network.evaluation.classes import ClassInfo
    from gclint.network.evaluation.modules import ModuleInfo
    from gclint.network.evaluation.scope import Scope


@dataclass(frozen=True)
class ClassValue:
    """A class of the project, or a ``partial`` of it."""

    info: ClassInfo


@dataclass(frozen=True)
class Instance:
    """An instance of a class of the project."""

    info: ClassInfo


@dataclass(frozen=True)
class EvaluatedExternal:
    """Something from outside the project, with its full name, such as ``torch.nn.Linear``."""

    name: str
    is_partial: bool = False
    """Whether it gets some of its arguments by a ``partial``."""


@dataclass(frozen=True)
class ModuleValue:
    """A module or package whose file is available, with its full name."""

    module: ModuleInfo
    name: str


@dataclass(frozen=True)
class ExternalInstance:
    """An instance of a class from outside the project."""

    name: str


@dataclass(frozen=True)
class Container:
    """A list, tuple, dict or module container; order and keys are not known."""

    items: Values


@dataclass(frozen=True)
class EvaluatedMethod:
    """A bound method, with the keyword arguments of a ``partial``."""

    instance: Instance
    method: str
    keywords: tuple[Arg, ...] = ()


@dataclass(frozen=True)
class EvaluatedFunction:
    """A function whose body is available, with the scope that it was defined in."""

    node: FunctionNode | ast.Lambda
    scope: Scope


Value: TypeAlias = (
    ClassValue
    | Instance
    | EvaluatedExternal
    | ModuleValue
    | ExternalInstance
    | Container
    | EvaluatedMethod
    | EvaluatedFunction
)
Values: TypeAlias = "frozenset[Value]"

NOTHING: Values = frozenset()


def items_of(values: Values) -> Values:
    """Return the possible items of any of ``values``."""
    return frozenset(item for value in values if isinstance(value, Container) for item in value.items)


def list_of(values: Values) -> Values:
    """Return a list that contains ``values``."""
    return frozenset((Container(values),)) if values else NOTHING


def merge_containers(values: Iterable[object]) -> Values:
    """Merge the containers among the values of a name, since ``append`` fills the list that was assigned."""
    found = frozenset(values)
    containers = [value for value in found if isinstance(value, Container)]
    if len(containers) > 1:
        merged = Container(frozenset().union(*(each.items for each in containers)))
        found = found.difference(containers) | {merged}
    return found  # type: ignore[return-value]
