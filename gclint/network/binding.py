"""Binds the arguments of a call to the parameters of a signature, as Python does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gclint.code.walk import Arg
from gclint.network.evaluation.signature import Parameter, ParameterKind, Signature


@dataclass(frozen=True)
class BoundArgument:
    """An argument and the parameter that receives it.

    ``parameter`` is None for an unpacked mapping or list, and for an argument that no parameter receives.
    """

    arg: Arg
    index: int
    parameter: Parameter | None
    by_position: bool

    @property
    def name(self) -> str:
        """The name of the parameter; nothing if there is none."""
        return "" if self.parameter is None else self.parameter.name


@dataclass(frozen=True)
class Binding:
    """The arguments of a call with their parameters, in the order of the call."""

    arguments: tuple[BoundArgument, ...]
    complete: bool
    """False if Python would reject the call, or an unpacked list makes the binding ambiguous."""

    def argument(self, name: str) -> BoundArgument | None:
        """Return the argument that the parameter ``name`` receives."""
        return next((bound for bound in self.arguments if bound.name == name), None)

    @property
    def unpacks_list(self) -> bool:
        """Whether the call has ``*args``."""
        return any(bound.arg.star == "*" for bound in self.arguments)

    @property
    def unpacks_mapping(self) -> bool:
        """Whether the call has ``**kwargs``."""
        return any(bound.arg.star == "**" for bound in self.arguments)


def bind(args: Sequence[Arg], signature: Signature) -> Binding:
    """Match the arguments of a call, without the receiver, to parameters, without ``self``."""
    positional = signature.positional
    collects = any(parameter.kind is ParameterKind.VAR_POSITIONAL for parameter in signature.parameters)
    collects_names = any(parameter.kind is ParameterKind.VAR_KEYWORD for parameter in signature.parameters)
    bound: list[BoundArgument] = []
    taken: set[str] = set()
    complete = True
    position = 0
    for index, arg in enumerate(args):
        parameter: Parameter | None = None
        if arg.star == "*":
            complete = False
        elif arg.star == "" and arg.keyword is None:
            if position < len(positional):
                parameter = positional[position]
            elif not collects:
                complete = False
            position += 1
        elif arg.keyword is not None:
            parameter = signature.get(arg.keyword)
            if parameter is not None and parameter.kind not in (
                ParameterKind.NORMAL,
                ParameterKind.KEYWORD_ONLY,
            ):
                parameter = None
            if parameter is None and not collects_names:
                complete = False
        if parameter is not None:
            complete = complete and parameter.name not in taken
            taken.add(parameter.name)
        bound.append(BoundArgument(arg, index, parameter, arg.keyword is None and arg.star == ""))
    return Binding(tuple(bound), complete)
