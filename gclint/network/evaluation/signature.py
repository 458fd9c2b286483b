"""The parameters of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from weakref import WeakKeyDictionary

from gclint.code.outline import Definition, Text
from gclint.code.walk import FunctionNode, children


class ParameterKind(Enum):
    """How arguments can be passed to a parameter."""

    POSITIONAL_ONLY = "positional-only"
    NORMAL = "normal"
    VAR_POSITIONAL = "*args"
    KEYWORD_ONLY = "keyword-only"
    VAR_KEYWORD = "**kwargs"


@dataclass(frozen=True)
class Parameter:
    """One parameter; ``default`` is its code, ``annotation`` the words in it."""

    name: str
    kind: ParameterKind = ParameterKind.NORMAL
    default: str | None = None
    annotation: str | None = None

    @property
    def positional(self) -> bool:
        """Whether an argument can be passed by position."""
        return self.kind in (ParameterKind.POSITIONAL_ONLY, ParameterKind.NORMAL)


@dataclass(frozen=True)
class Signature:
    """The parameters of a method, without ``self``."""

    parameters: tuple[Parameter, ...]

    @property
    def positional(self) -> tuple[Parameter, ...]:
        """The parameters that can be passed by position, in order."""
        return tuple(parameter for parameter in self.parameters if parameter.positional)

    def get(self, name: str) -> Parameter | None:
        """Return the parameter of that name."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)

    def index(self, name: str) -> int | None:
        """Return the index of a parameter among the positional ones; None if it is not one of them."""
        names = [parameter.name for parameter in self.positional]
        return names.index(name) if name in names else None


_VARIABLE = (ParameterKind.VAR_POSITIONAL, ParameterKind.VAR_KEYWORD)
_SIGNATURES: WeakKeyDictionary[Definition, Signature | None] = WeakKeyDictionary()
"""The signatures that have been read, as long as their definitions exist."""


def method_signature(method: Definition) -> Signature | None:
    """Return the signature of a method; None if it has no ``self``."""
    if method not in _SIGNATURES:
        found = tuple(_parameters(method.outline.file, method.function.args))
        _SIGNATURES[method] = Signature(found[1:]) if found and found[0].positional else None
    return _SIGNATURES[method]


def function_signature(file: Text, function: FunctionNode) -> Signature | None:
    """Return the signature of a function that has only ordinary parameters; None for any other."""
    found = tuple(_parameters(file, function.args))
    return Signature(found) if all(each.kind is ParameterKind.NORMAL for each in found) else None


def listed_parameters(args: ast.arguments) -> Iterator[tuple[ast.arg, ParameterKind, ast.expr | None]]:
    """Yield the parameters of a function in the order of the text, each with its default."""
    ordered = [
        *((arg, ParameterKind.POSITIONAL_ONLY) for arg in args.posonlyargs),
        *((arg, ParameterKind.NORMAL) for arg in args.args),
    ]
    defaults = [*[None] * (len(ordered) - len(args.defaults)), *args.defaults]
    for (arg, kind), default in zip(ordered, defaults, strict=True):
        yield arg, kind, default
    if args.vararg is not None:
        yield args.vararg, ParameterKind.VAR_POSITIONAL, None
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield arg, ParameterKind.KEYWORD_ONLY, default
    if args.kwarg is not None:
        yield args.kwarg, ParameterKind.VAR_KEYWORD, None


def _parameters(file: Text, args: ast.arguments) -> Iterator[Parameter]:
    for arg, kind, default in listed_parameters(args):
        words = None if arg.annotation is None else " ".join(_words(arg.annotation))
        yield Parameter(arg.arg, kind, None if default is None else file.source(default), words)


def _words(node: ast.AST) -> Iterator[str]:
    """Yield the names and literals in an annotation, in the order of the text."""
    for child in children(node):
        yield from _words(child)
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Constant) and node.value is not ...:
        yield str(node.value)


class Parameters:
    """The parameters of a function, with their defaults as nodes."""

    def __init__(self, args: ast.arguments | None = None) -> None:
        """Describe the parameters of a function; by default, there are none."""
        self._args = args

    def has(self, name: str) -> bool:
        """Return whether there is a parameter with this name that takes a single argument."""
        return name in self._defaults

    def default(self, name: str) -> ast.expr | None:
        """Return a parameter's default."""
        return self._defaults[name]

    @property
    def names(self) -> list[str]:
        """The parameters that take a single argument, in order."""
        return list(self._defaults)

    @cached_property
    def variable(self) -> frozenset[str]:
        """The names of ``*args`` and ``**kwargs``."""
        return frozenset(arg.arg for arg, kind, _ in self._listed if kind in _VARIABLE)

    @cached_property
    def _defaults(self) -> dict[str, ast.expr | None]:
        return {arg.arg: default for arg, kind, default in self._listed if kind not in _VARIABLE}

    @property
    def _listed(self) -> Iterator[tuple[ast.arg, ParameterKind, ast.expr | None]]:
        return iter(()) if self._args is None else listed_parameters(self._args)
