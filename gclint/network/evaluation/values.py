"""What an expression of a model's code can stand for, as far as stacks of blocks are concerned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

if TYPE_CHECKING:
    from gclint.network.evaluation.classes import ClassInfo
    from gclint.network.evaluation.modules import Module
    from gclint.network.evaluation.scope import Scope
    from gclint.source.fragment import Fragment


@dataclass(frozen=True)
class ClassValue:
    """A class of the project itself, or a ``partial`` of it."""

    info: ClassInfo


@dataclass(frozen=True)
class Instance:
    """An object of a class of the project."""

    info: ClassInfo


@dataclass(frozen=True)
class External:
    """Something from outside the project, by its full name: ``torch.nn.Linear``."""

    name: str


@dataclass(frozen=True)
class ModuleValue:
    """A module or package whose file is at hand, by its full name."""

    module: Module
    name: str


@dataclass(frozen=True)
class ExternalInstance:
    """An object of a class from outside the project."""

    name: str


@dataclass(frozen=True)
class Container:
    """A list, tuple, dict or module container; order and keys are not known."""

    items: Values


@dataclass(frozen=True)
class Bound:
    """A method of an object, with the keyword arguments that a ``partial`` has given it."""

    instance: Instance
    method: str
    keywords: tuple[cst.Arg, ...] = ()


@dataclass(frozen=True)
class Function:
    """A function whose body is at hand, with the scope that it was defined in."""

    node: cst.FunctionDef | cst.Lambda
    scope: Scope
    fragment: Fragment | None
    """The parsed text that the function is part of; a lambda needs none."""


Value: TypeAlias = (
    ClassValue | Instance | External | ModuleValue | ExternalInstance | Container | Bound | Function
)
Values: TypeAlias = "frozenset[Value]"

NOTHING: Values = frozenset()


def items_of(values: Values) -> Values:
    """Return what iterating over, or indexing into, any of ``values`` can give."""
    return frozenset(item for value in values if isinstance(value, Container) for item in value.items)


def list_of(values: Values) -> Values:
    """Return one list that holds ``values``."""
    return frozenset((Container(values),)) if values else NOTHING


def merge_containers(values: Iterable[object]) -> Values:
    """Unite lists that one name stands for, since ``append`` fills the list that was assigned."""
    rest: set[object] = set()
    items: set[object] = set()
    has_container = False
    for value in values:
        if isinstance(value, Container):
            items |= value.items
            has_container = True
        else:
            rest.add(value)
    if has_container:
        rest.add(Container(frozenset(items)))  # type: ignore[arg-type]
    return frozenset(rest)  # type: ignore[arg-type]
